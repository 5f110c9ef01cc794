#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace duet::framing {

// The letters and lists of HTTP heads, for those who read them.

inline char ascii_lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

/// Whatever the case of its letters; `lower_case` has none of the other case.
inline bool same_word(std::string_view text, std::string_view lower_case) {
  return text.size() == lower_case.size() &&
         std::equal(text.begin(), text.end(), lower_case.begin(), [](char a, char b) { return ascii_lower(a) == b; });
}

/// Without those at its ends. The decoder takes no tab, so blanks are all there is.
inline std::string_view without_blanks(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

inline bool is_token_character(char c) {
  const char small = ascii_lower(c);
  if ((small >= 'a' && small <= 'z') || (c >= '0' && c <= '9')) return true;
  return c != '\0' && std::string_view("-!#$%&'*+.^_`|~").find(c) != std::string_view::npos;
}

inline bool is_token(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), is_token_character);
}

/// Cuts what stands before the next separator, without the blanks around it.
inline std::string_view cut_member(std::string_view& rest, char separator) {
  const std::size_t at = std::min(rest.find(separator), rest.size());
  const std::string_view member = without_blanks(rest.substr(0, at));
  rest.remove_prefix(std::min(rest.size(), at + 1));
  return member;
}

}  // namespace duet::framing
