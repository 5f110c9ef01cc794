#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>

#include "duet/framing/frame.h"

namespace duet::framing {

/// One header line, without its line end.
struct HeaderLine {
  enum class Kind : std::uint8_t { malformed, length, bad_length, content_type, other };
  Kind kind = Kind::malformed;
  std::uint64_t length = 0;                 ///< of Kind::length; the largest number when it has too many digits
  std::optional<Fault> content_fault = {};  ///< of Kind::content_type: what is wrong with it
};

HeaderLine read_header_line(std::string_view line);

/// How many characters of the line can be a header's name.
std::size_t name_length(std::string_view line);

/// True while what is there of a line may still turn out to be `name: value`.
bool may_become_header_line(std::string_view partial);

/// What the lines of a header block have said so far.
class HeaderBlock {
 public:
  /// False when the line makes the block a malformed one.
  bool add(const HeaderLine& line);
  std::optional<std::uint64_t> length() const { return length_; }
  std::optional<Fault> content_fault() const { return content_fault_; }

 private:
  std::optional<std::uint64_t> length_;
  std::optional<Fault> content_fault_;
};

/// Of lines that are well-formed, each with its end.
HeaderBlock read_block(std::string_view lines);

inline constexpr std::size_t no_block = std::numeric_limits<std::size_t>::max();

/// Where the `\r\n\r\n` next to `from` begins, or no_block.
std::size_t find_block_end(std::string_view text, std::size_t from);

/// What may be a header block, found by its end.
struct FoundBlock {
  std::size_t start = no_block;
  bool has_rival = false;  ///< right above it or in one of its lines there is another length, so this one is a guess

  explicit operator bool() const { return start != no_block; }
};

/// The header block that ends with the `\r\n\r\n` at `end`: the longest run of well-formed lines
/// with a valid length among them, at most max_header bytes. Its first line may begin in the middle
/// of one only as Content-Length or Content-Type. If several lengths differ, the last counts and the
/// block begins behind the others.
/// `at_line_start`: whether the text itself begins at the start of a line.
FoundBlock find_block(std::string_view text, std::size_t end, bool at_line_start);

}  // namespace duet::framing
