#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace duet::bridge {

/// The units in which a server counts characters within a line.
enum class Encoding : std::uint8_t { utf8, utf16, utf32 };

/// `utf-8` and so on.
std::string_view name_of(Encoding encoding);
std::optional<Encoding> encoding_named(std::string_view name);

/// A place as people count: from 1, columns in characters (code points).
struct Place {
  std::size_t line = 1;
  std::size_t column = 1;
};

/// A place as a server counts: from 0, in units of its encoding.
struct Position {
  std::uint64_t line = 0;
  std::uint64_t character = 0;
};

/// The text of a document and its lines, which end as LSP has it: `\n`, `\r\n` or `\r`.
///
/// It is always valid UTF-8: bytes that are not become U+FFFD, one each, and a byte order mark at the start goes, so
/// that what is counted here is what a server was sent.
class Text {
 public:
  explicit Text(std::string bytes = {});

  const std::string& str() const { return text_; }
  std::size_t line_count() const { return starts_.size(); }
  /// Counted from 0, without its end; empty if there is no such line.
  std::string_view line(std::size_t index) const;

  /// nullopt: there is no such place. The one behind a line's last character is one.
  std::optional<Position> position(Place place, Encoding encoding) const;
  /// The nearest place: of one behind the end of a line or of the text, that end; inside a character, its start.
  Place place(Position position, Encoding encoding) const;
  /// The same as an offset in bytes.
  std::size_t offset(Position position, Encoding encoding) const;

  void replace(std::size_t begin, std::size_t end, std::string_view with);

 private:
  void find_lines();

  std::string text_;
  std::vector<std::size_t> starts_;
};

/// How many characters `text`, which is valid UTF-8, has.
std::size_t count_characters(std::string_view text);

}  // namespace duet::bridge
