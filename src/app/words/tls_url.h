#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace duet::app {

/// Where a daemon on another machine answers, as people write it: `tls://build.example`, `tls://[::1]:7443`.
struct TlsUrl {
  static constexpr std::uint16_t usual_port = 7443;

  std::string host;  ///< a DNS name, or an address without its brackets
  std::uint16_t port = usual_port;

  /// `HOST:PORT`, an IPv6 address in brackets.
  std::string place() const;
};

inline constexpr std::string_view tls_url_forms =
    "tls://HOST or tls://HOST:PORT, as tls://build.example or tls://[::1]";

/// A DNS name, or an address without brackets.
bool is_host(std::string_view text);

/// Nullopt: it is nothing of the kind. Nobody is asked whether there is such a host.
std::optional<TlsUrl> parse_tls_url(std::string_view text);

}  // namespace duet::app
