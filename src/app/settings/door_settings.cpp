#include "app/settings/door_settings.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace duet::app {
namespace {

using Text = std::string_view;

constexpr Text http_names[] = {"listen", "hosts", "session", "max_connections"};
constexpr std::int64_t most_connections = 20'000;

void read_listen(const SettingsSection& section, HttpSettings& http) {
  const auto text = section.text("listen");
  if (!text) return;
  http.on_demand = *text == "on-demand";
  http.listen = std::nullopt;
  if (http.on_demand || *text == "off") return;
  http.listen = transport::TcpAddress::parse(*text);
  const Setting& setting = *section.find("listen");
  if (!http.listen) {
    return section.refuse(setting, "listen", "'on-demand', 'off', or an address with a port such as 127.0.0.1:8123");
  }
  const std::string why = why_not_http(*http.listen);
  if (!why.empty()) section.refuse(setting, "listen", why);
}

// A name as it stands in a Host field, without a port.
bool is_host_name(Text name) {
  constexpr std::size_t longest = 253;
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
           c == '_';
  };
  return !name.empty() && name.size() <= longest && std::ranges::all_of(name, fits);
}

}  // namespace

std::string why_not_http(const transport::TcpAddress& address) {
  if (address.is_loopback()) return "";
  return "a loopback address (127.0.0.1 or [::1]), since plain HTTP is for this machine only: other machines come in "
         "through [tls], or through 'ssh -L'";
}

void read_http(SettingFaults& faults, const Setting& setting, HttpSettings& http) {
  const SettingsSection section(faults, setting, "http.", http_names);
  read_listen(section, http);
  if (auto hosts = section.texts("hosts")) {
    const auto& list = *section.find("hosts")->as<Setting::List>();
    for (std::size_t i = 0; i < hosts->size(); ++i) {
      if (!is_host_name((*hosts)[i]))
        section.refuse(list[i], "hosts[" + std::to_string(i) + "]", "the name of a host, without a port");
    }
    http.hosts = std::move(*hosts);
  }
  if (const auto session = section.duration("session")) {
    http.session = std::chrono::duration_cast<std::chrono::seconds>(*session);
    if (http.session < std::chrono::minutes(1)) section.refuse(*section.find("session"), "session", "a minute or more");
  }
  if (const auto most = section.number("max_connections", 1, most_connections))
    http.max_connections = static_cast<std::size_t>(*most);
}

}  // namespace duet::app
