#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace duet::app::top {

/// What a piece of text is; the terminal's driver knows how that looks.
enum class Paint : std::uint8_t { plain, strong, name, good, warn, fault, faint };

struct Span {
  std::string text;
  Paint paint = Paint::plain;
  bool operator==(const Span&) const = default;
};

struct Line {
  std::vector<Span> spans = {};
  bool chosen = false;  ///< the cursor is on it, over the whole width
  bool operator==(const Line&) const = default;

  std::string text() const;
};

/// All lines of a screen, from the top.
using Frame = std::vector<Line>;

struct ScreenSize {
  std::size_t columns = 80;
  std::size_t rows = 24;
  bool operator==(const ScreenSize&) const = default;
};

/// Writes one line from left to right and never more columns than there are. Texts are of screen_text().
class LineWriter {
 public:
  explicit LineWriter(std::size_t width) : left_(width) {}

  LineWriter& add(std::string_view text, Paint paint = Paint::plain);
  /// A column: cut or filled to `width`, and two blanks behind it.
  LineWriter& cell(std::string_view text, std::size_t width, Paint paint = Paint::plain);
  /// The same at the column's right end.
  LineWriter& number(std::string_view text, std::size_t width, Paint paint = Paint::plain);
  /// Blanks, as far as there is room.
  LineWriter& fill(std::size_t columns);
  /// At the end of the line, if there is room for all of it.
  LineWriter& right(std::string_view text, Paint paint = Paint::plain);

  std::size_t left() const { return left_; }
  Line take(bool chosen = false);

 private:
  Line line_;
  std::size_t left_;
};

/// A text in lines of at most `width` columns, cut anywhere.
std::vector<std::string> wrapped(std::string_view text, std::size_t width);
/// The same, cut between words where there are some.
std::vector<std::string> wrapped_words(std::string_view text, std::size_t width);

}  // namespace duet::app::top
