#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// RFC 8259 by recursive descent, one function for each rule of its grammar: a second opinion on what the scanner says.
/// For texts of a few thousand bytes; as deep as the stack allows.
class SlowJson {
 public:
  struct Member {
    std::string name;  // escapes resolved
    std::string_view value;
  };

  explicit SlowJson(std::string_view text) : text_(text) {
    const End end = value(blanks(0), 1);
    valid = end && blanks(*end) == text_.size();
  }

  bool valid = false;
  std::size_t depth = 0;
  std::vector<Member> members;             // of an outermost object
  std::vector<std::string_view> elements;  // of an outermost array

  /// What a string's inside stands for, as code units put together again.
  static std::string unescaped(std::string_view inside) {
    std::string out;
    unsigned high = 0;
    for (std::size_t i = 0; i < inside.size();) {
      if (inside.substr(i, 2) != "\\u") {
        if (high != 0) append(out, 0xFFFD);
        high = 0;
        if (inside[i] == '\\') {
          constexpr std::string_view letters = "bfnrt";
          const std::size_t which = letters.find(inside[i + 1]);
          out += which == std::string_view::npos ? inside[i + 1] : "\b\f\n\r\t"[which];
          i += 2;
        } else {
          out += inside[i++];
        }
        continue;
      }
      const auto unit = static_cast<unsigned>(std::stoul(std::string(inside.substr(i + 2, 4)), nullptr, 16));
      i += 6;
      const bool low_half = unit >> 10U == 0x37;
      if (high != 0) append(out, low_half ? 0x10000 + (high - 0xD800) * 0x400 + (unit - 0xDC00) : 0xFFFD);
      const bool used = high != 0 && low_half;
      high = unit >> 10U == 0x36 ? unit : 0;
      if (!used && high == 0) append(out, low_half ? 0xFFFD : unit);
    }
    if (high != 0) append(out, 0xFFFD);
    return out;
  }

 private:
  using End = std::optional<std::size_t>;

  static void append(std::string& out, unsigned code) {
    const auto put = [&out](unsigned byte) { out += static_cast<char>(byte); };
    if (code < 0x80) return put(code);
    if (code >= 0x10000) put(0xF0 + code / 0x40000);
    if (code >= 0x10000) put(0x80 + code / 0x1000 % 64);
    if (code >= 0x800 && code < 0x10000) put(0xE0 + code / 0x1000);
    if (code >= 0x800) put(0x80 + code / 64 % 64);
    if (code < 0x800) put(0xC0 + code / 64);
    put(0x80 + code % 64);
  }

  int at(std::size_t i) const { return i < text_.size() ? static_cast<unsigned char>(text_[i]) : -1; }
  bool is_in(std::size_t i, std::string_view set) const {
    return i < text_.size() && set.find(text_[i]) != std::string_view::npos;
  }

  std::size_t blanks(std::size_t i) const {
    while (is_in(i, " \t\r\n")) ++i;
    return i;
  }

  End value(std::size_t i, std::size_t level) {
    if (at(i) == '{') return object(i, level);
    if (at(i) == '[') return array(i, level);
    if (at(i) == '"') return string(i);
    for (const std::string_view word : {"true", "false", "null"}) {
      if (text_.substr(std::min(i, text_.size())).starts_with(word)) return i + word.size();
    }
    return number(i);
  }

  End object(std::size_t i, std::size_t level) {
    depth = std::max(depth, level);
    i = blanks(i + 1);
    if (at(i) == '}') return i + 1;
    for (;; i = blanks(i + 1)) {
      const End name_end = string(i);
      if (!name_end) return {};
      const std::string_view inside = text_.substr(i + 1, *name_end - i - 2);
      i = blanks(*name_end);
      if (at(i) != ':') return {};
      const std::size_t begin = blanks(i + 1);
      const End end = value(begin, level + 1);
      if (!end) return {};
      if (level == 1) members.push_back({unescaped(inside), text_.substr(begin, *end - begin)});
      i = blanks(*end);
      if (at(i) == '}') return i + 1;
      if (at(i) != ',') return {};
    }
  }

  End array(std::size_t i, std::size_t level) {
    depth = std::max(depth, level);
    i = blanks(i + 1);
    if (at(i) == ']') return i + 1;
    for (;; i = blanks(i + 1)) {
      const End end = value(i, level + 1);
      if (!end) return {};
      if (level == 1) elements.push_back(text_.substr(i, *end - i));
      i = blanks(*end);
      if (at(i) == ']') return i + 1;
      if (at(i) != ',') return {};
    }
  }

  End string(std::size_t i) const {
    if (at(i) != '"') return {};
    for (++i; at(i) != '"';) {
      const End next = at(i) == '\\' ? escape(i + 1) : character(i);
      if (!next) return {};
      i = *next;
    }
    return i + 1;
  }

  End escape(std::size_t i) const {
    if (is_in(i, "\"\\/bfnrt")) return i + 1;
    if (at(i) != 'u') return {};
    for (std::size_t digit = 1; digit <= 4; ++digit) {
      if (!is_in(i + digit, "0123456789abcdefABCDEF")) return {};
    }
    return i + 5;
  }

  End character(std::size_t i) const {
    if (at(i) < 0x20) return {};
    if (at(i) < 0x80) return i + 1;
    struct Row {
      int first, last, second, second_last;
      std::size_t size;
    };
    // Table 3-7 of the Unicode standard.
    static constexpr Row rows[] = {{0xC2, 0xDF, 0x80, 0xBF, 2}, {0xE0, 0xE0, 0xA0, 0xBF, 3},
                                   {0xE1, 0xEC, 0x80, 0xBF, 3}, {0xED, 0xED, 0x80, 0x9F, 3},
                                   {0xEE, 0xEF, 0x80, 0xBF, 3}, {0xF0, 0xF0, 0x90, 0xBF, 4},
                                   {0xF1, 0xF3, 0x80, 0xBF, 4}, {0xF4, 0xF4, 0x80, 0x8F, 4}};
    for (const Row& row : rows) {
      if (at(i) < row.first || at(i) > row.last) continue;
      if (at(i + 1) < row.second || at(i + 1) > row.second_last) return {};
      for (std::size_t tail = 2; tail < row.size; ++tail) {
        if (at(i + tail) < 0x80 || at(i + tail) > 0xBF) return {};
      }
      return i + row.size;
    }
    return {};
  }

  std::size_t digits(std::size_t i) const {
    while (is_in(i, "0123456789")) ++i;
    return i;
  }

  End number(std::size_t i) const {
    if (at(i) == '-') ++i;
    const std::size_t whole = digits(i);
    if (whole == i || (at(i) == '0' && whole > i + 1)) return {};
    i = whole;
    if (at(i) == '.') {
      if (digits(i + 1) == i + 1) return {};
      i = digits(i + 1);
    }
    if (!is_in(i, "eE")) return i;
    i += is_in(i + 1, "+-") ? 2 : 1;
    if (digits(i) == i) return {};
    return digits(i);
  }

  std::string_view text_;
};
