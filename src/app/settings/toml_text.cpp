#include "app/settings/toml_text.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>
#include <optional>
#include <utility>

#include "duet/rpc/utf8.h"

namespace duet::app {
namespace {

constexpr std::size_t most_dots = 1'000;  // of a line, outside of strings

bool is_ascii(char c) { return static_cast<unsigned char>(c) < 0x80; }

std::uint32_t code_of(std::string_view character) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint32_t>(static_cast<unsigned char>(character[i])); };
  std::uint32_t code = byte(0) & (0xFFU >> (character.size() + 1));
  for (std::size_t i = 1; i < character.size(); ++i) code = (code << 6U) | (byte(i) & 0x3FU);
  return code;
}

/// Goes over the text once, knowing only where strings and comments begin and end.
class TomlReader {
 public:
  explicit TomlReader(std::string_view text) : text_(text) {}

  std::variant<std::string, SettingFault> read() {
    while (at_ < text_.size() && !fault_) outside();
    if (fault_) return *std::move(fault_);
    return std::move(out_);
  }

 private:
  std::string_view rest() const { return text_.substr(at_); }

  void take(std::size_t count) {
    for (const char c : text_.substr(at_, count)) {
      const bool line_end = c == '\n';
      if (line_end) ++line_;
      column_ = line_end ? 1 : column_ + ((static_cast<unsigned char>(c) & 0xC0U) != 0x80U ? 1 : 0);
      if (line_end) dots_ = 0;
    }
    out_ += text_.substr(at_, count);
    at_ = std::min(at_ + count, text_.size());
  }

  void fail(std::string text) { fault_ = SettingFault{{line_, column_}, std::move(text)}; }

  void outside() {
    const char c = text_[at_];
    if (c == '#') return take(std::min(rest().find('\n'), rest().size()));
    if (c == '"' || c == '\'') return string(c);
    if (!is_ascii(c)) return fail("this is not TOML: letters beyond ASCII stand in strings and comments only");
    if (c == '.' && ++dots_ > most_dots) return fail("this line has more than 1000 dots");
    take(1);
  }

  void string(char quote) {
    const std::string end_of_long(3, quote);
    const bool is_long = rest().starts_with(end_of_long);
    take(is_long ? 3 : 1);
    while (at_ < text_.size() && !fault_) {
      if (is_long ? rest().starts_with(end_of_long) : rest().front() == quote) return take(is_long ? 3 : 1);
      if (!is_long && rest().front() == '\n') return;  // the library says what is wrong with it
      character(quote == '"', is_long);
    }
  }

  void character(bool has_escapes, bool is_long) {
    const char c = text_[at_];
    if (has_escapes && c == '\\') {
      take(1);
      if (at_ < text_.size() && !is_ascii(text_[at_])) return fail("this is not TOML: no letter needs this backslash");
      return take(1);
    }
    const std::size_t length = rpc::utf8_length(text_.data() + at_, text_.data() + text_.size());
    if (has_escapes && is_long && length > 1) return escape(rest().substr(0, length));
    take(std::max<std::size_t>(length, 1));
  }

  void escape(std::string_view character) {
    std::array<char, 11> room{};
    std::snprintf(room.data(), room.size(), "\\U%08X", static_cast<unsigned>(code_of(character)));
    out_ += room.data();
    at_ += character.size();
    ++column_;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::uint32_t line_ = 1;
  std::uint32_t column_ = 1;
  std::size_t dots_ = 0;
  std::string out_;
  std::optional<SettingFault> fault_;
};

}  // namespace

std::variant<std::string, SettingFault> cautious_toml(std::string_view text) { return TomlReader(text).read(); }

}  // namespace duet::app
