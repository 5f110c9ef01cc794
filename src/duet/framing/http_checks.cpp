#include "duet/framing/http_checks.h"

#include <algorithm>

#include "duet/framing/http_text.h"

namespace duet::framing {
namespace {

bool is_number_up_to(std::string_view digits, unsigned most) {
  constexpr std::size_t most_digits = 5;
  if (digits.empty() || digits.size() > most_digits) return false;
  unsigned value = 0;
  for (const char c : digits) {
    if (c < '0' || c > '9') return false;
    value = value * 10 + static_cast<unsigned>(c - '0');
  }
  return value <= most;
}

// One spelling a number: what stands in other forms is read differently by different programs.
bool is_octet(std::string_view digits) {
  return is_number_up_to(digits, 255) && (digits.size() == 1 || !digits.starts_with('0'));
}

bool is_loopback_address(std::string_view name) {
  constexpr std::string_view net = "127.";
  if (!name.starts_with(net)) return false;
  name.remove_prefix(net.size());
  for (int dots = 0; dots < 2; ++dots) {
    const std::size_t dot = name.find('.');
    if (dot == std::string_view::npos || !is_octet(name.substr(0, dot))) return false;
    name.remove_prefix(dot + 1);
  }
  return is_octet(name);
}

bool is_loopback_name(std::string_view name) {
  return same_word(name, "localhost") || is_loopback_address(name) || name == "[::1]";
}

bool is_same_name(std::string_view name, std::string_view other) {
  return std::equal(name.begin(), name.end(), other.begin(), other.end(),
                    [](char a, char b) { return ascii_lower(a) == ascii_lower(b); });
}

// `*.example.org` is any one name below it, as in a certificate.
bool is_one_of(std::string_view name, std::string_view known) {
  if (!known.starts_with("*.")) return is_same_name(name, known);
  const std::size_t dot = name.find('.');
  return dot != std::string_view::npos && dot > 0 && is_same_name(name.substr(dot), known.substr(1));
}

bool is_origin(std::string_view origin, std::string_view scheme, std::string_view host) {
  constexpr std::string_view separator = "://";
  return origin.size() == scheme.size() + separator.size() + host.size() && origin.starts_with(scheme) &&
         origin.substr(scheme.size()).starts_with(separator) && origin.ends_with(host);
}

bool opens_the_page(const HttpHead& head) {
  return head.method == "GET" && head.path == "/" && head.fields.find("sec-fetch-mode") == "navigate" &&
         head.fields.find("sec-fetch-dest") == "document";
}

bool is_foreign_site(const HttpField& field) {
  return same_word(field.name, "sec-fetch-site") && field.value != "same-origin" && field.value != "none";
}

// Cuts one `name=value`, the value a token or in quotes, and the `;` behind it. False: it is none.
bool cut_parameter(std::string_view& rest, std::string_view& name, std::string_view& value) {
  const std::size_t equal_sign = rest.find('=');
  if (equal_sign == std::string_view::npos) return false;
  name = without_blanks(rest.substr(0, equal_sign));
  rest.remove_prefix(equal_sign + 1);
  if (!rest.starts_with('"')) {
    value = cut_member(rest, ';');
    return is_token(name) && is_token(value);
  }
  const std::size_t quote = rest.find('"', 1);
  if (quote == std::string_view::npos) return false;
  value = rest.substr(1, quote - 1);
  rest.remove_prefix(quote + 1);
  return is_token(name) && value.find('\\') == std::string_view::npos && cut_member(rest, ';').empty();
}

bool is_json_type(std::string_view rest) {
  if (!same_word(cut_member(rest, ';'), "application/json")) return false;
  while (!without_blanks(rest).empty()) {
    std::string_view name;
    std::string_view value;
    if (!cut_parameter(rest, name, value)) return false;
    if (same_word(name, "charset") && !same_word(value, "utf-8")) return false;
  }
  return true;
}

// `text/*;q=0.5` for `text/plain`; what has the weight 0 is not wanted.
bool is_range_for(std::string_view range, std::string_view type) {
  const std::string_view name = cut_member(range, ';');
  const std::string_view family = type.substr(0, type.find('/') + 1);
  const bool is_family = name.ends_with("/*") && same_word(name.substr(0, name.size() - 1), family);
  if (name != "*/*" && !is_family && !same_word(name, type)) return false;
  while (!range.empty()) {
    std::string_view value = cut_member(range, ';');
    const bool is_weight = same_word(cut_member(value, '='), "q");
    if (is_weight && without_blanks(value).find_first_not_of("0.") == std::string_view::npos) return false;
  }
  return true;
}

}  // namespace

std::optional<std::string_view> name_of_host(std::string_view host) {
  const std::size_t bracket = host.starts_with('[') ? host.find(']') : 0;
  if (bracket == std::string_view::npos) return std::nullopt;
  const std::size_t colon = host.find(':', bracket);
  if (colon == std::string_view::npos) return host;
  constexpr unsigned most_port = 65'535;
  if (!is_number_up_to(host.substr(colon + 1), most_port)) return std::nullopt;
  return host.substr(0, colon);
}

std::optional<HttpFault> host_fault(const HttpHead& head, const HttpNames& names) {
  const std::optional<std::string_view> name = name_of_host(head.host);
  if (!name || name->empty()) return HttpFault::host;
  if (names.loopback && is_loopback_name(*name)) return std::nullopt;
  const bool is_known = std::any_of(names.others.begin(), names.others.end(),
                                    [&](const std::string& other) { return is_one_of(*name, other); });
  return is_known ? std::nullopt : std::optional(HttpFault::host);
}

std::optional<HttpFault> origin_fault(const HttpHead& head, std::string_view scheme) {
  bool is_foreign = false;
  for (const HttpField& field : head.fields) {
    if (same_word(field.name, "origin") && !is_origin(field.value, scheme, head.host)) return HttpFault::origin;
    is_foreign = is_foreign || is_foreign_site(field);
  }
  return is_foreign && !opens_the_page(head) ? std::optional(HttpFault::origin) : std::nullopt;
}

std::optional<HttpFault> content_fault(const HttpHead& head) {
  if (head.content_length == 0) return std::nullopt;
  const bool is_plain_json = head.fields.count("content-type") == 1 && head.fields.count("content-encoding") == 0 &&
                             is_json_type(*head.fields.find("content-type"));
  return is_plain_json ? std::nullopt : std::optional(HttpFault::content_type);
}

std::optional<HttpFault> length_fault(const HttpHead& head, std::uint64_t most) {
  return head.content_length > most ? std::optional(HttpFault::too_large) : std::nullopt;
}

std::optional<HttpFault> expectation_fault(const HttpHead& head) {
  return head.expectation == HttpExpectation::other ? std::optional(HttpFault::expectation) : std::nullopt;
}

bool survives_refusal(const HttpHead& head) {
  return head.keeps_alive && head.content_length <= http_most_skipped &&
         (head.content_length == 0 || head.expectation == HttpExpectation::none);
}

bool accepts(const HttpHead& head, std::string_view type) {
  if (head.fields.count("accept") == 0) return true;
  for (const HttpField& field : head.fields) {
    if (!same_word(field.name, "accept")) continue;
    for (std::string_view rest = field.value; !rest.empty();) {
      if (is_range_for(cut_member(rest, ','), type)) return true;
    }
  }
  return false;
}

bool has_etag(const HttpHead& head, std::string_view etag) {
  for (const HttpField& field : head.fields) {
    if (!same_word(field.name, "if-none-match")) continue;
    for (std::string_view rest = field.value; !rest.empty();) {
      std::string_view tag = cut_member(rest, ',');
      if (tag.starts_with("W/")) tag.remove_prefix(2);
      if (tag == etag || tag == "*") return true;
    }
  }
  return false;
}

}  // namespace duet::framing
