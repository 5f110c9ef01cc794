#include "task/postgres/store_address.h"

#include <arpa/inet.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "task/postgres/libpq.h"
#include "task/postgres/url_shape.h"

namespace duet::task::postgres {
namespace {

using Parameters = StoreAddress::Parameters;

constexpr const char* malformed =
    "`store` is no valid postgresql:// address (what is special in a name or a password is written as %XX: @ as %40, "
    "/ as %2F, : as %3A, ? as %3F)";

constexpr const char* too_little_tls =
    "for a server elsewhere `sslmode` must be verify-full, as it is if nothing says otherwise (`[cluster] insecure = "
    "true` allows less)";

// A value that libpq refuses, for an option that we never need to know.
constexpr const char* refused_option = "channel_binding";
constexpr const char* refused_value = "duet-looks";

Parameters given_values(const Libpq::PQconninfoOption* options) {
  Parameters values;
  for (; options != nullptr && options->keyword != nullptr; ++options) {
    if (options->val != nullptr && *options->val != '\0') values[options->keyword] = options->val;
  }
  return values;
}

// libpq marks what is not to be shown.
bool has_secret(const Libpq::PQconninfoOption* options) {
  for (; options->keyword != nullptr; ++options) {
    if (options->val != nullptr && options->dispchar != nullptr && *options->dispchar == '*') return true;
  }
  return false;
}

std::optional<Parameters> parse_url(const std::string& store, bool& secret) {
  if (!is_clear_url(store) || store.find('\0') != std::string::npos) return std::nullopt;
  char* error = nullptr;
  const PgOptions options(libpq().PQconninfoParse(store.c_str(), &error));
  libpq().PQfreemem(error);  // it quotes the address
  if (!options) return std::nullopt;
  secret = has_secret(options.get());
  return given_values(options.get());
}

// What libpq would use: the environment and the service file, too. It tells that of a connection only; this one is
// refused for one bad option before anything is looked up or opened.
tl::expected<Parameters, std::string> with_libpq_sources(const Parameters& given) {
  std::vector<const char*> names;
  std::vector<const char*> values;
  for (const auto& [name, value] : given) {
    if (name == refused_option) continue;
    names.push_back(name.c_str());
    values.push_back(value.c_str());
  }
  names.insert(names.end(), {refused_option, nullptr});
  values.insert(values.end(), {refused_value, nullptr});
  const PgConnection looked(libpq().PQconnectStartParams(names.data(), values.data(), 0));
  const std::string said = looked ? libpq().PQerrorMessage(looked.get()) : "";
  if (said.find(refused_value) == std::string::npos) {
    return tl::unexpected<std::string>(
        "libpq does not take `store`: see whether the service that it or PGSERVICE names is there, and whether hosts, "
        "addresses and ports are as many");
  }
  const PgOptions options(libpq().PQconninfo(looked.get()));
  Parameters all = given_values(options.get());
  all.erase(refused_option);
  if (given.contains(refused_option)) all[refused_option] = given.at(refused_option);
  return all;
}

std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> parts(1);
  for (const char letter : list) {
    if (letter == ',') {
      parts.emplace_back();
    } else {
      parts.back() += letter;
    }
  }
  return parts;
}

std::string take(Parameters& parameters, const std::string& name) {
  const auto found = parameters.find(name);
  if (found == parameters.end()) return {};
  std::string value = std::move(found->second);
  parameters.erase(found);
  return value;
}

std::optional<std::vector<Host>> take_hosts(Parameters& parameters) {
  const std::string names = take(parameters, "host");
  const std::string addresses = take(parameters, "hostaddr");
  const std::string ports = take(parameters, "port");
  if (!is_host_list(names) || !is_host_list(addresses) || !is_port_list(ports)) return std::nullopt;
  const std::vector<std::string> name = split(names);
  const std::vector<std::string> address = split(addresses);
  const std::vector<std::string> port = split(ports);
  std::vector<Host> hosts(std::max(name.size(), address.size()));
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    if (i < name.size()) hosts[i].name = name[i];
    if (i < address.size()) hosts[i].address = address[i];
    hosts[i].port = port.size() == 1 ? port[0] : i < port.size() ? port[i] : "";
    if (hosts[i].port.empty()) hosts[i].port = "5432";
  }
  return hosts;
}

bool can_read(const std::string& path) { return ::access(path.c_str(), R_OK) == 0; }

bool has_own_authorities() {
  const char* home = std::getenv("HOME");
  return home != nullptr && can_read(std::string(home) + "/.postgresql/root.crt");
}

// libpq 15 knows no `sslrootcert=system`.
std::string system_authorities() {
  for (const char* bundle : {"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt",
                             "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem"}) {
    if (can_read(bundle)) return bundle;
  }
  return libpq().PQlibVersion() >= 160000 ? "system" : "";
}

// `prefer` is what libpq has when nobody said anything; a service file that says it is not told from that, and gets the
// stricter one.
bool says_ssl_mode(const Parameters& given, const Parameters& all) {
  if (given.contains("sslmode") || std::getenv("PGSSLMODE") != nullptr) return true;
  const auto found = all.find("sslmode");
  return found != all.end() && found->second != "prefer";
}

bool all_here(const std::vector<Host>& hosts) {
  return std::all_of(hosts.begin(), hosts.end(), [](const Host& host) { return host.is_here(); });
}

std::optional<std::string> add_authorities(Parameters& parameters) {
  if (parameters.contains("sslrootcert") || has_own_authorities()) return std::nullopt;
  parameters["sslrootcert"] = system_authorities();
  if (!parameters["sslrootcert"].empty()) return std::nullopt;
  return "the system's certificates were not found: install ca-certificates, or name a file with `sslrootcert`";
}

void add_defaults(Parameters& parameters, const std::string& name) {
  parameters.emplace("target_session_attrs", "read-write");
  parameters.emplace("connect_timeout", "5");
  parameters.emplace("keepalives", "1");
  parameters.emplace("keepalives_idle", "5");
  parameters.emplace("keepalives_interval", "3");
  parameters.emplace("keepalives_count", "3");
  parameters.emplace("tcp_user_timeout", "10000");
  parameters.emplace("gssencmode", "disable");
  parameters.emplace("application_name", "duet-rpc " + name);
  parameters["client_encoding"] = "UTF8";
}

// What libpq has when nobody said anything is not "given".
void forget_compiled(Parameters& all, const Parameters& given, const std::string& name, const char* variable,
                     const std::string& compiled) {
  if (!given.contains(name) && std::getenv(variable) == nullptr && all[name] == compiled) all.erase(name);
}

}  // namespace

bool is_loopback(const std::string& address) {
  in_addr four{};
  if (::inet_pton(AF_INET, address.c_str(), &four) == 1) return (ntohl(four.s_addr) >> 24U) == 127;
  in6_addr six{};
  if (::inet_pton(AF_INET6, address.c_str(), &six) != 1) return false;
  if (IN6_IS_ADDR_V4MAPPED(&six)) return six.s6_addr[12] == 127;
  return IN6_IS_ADDR_LOOPBACK(&six);
}

bool Host::is_unix_socket() const {
  return address.empty() && (name.empty() || name.starts_with('/') || name.starts_with('@'));
}

bool Host::is_here() const {
  if (!address.empty()) return is_loopback(address);
  return is_unix_socket() || name == "localhost" || is_loopback(name);
}

std::string Host::text() const {
  const std::string& shown = name.empty() ? address : name;
  return (shown.find(':') == std::string::npos ? shown : '[' + shown + ']') + ':' + port;
}

tl::expected<StoreAddress, std::string> StoreAddress::parse(const std::string& store, const Wishes& wishes) {
  StoreAddress address;
  const auto given = parse_url(store, address.has_password_);
  if (!given) return tl::unexpected<std::string>(malformed);
  if (given->contains("host") && !is_host_list(given->at("host"))) return tl::unexpected<std::string>(malformed);
  if (given->contains("port") && !is_port_list(given->at("port"))) return tl::unexpected<std::string>(malformed);
  auto all = with_libpq_sources(*given);
  if (!all) return tl::unexpected(all.error());

  const auto hosts = take_hosts(*all);
  if (!hosts) return tl::unexpected<std::string>(malformed);
  address.hosts_ = *hosts;
  if (!all_here(address.hosts_)) {
    if (!says_ssl_mode(*given, *all)) (*all)["sslmode"] = "verify-full";
    address.insecure_ = (*all)["sslmode"] != "verify-full";
    if (address.insecure_ && !wishes.insecure) return tl::unexpected<std::string>(too_little_tls);
  }
  if ((*all)["sslmode"].starts_with("verify")) {
    if (auto missing = add_authorities(*all)) return tl::unexpected(*missing);
  }
  forget_compiled(*all, *given, "target_session_attrs", "PGTARGETSESSIONATTRS", "any");
  forget_compiled(*all, *given, "gssencmode", "PGGSSENCMODE", "prefer");
  add_defaults(*all, wishes.name);
  address.parameters_ = std::move(*all);
  return address;
}

std::string StoreAddress::text() const {
  std::string text = user() + '@';
  for (const Host& host : hosts_) {
    if (!text.ends_with('@')) text += ',';
    text += host.text();
  }
  return text + '/' + database();
}

std::string StoreAddress::parameter(const std::string& name) const {
  const auto found = parameters_.find(name);
  return found == parameters_.end() ? std::string() : found->second;
}

}  // namespace duet::task::postgres
