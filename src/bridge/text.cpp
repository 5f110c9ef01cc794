#include "bridge/text.h"

#include <algorithm>
#include <utility>

#include "duet/rpc/utf8.h"

namespace duet::bridge {
namespace {

constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";

std::size_t length_of(char lead) {
  const auto byte = static_cast<unsigned char>(lead);
  return byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

std::uint64_t units_of(std::size_t length, Encoding encoding) {
  if (encoding == Encoding::utf8) return length;
  return encoding == Encoding::utf16 && length == 4 ? 2 : 1;
}

// The offset of the character that unit `wanted` of the line belongs to; the line's end if it has fewer.
std::size_t offset_of_unit(std::string_view line, std::uint64_t wanted, Encoding encoding) {
  std::size_t at = 0;
  for (std::uint64_t units = 0; at < line.size(); at += length_of(line[at])) {
    units += units_of(length_of(line[at]), encoding);
    if (units > wanted) break;
  }
  return at;
}

}  // namespace

std::string_view name_of(Encoding encoding) {
  switch (encoding) {
    case Encoding::utf8:
      return "utf-8";
    case Encoding::utf16:
      return "utf-16";
    case Encoding::utf32:
      return "utf-32";
  }
  return "utf-16";
}

std::optional<Encoding> encoding_named(std::string_view name) {
  for (const Encoding encoding : {Encoding::utf8, Encoding::utf16, Encoding::utf32}) {
    if (name == name_of(encoding)) return encoding;
  }
  return std::nullopt;
}

std::size_t count_characters(std::string_view text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80; }));
}

Text::Text(std::string bytes) : text_(rpc::valid_utf8(std::move(bytes))) {
  if (text_.starts_with(byte_order_mark)) text_.erase(0, byte_order_mark.size());
  find_lines();
}

void Text::find_lines() {
  starts_.assign(1, 0);
  for (std::size_t at = text_.find_first_of("\r\n"); at != std::string::npos; at = text_.find_first_of("\r\n", at)) {
    at += text_.compare(at, 2, "\r\n") == 0 ? 2 : 1;
    starts_.push_back(at);
  }
}

std::string_view Text::line(std::size_t index) const {
  if (index >= starts_.size()) return {};
  const std::size_t begin = starts_[index];
  const std::size_t end = index + 1 < starts_.size() ? starts_[index + 1] : text_.size();
  std::string_view line = std::string_view(text_).substr(begin, end - begin);
  if (line.ends_with('\n')) line.remove_suffix(1);
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

std::optional<Position> Text::position(Place place, Encoding encoding) const {
  if (place.line == 0 || place.line > line_count() || place.column == 0) return std::nullopt;
  const std::string_view text = line(place.line - 1);
  Position position{.line = place.line - 1};
  std::size_t at = 0;
  for (std::size_t column = 1; column < place.column; ++column) {
    if (at == text.size()) return std::nullopt;
    position.character += units_of(length_of(text[at]), encoding);
    at += length_of(text[at]);
  }
  return position;
}

std::size_t Text::offset(Position position, Encoding encoding) const {
  if (position.line >= line_count()) return text_.size();
  const auto index = static_cast<std::size_t>(position.line);
  return starts_[index] + offset_of_unit(line(index), position.character, encoding);
}

Place Text::place(Position position, Encoding encoding) const {
  const std::size_t at = offset(position, encoding);
  const std::size_t index = std::min<std::uint64_t>(position.line, line_count() - 1);
  const std::size_t begin = starts_[index];
  return {.line = index + 1, .column = 1 + count_characters(std::string_view(text_).substr(begin, at - begin))};
}

void Text::replace(std::size_t begin, std::size_t end, std::string_view with) {
  if (end < begin) std::swap(begin, end);
  text_.replace(begin, end - begin, rpc::valid_utf8(std::string(with)));
  find_lines();
}

}  // namespace duet::bridge
