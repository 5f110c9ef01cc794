#include "app/settings/store_url.h"

#include <algorithm>
#include <cstddef>

namespace duet::app {
namespace {

using Text = std::string_view;

constexpr Text schemes[] = {"postgresql://", "postgres://"};
// What may be seen; a value of any other name may be a secret.
constexpr Text open_names[] = {"host",
                               "hostaddr",
                               "port",
                               "dbname",
                               "user",
                               "service",
                               "passfile",
                               "sslmode",
                               "sslrootcert",
                               "sslcert",
                               "sslkey",
                               "target_session_attrs",
                               "gssencmode",
                               "connect_timeout",
                               "application_name"};
constexpr Text secret_names[] = {"password", "sslpassword", "oauth_client_secret", "scram_client_key",
                                 "scram_server_key"};

bool is_hexadecimal(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

// Printable, without what has a meaning in URLs, unless it is named; each `%` with its two digits.
bool is_plain(Text text, Text also = "") {
  constexpr Text meaning = "/?#@:[]\"<>\\^`{|} ";
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    const bool fits = c > 0x20 && c < 0x7f && (meaning.find(c) == Text::npos || also.find(c) != Text::npos);
    if (!fits) return false;
    if (c == '%' && (at + 2 >= text.size() || !is_hexadecimal(text[at + 1]) || !is_hexadecimal(text[at + 2])))
      return false;
  }
  return true;
}

// Up to a separator; both are taken away.
Text take_part(Text& rest, char separator) {
  const std::size_t end = std::min(rest.find(separator), rest.size());
  const Text part = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return part;
}

bool is_port(Text text) {
  return text.size() <= 5 && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

// `name`, `name:5432`, `[::1]:5432`, or nothing.
bool is_host(Text host) {
  if (host.starts_with('[')) {
    const std::size_t end = host.find(']');
    if (end == Text::npos || !is_plain(host.substr(1, end - 1), ":")) return false;
    const Text port = host.substr(end + 1);
    return port.empty() || (port.front() == ':' && is_port(port.substr(1)));
  }
  const Text name = take_part(host, ':');
  return is_plain(name) && is_port(host);
}

bool are_hosts(Text hosts) {
  while (!hosts.empty()) {
    if (!is_host(take_part(hosts, ','))) return false;
  }
  return true;
}

// `user:password`, or one of them.
bool add_user(Text user, StoreUrl& out) {
  const Text name = take_part(user, ':');
  if (!is_plain(name) || !is_plain(user, ":")) return false;
  out.has_password = !user.empty();
  out.shown.append(name).append(user.empty() ? "@" : ":***@");
  return true;
}

int digit_of(char c) { return c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10; }

// As libpq reads it. Of text that is_plain().
std::string decoded(Text text) {
  std::string out;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const bool is_code = text[at] == '%';
    out += is_code ? static_cast<char>(digit_of(text[at + 1]) * 16 + digit_of(text[at + 2])) : text[at];
    if (is_code) at += 2;
  }
  return out;
}

// Behind a password even a name may be a piece of it, cut off by an `&` that was not written as %26.
bool add_parameters(Text parameters, StoreUrl& out) {
  char before = '?';
  bool follows_secret = false;
  while (!parameters.empty()) {
    Text value = take_part(parameters, '&');
    const Text name = take_part(value, '=');
    if (name.empty() || !is_plain(name) || !is_plain(value, "/:[]")) return false;
    const bool is_secret = std::ranges::find(secret_names, decoded(name)) != std::end(secret_names);
    const bool is_open = std::ranges::find(open_names, decoded(name)) != std::end(open_names);
    out.has_password = out.has_password || (is_secret && !value.empty());
    out.shown += before;
    if (!follows_secret || is_secret || is_open) out.shown.append(name).append("=");
    out.shown += is_open ? value : "***";
    follows_secret = follows_secret || !is_open;  // any other name may be a mistyped one
    before = '&';
  }
  return true;
}

}  // namespace

bool is_postgresql(Text text) {
  return std::ranges::any_of(schemes, [text](Text scheme) { return text.starts_with(scheme); });
}

std::optional<StoreUrl> read_store_url(Text text) {
  const auto* const scheme = std::ranges::find_if(schemes, [text](Text known) { return text.starts_with(known); });
  if (scheme == std::end(schemes)) return std::nullopt;
  StoreUrl out{.shown = std::string(*scheme)};
  text.remove_prefix(scheme->size());
  const std::size_t question = text.find('?');
  const Text parameters = question == Text::npos ? Text() : text.substr(question + 1);
  Text database = text.substr(0, question);
  Text hosts = take_part(database, '/');
  const bool has_user = hosts.find('@') != Text::npos;
  const Text user = has_user ? take_part(hosts, '@') : Text();
  const bool has_path = text.substr(0, question).find('/') != Text::npos;
  if (has_user && !add_user(user, out)) return std::nullopt;
  if (!are_hosts(hosts) || !is_plain(database)) return std::nullopt;
  out.shown.append(hosts).append(has_path ? "/" : "").append(database);
  if (!add_parameters(parameters, out)) return std::nullopt;
  return out;
}

std::string shown_store(Text text) {
  const auto url = read_store_url(text);
  return url ? url->shown : "***";
}

}  // namespace duet::app
