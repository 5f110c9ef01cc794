#include "duet/framing/url_query.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace duet::framing {
namespace {

std::optional<unsigned> hex_value(char c) {
  if (c >= '0' && c <= '9') return static_cast<unsigned>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<unsigned>(c - 'a') + 10;
  if (c >= 'A' && c <= 'F') return static_cast<unsigned>(c - 'A') + 10;
  return std::nullopt;
}

std::optional<char> read_escape(std::string_view text) {
  const std::optional<unsigned> high = text.size() > 2 ? hex_value(text[1]) : std::nullopt;
  const std::optional<unsigned> low = text.size() > 2 ? hex_value(text[2]) : std::nullopt;
  if (!high || !low) return std::nullopt;
  return static_cast<char>(static_cast<unsigned char>(*high * 16 + *low));
}

bool may_stand_in_query(char c) { return c > ' ' && c < 0x7F && c != '#'; }

std::optional<std::string> url_decoded(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    std::size_t used = 1;
    char c = text.front();
    if (!may_stand_in_query(c)) return std::nullopt;
    if (c == '+') c = ' ';
    if (c == '%') {
      const std::optional<char> escaped = read_escape(text);
      if (!escaped) return std::nullopt;
      c = *escaped;
      used = 3;
    }
    out += c;
    text.remove_prefix(used);
  }
  return out;
}

std::optional<QueryPart> read_query_part(std::string_view part) {
  const std::size_t equal_sign = part.find('=');
  if (equal_sign == std::string_view::npos || equal_sign == 0) return std::nullopt;
  std::optional<std::string> name = url_decoded(part.substr(0, equal_sign));
  std::optional<std::string> value = url_decoded(part.substr(equal_sign + 1));
  if (!name || !value) return std::nullopt;
  return QueryPart{std::move(*name), std::move(*value)};
}

}  // namespace

std::optional<std::vector<QueryPart>> read_query(std::string_view query) {
  std::vector<QueryPart> parts;
  while (!query.empty()) {
    const std::size_t end = std::min(query.find('&'), query.size());
    std::optional<QueryPart> part = read_query_part(query.substr(0, end));
    if (!part || end + 1 == query.size()) return std::nullopt;
    parts.push_back(std::move(*part));
    query.remove_prefix(std::min(end + 1, query.size()));
  }
  return parts;
}

}  // namespace duet::framing
