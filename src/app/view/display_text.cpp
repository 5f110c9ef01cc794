#include "app/view/display_text.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "app/words/unseen.h"
#include "duet/rpc/utf8.h"

namespace duet::app {
namespace {

constexpr std::string_view replacement = "\xEF\xBF\xBD";
constexpr std::string_view ellipsis = "\xE2\x80\xA6";

struct Range {
  char32_t first;
  char32_t last;
};

// Marks that combine, joiners and variation selectors, of the scripts that have them most.
constexpr std::array zero_width = {
    Range{0x0300, 0x036F}, Range{0x0483, 0x0489},   Range{0x0591, 0x05BD},   Range{0x0610, 0x061A},
    Range{0x064B, 0x065F}, Range{0x06D6, 0x06DC},   Range{0x0900, 0x0902},   Range{0x093A, 0x093A},
    Range{0x093C, 0x093C}, Range{0x0941, 0x0948},   Range{0x094D, 0x094D},   Range{0x0E31, 0x0E31},
    Range{0x0E34, 0x0E3A}, Range{0x0E47, 0x0E4E},   Range{0x1AB0, 0x1AFF},   Range{0x1DC0, 0x1DFF},
    Range{0x200B, 0x200F}, Range{0x202A, 0x202E},   Range{0x2060, 0x2064},   Range{0x20D0, 0x20FF},
    Range{0x302A, 0x302D}, Range{0x3099, 0x309A},   Range{0xFE00, 0xFE0F},   Range{0xFE20, 0xFE2F},
    Range{0xFEFF, 0xFEFF}, Range{0x1F3FB, 0x1F3FF}, Range{0xE0001, 0xE007F}, Range{0xE0100, 0xE01EF},
};

// East Asian wide and full-width forms, and emoji that are shown as pictures.
constexpr std::array double_width = {
    Range{0x1100, 0x115F},   Range{0x231A, 0x231B},   Range{0x23E9, 0x23EC},   Range{0x25FD, 0x25FE},
    Range{0x2614, 0x2615},   Range{0x2648, 0x2653},   Range{0x26AA, 0x26AB},   Range{0x26BD, 0x26BE},
    Range{0x26C4, 0x26C5},   Range{0x2705, 0x2705},   Range{0x270A, 0x270B},   Range{0x2728, 0x2728},
    Range{0x274C, 0x274C},   Range{0x2753, 0x2755},   Range{0x2795, 0x2797},   Range{0x2B1B, 0x2B1C},
    Range{0x2B50, 0x2B50},   Range{0x2E80, 0x303E},   Range{0x3041, 0x33FF},   Range{0x3400, 0x4DBF},
    Range{0x4E00, 0xA4CF},   Range{0xA960, 0xA97F},   Range{0xAC00, 0xD7A3},   Range{0xF900, 0xFAFF},
    Range{0xFE30, 0xFE6F},   Range{0xFF00, 0xFF60},   Range{0xFFE0, 0xFFE6},   Range{0x1F004, 0x1F004},
    Range{0x1F0CF, 0x1F0CF}, Range{0x1F18E, 0x1F18E}, Range{0x1F191, 0x1F19A}, Range{0x1F200, 0x1F320},
    Range{0x1F32D, 0x1F335}, Range{0x1F337, 0x1F37C}, Range{0x1F37E, 0x1F393}, Range{0x1F3A0, 0x1F3CA},
    Range{0x1F3E0, 0x1F3F0}, Range{0x1F3F8, 0x1F43E}, Range{0x1F440, 0x1F4FC}, Range{0x1F4FF, 0x1F53D},
    Range{0x1F54B, 0x1F567}, Range{0x1F5FB, 0x1F64F}, Range{0x1F680, 0x1F6C5}, Range{0x1F6D0, 0x1F6D2},
    Range{0x1F6EB, 0x1F6FC}, Range{0x1F7E0, 0x1F7EB}, Range{0x1F90C, 0x1F9FF}, Range{0x1FA70, 0x1FAFF},
    Range{0x20000, 0x3FFFD},
};

bool is_in(char32_t character, std::span<const Range> ranges) {
  const auto found = std::ranges::lower_bound(ranges, character, {}, &Range::last);
  return found != ranges.end() && found->first <= character;
}

// Bytes that begin no character count as one of their own.
std::size_t length_of_first(std::string_view text) {
  return std::max<std::size_t>(rpc::utf8_length(text.data(), text.data() + text.size()), 1);
}

char32_t decoded(std::string_view character) {
  const auto byte = [&](std::size_t i) { return static_cast<char32_t>(static_cast<unsigned char>(character[i])); };
  switch (character.size()) {
    case 2:
      return ((byte(0) & 0x1FU) << 6U) | (byte(1) & 0x3FU);
    case 3:
      return ((byte(0) & 0x0FU) << 12U) | ((byte(1) & 0x3FU) << 6U) | (byte(2) & 0x3FU);
    case 4:
      return ((byte(0) & 0x07U) << 18U) | ((byte(1) & 0x3FU) << 12U) | ((byte(2) & 0x3FU) << 6U) | (byte(3) & 0x3FU);
    default:
      return byte(0);
  }
}

std::size_t width_of(std::string_view character) {
  const char32_t value = decoded(character);
  if (value < 0x300) return 1;
  if (is_in(value, zero_width)) return 0;
  return is_in(value, double_width) ? 2 : 1;
}

// How many bytes from the front fit into `width` columns.
std::size_t bytes_within(std::string_view text, std::size_t width) {
  std::size_t bytes = 0;
  std::size_t columns = 0;
  while (bytes < text.size()) {
    const std::string_view character = text.substr(bytes, length_of_first(text.substr(bytes)));
    columns += width_of(character);
    if (columns > width) break;
    bytes += character.size();
  }
  return bytes;
}

}  // namespace

std::string one_line(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = rpc::utf8_length(text.data(), text.data() + text.size());
    const std::string_view character = text.substr(0, std::max<std::size_t>(length, 1));
    const char32_t value = decoded(character);
    const bool blank = character == "\n" || character == "\r" || character == "\t";
    const bool control = value < 0x20 || (value >= 0x7F && value < 0xA0) || turns_text(value);
    out += blank ? " " : length == 0 || control ? replacement : character;
    text.remove_prefix(character.size());
  }
  return out;
}

std::string harmless_lines(std::string_view text) {
  std::string out;
  for (std::size_t end = 0; (end = text.find('\n')) != std::string_view::npos; text.remove_prefix(end + 1)) {
    out += one_line(text.substr(0, end)) + '\n';
  }
  return out + one_line(text);
}

std::size_t display_width(std::string_view text) {
  std::size_t columns = 0;
  while (!text.empty()) {
    const std::string_view character = text.substr(0, length_of_first(text));
    columns += width_of(character);
    text.remove_prefix(character.size());
  }
  return columns;
}

std::string cut_to_width(std::string_view text, std::size_t width) {
  if (bytes_within(text, width) == text.size()) return std::string(text);
  if (width == 0) return {};
  return std::string(text.substr(0, bytes_within(text, width - 1))) + std::string(ellipsis);
}

}  // namespace duet::app
