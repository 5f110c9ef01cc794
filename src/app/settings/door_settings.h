#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/settings/settings_section.h"
#include "app/settings/settings_tree.h"
#include "duet/transport/tcp_address.h"

namespace duet::app {

/// `[http]`: the door for browsers and scripts of this machine.
struct HttpSettings {
  std::optional<transport::TcpAddress> listen = {};  ///< none: closed
  bool on_demand = true;                             ///< opened when somebody asks for it; only while `listen` is none
  std::vector<std::string> hosts = {};               ///< further names under which a browser may come
  std::chrono::seconds session =
      std::chrono::hours(24 * 7);  ///< a browser's token ends when it was not used for so long
  std::size_t max_connections = 1024;
};

/// `[tls]`: the door for other machines. Only the user's own files say it.
struct TlsSettings {
  std::optional<transport::TcpAddress> listen = {};  ///< none: closed
  std::string certificate = "server.pem";            ///< relative ones, as all four: in tls_folder()
  std::string key = "server.key";
  std::string clients_ca = "ca.pem";
  std::string revoked = "revoked";  ///< need not exist
  std::size_t max_connections = 256;
  std::map<std::string, std::string> roles = {};  ///< by the name of a certificate, or `sha256:` and its fingerprint
};

/// Where the HTTP door may be: loopback addresses. The fault says what else to do.
std::string why_not_http(const transport::TcpAddress& address);

/// What `[http]` says, over what `http` is already.
void read_http(SettingFaults& faults, const Setting& setting, HttpSettings& http);
void read_tls(SettingFaults& faults, const Setting& setting, TlsSettings& tls);

/// 64 lower-case hexadecimal digits, from them in any case, with colons between them, and behind `sha256:`; empty: it
/// is none.
std::string fingerprint_in(std::string_view text);

}  // namespace duet::app
