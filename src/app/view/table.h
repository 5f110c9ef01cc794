#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "app/view/text_style.h"
#include "duet/base/clock.h"

namespace duet::app {

/// Rows for people, in columns.
///
/// Every column is as wide as its widest cell; if that is too much, the last one is cut, and the others after it from
/// right to left. The first one and tasks are names to be typed again: before those are cut, other columns are left
/// out, the last ones first. Cells may hold anything: they are shown on one line, harmlessly.
class Table {
 public:
  enum class Paint : std::uint8_t { none, name, good, fault, faint };
  struct Cell {
    std::string text;
    Paint paint = Paint::none;
  };

  explicit Table(std::vector<std::string> headings) : headings_(std::move(headings)) {}

  /// As many cells as there are headings.
  void add(std::vector<Cell> row) { rows_.push_back(std::move(row)); }
  bool empty() const { return rows_.empty(); }

  /// With a line for the headings. `width` is how many columns there are; nullopt: nothing is cut.
  std::string text(const TextStyle& style, std::optional<std::size_t> width) const;

 private:
  std::vector<std::size_t> widths(std::optional<std::size_t> room) const;  // 0: that column is left out
  std::size_t least(std::size_t column, std::size_t width) const;
  void fit(std::vector<std::size_t>& widths, std::size_t room) const;

  std::vector<std::string> headings_;
  std::vector<std::vector<Cell>> rows_;
};

/// How wide text on this descriptor may be: what the terminal says, else COLUMNS, else 80; nullopt if it is no
/// terminal.
std::optional<std::size_t> terminal_width(int fd);

/// `3m ago`, `in 20s`, `just now`, of a time as the daemon writes it (`2026-11-15T09:30:00.123Z`); another text stays
/// as it is.
std::string relative_time(const std::string& text, base::UtcTime now);

/// A time as the daemon writes it.
std::optional<base::UtcTime> parse_time(std::string_view text);

}  // namespace duet::app
