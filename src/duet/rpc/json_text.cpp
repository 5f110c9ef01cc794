#include "duet/rpc/json_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include "duet/rpc/string_stop.h"
#include "duet/rpc/utf8.h"

namespace duet::rpc {
namespace {

constexpr std::string_view replacement = "\xEF\xBF\xBD";

unsigned four_hex_digits(const char* at) {
  unsigned value = 0;
  for (int i = 0; i < 4; ++i) value = value * 16 + static_cast<unsigned>(hex_digit(at[i]));
  return value;
}

void append_code_point(std::string& out, unsigned code) {
  const auto tail = [&](unsigned shift) { out += static_cast<char>(0x80 | (code >> shift & 0x3F)); };
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xC0 | code >> 6);
    tail(0);
  } else if (code < 0x10000) {
    out += static_cast<char>(0xE0 | code >> 12);
    tail(6);
    tail(0);
  } else {
    out += static_cast<char>(0xF0 | code >> 18);
    tail(12);
    tail(6);
    tail(0);
  }
}

// `at` is behind "\u"; returns how many characters of the spelling were used.
std::size_t append_unicode_escape(std::string& out, std::string_view rest) {
  const unsigned first = four_hex_digits(rest.data());
  if (first < 0xD800 || first > 0xDFFF) {
    append_code_point(out, first);
    return 4;
  }
  if (first < 0xDC00 && rest.size() >= 10 && rest[4] == '\\' && rest[5] == 'u') {
    const unsigned second = four_hex_digits(rest.data() + 6);
    if (second >= 0xDC00 && second <= 0xDFFF) {
      append_code_point(out, 0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00));
      return 10;
    }
  }
  out += replacement;
  return 4;
}

char plain_escape(char letter) {
  switch (letter) {
    case 'b':
      return '\b';
    case 'f':
      return '\f';
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    default:
      return letter;
  }
}

// `e-7`, or nothing. Beyond the length of any text one exponent is as good as another.
std::int64_t decode_exponent(std::string_view exponent) {
  constexpr std::int64_t beyond = std::int64_t{1} << 40U;
  if (exponent.empty()) return 0;
  exponent.remove_prefix(exponent.substr(1, 1) == "+" ? 2 : 1);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(exponent.data(), exponent.data() + exponent.size(), value);
  if (error != std::errc{}) value = exponent.starts_with('-') ? -beyond : beyond;
  return std::clamp(value, -beyond, beyond);
}

// The digits of a whole number with a point or an exponent: a double would round 9007199254740993.0.
std::optional<std::string> unscaled_digits(std::string_view number) {
  const std::size_t mark = std::min(number.find_first_of("eE"), number.size());
  const std::size_t point = std::min(number.find('.'), mark);
  const std::string_view fraction = point < mark ? number.substr(point + 1, mark - point - 1) : std::string_view();
  std::string digits(number.substr(0, point));
  digits += fraction;
  if (digits.find_first_not_of("-0") == std::string::npos) return "0";
  const std::size_t kept = digits.find_last_not_of('0') + 1;
  const auto moved = static_cast<std::int64_t>(fraction.size()) - static_cast<std::int64_t>(digits.size() - kept);
  const std::int64_t zeros = decode_exponent(number.substr(mark)) - moved;
  if (zeros < 0 || zeros > std::numeric_limits<std::uint64_t>::digits10) return std::nullopt;
  digits.resize(kept);
  digits.append(static_cast<std::size_t>(zeros), '0');
  return digits;
}

// What a number is that no double holds: infinite, or zero. The power of ten of its first significant digit decides.
double beyond_doubles(std::string_view number) {
  const std::size_t mark = std::min(number.find_first_of("eE"), number.size());
  const std::size_t point = std::min(number.find('.'), mark);
  const std::size_t first = number.find_first_of("123456789");
  const std::int64_t power =
      decode_exponent(number.substr(mark)) + static_cast<std::int64_t>(point) - static_cast<std::int64_t>(first);
  const double size = power > 0 ? std::numeric_limits<double>::infinity() : 0.0;
  return number.starts_with('-') ? -size : size;
}

void append_control(std::string& out, unsigned char byte) {
  constexpr std::string_view hex = "0123456789abcdef";
  switch (byte) {
    case '"':
      out += "\\\"";
      return;
    case '\\':
      out += "\\\\";
      return;
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\t':
      out += "\\t";
      return;
    default:
      break;
  }
  out += "\\u00";
  out += hex[byte >> 4];
  out += hex[byte & 15];
}

template <typename Number>
void append_digits(std::string& out, Number number) {
  std::array<char, 32> digits{};
  const auto [end, error] = std::to_chars(digits.data(), digits.data() + digits.size(), number);
  out.append(digits.data(), end);
}

}  // namespace

std::string decode_string_inside(std::string_view inside) {
  std::string out;
  out.reserve(inside.size());
  while (!inside.empty()) {
    const std::size_t slash = inside.find('\\');
    out += inside.substr(0, slash);
    if (slash == std::string_view::npos) break;
    const char letter = inside[slash + 1];
    inside.remove_prefix(slash + 2);
    if (letter == 'u') {
      inside.remove_prefix(append_unicode_escape(out, inside));
    } else {
      out += plain_escape(letter);
    }
  }
  return out;
}

std::string decode_string(std::string_view token) { return decode_string_inside(token.substr(1, token.size() - 2)); }

std::string_view json_type(std::string_view value) {
  switch (value.front()) {
    case '{':
      return "object";
    case '[':
      return "array";
    case '"':
      return "string";
    case 't':
    case 'f':
      return "boolean";
    case 'n':
      return "null";
    default:
      return "number";
  }
}

double decode_number(std::string_view number) {
  double value = 0;
  const auto result = std::from_chars(number.data(), number.data() + number.size(), value);
  return result.ec == std::errc::result_out_of_range ? beyond_doubles(number) : value;
}

template <typename Whole>
std::optional<Whole> decode_whole(std::string_view number) {
  if (number == "-0") return 0;
  Whole whole = 0;
  const char* const all = number.data() + number.size();
  const auto [end, error] = std::from_chars(number.data(), all, whole);
  if (end == all) return error == std::errc{} ? std::optional(whole) : std::nullopt;
  if (number.find_first_of(".eE") == std::string_view::npos) return std::nullopt;
  const std::optional<std::string> digits = unscaled_digits(number);
  return digits ? decode_whole<Whole>(*digits) : std::nullopt;
}
template std::optional<std::int64_t> decode_whole(std::string_view number);
template std::optional<std::uint64_t> decode_whole(std::string_view number);

void append_string(std::string& out, std::string_view text) {
  out += '"';
  const char* at = text.data();
  const char* end = at + text.size();
  while (at != end) {
    const char* stop = find_string_stop(at, end);
    out.append(at, stop);
    at = stop;
    if (at == end) break;
    const auto byte = static_cast<unsigned char>(*at);
    if (byte < 0x80) {
      append_control(out, byte);
      ++at;
      continue;
    }
    const std::size_t length = utf8_length(at, end);
    out += length == 0 ? replacement : std::string_view(at, length);
    at += length == 0 ? 1 : length;
  }
  out += '"';
}

std::string quoted(std::string_view text) {
  std::string out;
  append_string(out, text);
  return out;
}

void append_number(std::string& out, std::int64_t number) { append_digits(out, number); }

void append_number(std::string& out, std::uint64_t number) { append_digits(out, number); }

void append_number(std::string& out, double number) {
  if (std::isfinite(number)) {
    append_digits(out, number);
  } else {
    out += "null";
  }
}

}  // namespace duet::rpc
