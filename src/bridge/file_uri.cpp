#include "bridge/file_uri.h"

#include <algorithm>

#include "duet/rpc/json_text.h"

namespace duet::bridge {
namespace {

bool stands_for_itself(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         std::string_view("/-._~").find(c) != std::string_view::npos;
}

std::string resolve_escapes(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size(); ++at) {
    const bool escape = text[at] == '%' && at + 2 < text.size() && rpc::hex_digit(text[at + 1]) >= 0 &&
                        rpc::hex_digit(text[at + 2]) >= 0;
    if (!escape) {
      out += text[at];
      continue;
    }
    out += static_cast<char>(rpc::hex_digit(text[at + 1]) * 16 + rpc::hex_digit(text[at + 2]));
    at += 2;
  }
  return out;
}

bool same_in_any_case(std::string_view text, std::string_view lower) {
  return std::ranges::equal(text, lower, [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a + 32 : a) == b; });
}

}  // namespace

std::string uri_of(std::string_view path) {
  constexpr std::string_view hex = "0123456789ABCDEF";
  std::string out = "file://";
  for (const char c : path) {
    if (stands_for_itself(c)) {
      out += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      out += {'%', hex[byte >> 4U], hex[byte & 15U]};
    }
  }
  return out;
}

std::optional<std::string> path_of(std::string_view uri) {
  constexpr std::string_view scheme = "file:";
  constexpr std::string_view this_machine = "localhost";
  if (!same_in_any_case(uri.substr(0, scheme.size()), scheme)) return std::nullopt;
  uri.remove_prefix(scheme.size());
  if (uri.starts_with("//")) {
    uri.remove_prefix(2);
    if (same_in_any_case(uri.substr(0, uri.find('/')), this_machine)) uri.remove_prefix(this_machine.size());
  }
  std::string path = resolve_escapes(uri.substr(0, uri.find_first_of("?#")));
  if (!path.starts_with('/') || path.find('\0') != std::string::npos) return std::nullopt;
  return path;
}

}  // namespace duet::bridge
