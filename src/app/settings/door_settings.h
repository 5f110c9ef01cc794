#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
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

/// Where the HTTP door may be: loopback addresses. The fault says what else to do.
std::string why_not_http(const transport::TcpAddress& address);

/// What `[http]` says, over what `http` is already.
void read_http(SettingFaults& faults, const Setting& setting, HttpSettings& http);

}  // namespace duet::app
