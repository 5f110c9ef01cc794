#pragma once

namespace duet::app {

/// Marks that change the direction of the text around them, and separators of lines that are no line ends to us: what
/// is shown would not be what is there.
constexpr bool turns_text(char32_t character) {
  const auto between = [character](char32_t first, char32_t last) { return character >= first && character <= last; };
  return character == 0x61c || between(0x200e, 0x200f) || between(0x2028, 0x202e) || between(0x2066, 0x2069);
}

/// Those, controls, and what takes no room or looks like a blank.
constexpr bool is_unseen(char32_t character) {
  const auto between = [character](char32_t first, char32_t last) { return character >= first && character <= last; };
  return turns_text(character) || character < 0x20 || between(0x7f, 0x9f) || character == 0xad || character == 0x34f ||
         between(0x115f, 0x1160) || between(0x17b4, 0x17b5) || between(0x180b, 0x180f) || between(0x200b, 0x200f) ||
         between(0x2060, 0x206f) || character == 0x3164 || between(0xfe00, 0xfe0f) || character == 0xfeff ||
         character == 0xffa0 || between(0xe0000, 0xe0fff);
}

}  // namespace duet::app
