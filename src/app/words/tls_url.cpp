#include "app/words/tls_url.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "app/words/number.h"

namespace duet::app {
namespace {

constexpr std::string_view tls_scheme = "tls://";
constexpr std::size_t longest_name = 253;  // of DNS

bool is_scheme(std::string_view text) {
  const auto lower = [](char c) { return std::tolower(static_cast<unsigned char>(c)); };
  return std::ranges::equal(text, tls_scheme, {}, lower, lower);
}

bool is_name(std::string_view host) {
  const auto may_be_in_name = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '-' || c == '_';
  };
  return !host.empty() && host.size() <= longest_name && host.front() != '-' && host.front() != '.' &&
         std::ranges::all_of(host, may_be_in_name);
}

// What stands behind the `%` of a link-local one says which network card is meant.
bool is_ipv6(std::string_view host) {
  const std::string address(host.substr(0, host.find('%')));
  const std::string_view card = host.substr(address.size());
  std::array<unsigned char, sizeof(in6_addr)> room{};
  return inet_pton(AF_INET6, address.c_str(), room.data()) == 1 && (card.empty() || is_name(card.substr(1)));
}

std::optional<std::uint16_t> port_of(std::string_view text) {
  constexpr std::int64_t most = 65535;
  const bool is_plain = !text.empty() && std::isdigit(static_cast<unsigned char>(text.front())) != 0;
  const std::optional<std::int64_t> port = is_plain ? parse_number(text) : std::nullopt;
  if (!port || *port < 1 || *port > most) return std::nullopt;
  return static_cast<std::uint16_t>(*port);
}

}  // namespace

std::string TlsUrl::place() const {
  const bool needs_brackets = host.find(':') != std::string::npos;
  return (needs_brackets ? '[' + host + ']' : host) + ':' + std::to_string(port);
}

bool is_host(std::string_view text) { return is_name(text) || is_ipv6(text); }

std::optional<TlsUrl> parse_tls_url(std::string_view text) {
  if (!is_scheme(text.substr(0, tls_scheme.size()))) return std::nullopt;
  text.remove_prefix(tls_scheme.size());
  const bool bracketed = text.starts_with('[');
  const std::size_t end = bracketed ? text.find(']') : std::min(text.find(':'), text.size());
  if (end == std::string_view::npos) return std::nullopt;
  TlsUrl url{.host = std::string(bracketed ? text.substr(1, end - 1) : text.substr(0, end))};
  if (!(bracketed ? is_ipv6(url.host) : is_name(url.host))) return std::nullopt;
  const std::string_view rest = text.substr(end + (bracketed ? 1 : 0));
  if (rest.empty()) return url;
  const std::optional<std::uint16_t> port = rest.front() == ':' ? port_of(rest.substr(1)) : std::nullopt;
  if (!port) return std::nullopt;
  url.port = *port;
  return url;
}

}  // namespace duet::app
