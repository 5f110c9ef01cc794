#include "duet/base/log_line.h"

#include <algorithm>
#include <charconv>

namespace duet::base {

namespace {

constexpr std::array<std::string_view, 5> kPlainLevels{"debug ", "info  ", "warn  ", "error ", "trace "};
constexpr std::array<std::string_view, 5> kColouredLevels{"\x1b[2mdebug\x1b[0m ", "\x1b[32minfo\x1b[0m  ",
                                                          "\x1b[33mwarn\x1b[0m  ", "\x1b[31merror\x1b[0m ",
                                                          "\x1b[2mtrace\x1b[0m "};
constexpr std::string_view kCutMark = "...";

enum class Style {
  message,      // quotes and backslashes mean nothing here
  text,         // inside quotes
  json_string,  // inside quotes, escaped by the sender
  json_not_string
};

constexpr char32_t kAsItIs = 0xFFFFFFFF;

/// The next piece of a text that is shown whole or not at all.
struct Piece {
  std::size_t bytes;          // taken from the text
  std::size_t chars;          // what it counts for when shown as it is
  char32_t escape = kAsItIs;  // else an escape for this is shown
};

unsigned char byte_at(std::string_view text, std::size_t index) { return static_cast<unsigned char>(text[index]); }

constexpr std::array<bool, 256> plain_characters = [] {
  std::array<bool, 256> plain{};
  for (std::size_t c = ' '; c <= '~'; ++c) plain.at(c) = c != '"' && c != '\\';
  return plain;
}();

bool is_plain(char c) { return plain_characters[static_cast<unsigned char>(c)]; }

std::size_t sequence_length(unsigned char first) {
  if (first < 0x80) return 1;
  if (first < 0xC2 || first > 0xF4) return 0;
  return first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
}

bool must_be_hidden(char32_t c) {
  return c < 0x20 || (c >= 0x7F && c <= 0x9F) ||  // C0, DEL, C1
         c == 0x61C || c == 0x200E || c == 0x200F || (c >= 0x2028 && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069);
}

Piece code_point(std::string_view text) {
  constexpr Piece invalid{1, 0, 0xFFFD};
  const std::size_t length = sequence_length(byte_at(text, 0));
  if (length == 0 || text.size() < length) return invalid;
  char32_t value = length == 1 ? byte_at(text, 0) : byte_at(text, 0) & (0x7Fu >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte_at(text, i) & 0xC0u) != 0x80) return invalid;
    value = value << 6 | (byte_at(text, i) & 0x3Fu);
  }
  const bool overlong = (length == 3 && value < 0x800) || (length == 4 && value < 0x10000);
  if (overlong || value > 0x10FFFF || (value >= 0xD800 && value <= 0xDFFF)) return invalid;
  return must_be_hidden(value) ? Piece{length, 0, value} : Piece{length, 1};
}

bool is_hex(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

/// A backslash in JSON with what belongs to it; a lone one, which valid JSON has not, is escaped.
Piece json_escape(std::string_view text) {
  if (text.size() >= 6 && text[1] == 'u' && std::all_of(text.begin() + 2, text.begin() + 6, is_hex)) return {6, 6};
  if (text.size() >= 2 && text[1] >= ' ' && text[1] <= '~') return {2, 2};
  return {1, 0, '\\'};
}

Piece next_piece(std::string_view text, Style style) {
  switch (text.front()) {
    case '"':
      if (style == Style::text || style == Style::json_string) return {1, 0, '"'};
      return {1, 1};
    case '\\':
      if (style == Style::message) return {1, 1};
      return style == Style::text ? Piece{1, 0, '\\'} : json_escape(text);
    default:
      return code_point(text);
  }
}

/// `\n` or `\u001b`: two or six characters.
std::string_view spell_escape(char32_t c, std::array<char, 6>& space) {
  constexpr std::string_view short_for = "\"\\\b\f\n\r\t";
  constexpr std::string_view letters = "\"\\bfnrt";
  constexpr std::string_view digits = "0123456789abcdef";
  if (const auto at = c < 0x80 ? short_for.find(static_cast<char>(c)) : short_for.npos; at != short_for.npos) {
    space = {'\\', letters[at]};
    return {space.data(), 2};
  }
  space = {'\\', 'u', digits[c >> 12 & 0xF], digits[c >> 8 & 0xF], digits[c >> 4 & 0xF], digits[c & 0xF]};
  return {space.data(), space.size()};
}

/// Appends at most `room` characters; false if that was not all.
bool append_safe(std::string& out, std::string_view text, Style style, std::size_t room) {
  std::array<char, 6> space;
  while (true) {
    const auto window = text.substr(0, room);
    // Called through a pointer, for each character, it would cost more than the rest of the line.
    const auto end = std::find_if_not(window.begin(), window.end(), [](char c) { return is_plain(c); });
    const auto plain = static_cast<std::size_t>(end - window.begin());
    out.append(text, 0, plain);
    text.remove_prefix(plain);
    room -= plain;
    if (text.empty()) return true;
    const Piece piece = next_piece(text, style);
    const bool as_it_is = piece.escape == kAsItIs;
    const auto shown = as_it_is ? text.substr(0, piece.bytes) : spell_escape(piece.escape, space);
    const std::size_t chars = as_it_is ? piece.chars : shown.size();
    if (chars > room) return false;
    out.append(shown);
    text.remove_prefix(piece.bytes);
    room -= chars;
  }
}

/// The mark stands behind the closing quote, where no client can put one.
void append_quoted(std::string& out, std::string_view text, Style style) {
  out.push_back('"');
  const bool whole = append_safe(out, text, style, Field::max_field_chars);
  out.push_back('"');
  if (!whole) out.append(kCutMark);
}

void append_json(std::string& out, std::string_view json) {
  if (json.size() >= 2 && json.front() == '"' && json.back() == '"') {
    append_quoted(out, json.substr(1, json.size() - 2), Style::json_string);
  } else if (!append_safe(out, json, Style::json_not_string, Field::max_field_chars)) {
    out.append(kCutMark);
  }
}

template <typename Number>
void append_number(std::string& out, Number number) {
  std::array<char, 24> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  out.append(digits.data(), end);
}

}  // namespace

std::string_view level_name(Level level) {
  return level == Level::trace ? "trace" : level_names[static_cast<std::size_t>(level)];
}

std::optional<Level> parse_level(std::string_view name) {
  const auto same_letter = [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a - 'A' + 'a' : a) == b; };
  for (std::size_t i = 0; i < level_names.size(); ++i) {
    if (std::equal(name.begin(), name.end(), level_names[i].begin(), level_names[i].end(), same_letter)) {
      return static_cast<Level>(i);
    }
  }
  return std::nullopt;
}

Level level_of_line(std::string_view line) {
  constexpr std::size_t time_size = std::string_view("2026-11-15T09:30:00.123Z ").size();
  const std::string_view rest = line.substr(std::min(line.size(), time_size));
  return parse_level(rest.substr(0, rest.find(' '))).value_or(Level::error);
}

void LineFormat::append(std::string& out, std::chrono::system_clock::time_point time, Level level,
                        std::string_view message, Fields fields) {
  time_.append(out, time);
  out.push_back(' ');
  out.append((coloured_ ? kColouredLevels : kPlainLevels)[static_cast<std::size_t>(level)]);
  if (!append_safe(out, message, Style::message, max_message_chars)) out.append(kCutMark);
  for (const Field& field : fields) append_field(out, field);
  out.push_back('\n');
}

void LineFormat::append_field(std::string& out, const Field& field) {
  if (field.kind_ == Field::Kind::json && field.text_.empty()) return;
  out.push_back(' ');
  out.append(field.key_).push_back('=');
  switch (field.kind_) {
    case Field::Kind::text:
      return append_quoted(out, field.text_, Style::text);
    case Field::Kind::json:
      return append_json(out, field.text_);
    case Field::Kind::whole_json:
      append_safe(out, field.text_, Style::json_not_string, std::string_view::npos);
      return;
    case Field::Kind::signed_number:
      return append_number(out, static_cast<std::int64_t>(field.bits_));
    case Field::Kind::unsigned_number:
      return append_number(out, field.bits_);
  }
}

}  // namespace duet::base
