#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace duet::rpc {

/// The length of the well-formed UTF-8 character that starts at `at`, or 0 when there is none
/// (overlong, surrogate, above U+10FFFF, truncated, stray continuation).
inline std::size_t utf8_length(const char* at, const char* end) {
  const auto byte = [at](std::size_t i) { return static_cast<unsigned char>(at[i]); };
  const auto continues = [&](std::size_t i) { return (byte(i) & 0xC0) == 0x80; };
  const auto left = static_cast<std::size_t>(end - at);
  if (left == 0) return 0;
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead < 0xC2) return 0;
  if (lead < 0xE0) return left >= 2 && continues(1) ? 2 : 0;
  if (lead < 0xF0) {
    if (left < 3 || !continues(1) || !continues(2)) return 0;
    if (lead == 0xE0 && byte(1) < 0xA0) return 0;
    if (lead == 0xED && byte(1) > 0x9F) return 0;
    return 3;
  }
  if (lead > 0xF4 || left < 4 || !continues(1) || !continues(2) || !continues(3)) return 0;
  if (lead == 0xF0 && byte(1) < 0x90) return 0;
  if (lead == 0xF4 && byte(1) > 0x8F) return 0;
  return 4;
}

bool is_utf8(std::string_view text);

/// With U+FFFD for each byte that is not UTF-8.
std::string valid_utf8(std::string text);

/// The only places that cut text. None of them cuts a character in two; a byte that is not UTF-8 counts as one.

/// The first `most` characters.
std::string_view first_characters(std::string_view text, std::size_t most);
/// As many characters from the front as `most` bytes hold.
std::string_view first_bytes(std::string_view text, std::size_t most);
/// As many characters from the end as `most` bytes hold.
std::string_view last_bytes(std::string_view text, std::size_t most);
/// For bytes that more will follow: all but a character that has only begun at their end.
std::string_view whole_characters(std::string_view bytes);
/// For bytes that something came before: all but the rest of a character that began there.
std::string_view without_rest(std::string_view bytes);

}  // namespace duet::rpc
