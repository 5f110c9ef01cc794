#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "app/cli/command_line.h"
#include "app/words/tls_url.h"

namespace duet::app {

/// Which daemon of another machine a command asks, and who asks.
struct FarPlace {
  TlsUrl url;
  std::string identity;     ///< the file with our key, our certificate and the CA to trust
  std::string server_name;  ///< what the certificate there must have among its names
};

/// The options that say where the daemon is.
inline constexpr std::array<std::string_view, 5> place_option_names{"project", "socket", "connect", "identity",
                                                                    "server-name"};

/// By --connect, --identity and --server-name, else by DUET_RPC_CONNECT and DUET_RPC_IDENTITY; --project and --socket
/// go over these. None: the daemon is one of this machine. Throws Failure if what was given does not fit together, or
/// the command is for this machine only.
std::optional<FarPlace> far_place(const CommandLine& line);

}  // namespace duet::app
