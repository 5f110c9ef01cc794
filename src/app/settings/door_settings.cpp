#include "app/settings/door_settings.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "app/words/role_names.h"

namespace duet::app {
namespace {

using Text = std::string_view;

constexpr Text http_names[] = {"listen", "hosts", "session", "max_connections"};
constexpr Text tls_names[] = {"listen", "certificate", "key", "clients_ca", "revoked", "max_connections", "roles"};
constexpr Text fingerprint_prefix = "sha256:";
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

// One spelling for each fingerprint, whatever stands in the file.
std::string role_name(const std::string& name) {
  const std::string fingerprint = name.starts_with(fingerprint_prefix) ? fingerprint_in(name) : "";
  return fingerprint.empty() ? name : std::string(fingerprint_prefix) + fingerprint;
}

void read_tls_roles(SettingFaults& faults, const SettingsSection& section, TlsSettings& tls) {
  const Setting* const setting = section.find("roles");
  if (setting == nullptr) return;
  const auto* const table = setting->as<Setting::Table>();
  if (table == nullptr) return section.refuse(*setting, "roles", "a table with a role for each certificate");
  for (const NamedSetting& entry : *table) {
    const auto* const role = entry.setting.as<std::string>();
    const bool is_fingerprint = entry.name.starts_with(fingerprint_prefix);
    if (is_fingerprint && fingerprint_in(entry.name).empty())
      faults.add(entry.place,
                 "tls.roles: '" + shown(Text(entry.name)) + "' is no SHA-256: it has 64 hexadecimal digits");
    if (role == nullptr || std::ranges::find(role_names, *role) == role_names.end()) {
      section.refuse(entry.setting, "roles." + shown(Text(entry.name)), "'observe', 'operate' or 'own'");
      continue;
    }
    tls.roles[role_name(entry.name)] = *role;
  }
}

}  // namespace

std::string fingerprint_in(std::string_view text) {
  constexpr std::size_t digits = 64;
  const auto same = [](char a, char b) { return a == (b >= 'A' && b <= 'Z' ? static_cast<char>(b - 'A' + 'a') : b); };
  const std::string_view front = text.substr(0, fingerprint_prefix.size());
  if (std::ranges::equal(fingerprint_prefix, front, same)) text.remove_prefix(fingerprint_prefix.size());
  std::string found;
  for (const char c : text) {
    const char lower = c >= 'A' && c <= 'F' ? static_cast<char>(c - 'A' + 'a') : c;
    const bool is_digit = (lower >= '0' && lower <= '9') || (lower >= 'a' && lower <= 'f');
    if (is_digit) {
      found += lower;
    } else if (c != ':' || found.size() % 2 != 0 || found.empty()) {
      return {};
    }
  }
  return found.size() == digits ? found : std::string();
}

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

void read_tls(SettingFaults& faults, const Setting& setting, TlsSettings& tls) {
  const SettingsSection section(faults, setting, "tls.", tls_names);
  if (const auto listen = section.text("listen")) {
    tls.listen = transport::TcpAddress::parse(*listen);
    if (!tls.listen && *listen != "off")
      section.refuse(*section.find("listen"), "listen", "'off', or an address with a port such as 0.0.0.0:7443");
  }
  const auto take = [&](Text name, std::string& into) { into = section.text(name).value_or(into); };
  take("certificate", tls.certificate);
  take("key", tls.key);
  take("clients_ca", tls.clients_ca);
  take("revoked", tls.revoked);
  if (const auto most = section.number("max_connections", 1, most_connections))
    tls.max_connections = static_cast<std::size_t>(*most);
  read_tls_roles(faults, section, tls);
}

}  // namespace duet::app
