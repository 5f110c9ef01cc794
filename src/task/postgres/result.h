#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace duet::task::postgres {

/// The rows that a call gave, as text. Pure; tests and the simulator make theirs from strings.
///
/// All text lies in one piece, and a view of it lives as long as the result. A column is named once and then used by
/// its number; -1 (no such column) has no text in any row.
class Result {
 public:
  using Cell = std::optional<std::string_view>;
  using Row = std::vector<std::optional<std::string>>;

  Result() = default;
  explicit Result(std::vector<std::string> columns) : columns_(std::move(columns)) {}
  Result(std::vector<std::string> columns, const std::vector<Row>& rows);

  /// The next cell of the row that is not whole yet, from left to right.
  void add(Cell cell);
  /// For who knows how much will come.
  void reserve(std::size_t cells, std::size_t bytes);

  std::size_t rows() const { return columns_.empty() ? 0 : cells_.size() / columns_.size(); }
  const std::vector<std::string>& columns() const { return columns_; }
  /// -1: there is none of that name.
  int column(std::string_view name) const;

  /// None: NULL, or there is no such row or column.
  Cell at(std::size_t row, int column) const;
  Cell at(std::size_t row, std::string_view column_name) const { return at(row, column(column_name)); }

  /// The same, and empty, none or false for NULL and for what is not such a value.
  std::string_view text(std::size_t row, int column) const { return at(row, column).value_or(std::string_view()); }
  std::optional<std::int64_t> number(std::size_t row, int column) const;
  bool flag(std::size_t row, int column) const { return at(row, column) == "t"; }
  /// A bytea as it came, `\x…`, in bytes.
  std::optional<std::string> bytes(std::size_t row, int column) const;

  /// What functions that give one text (of JSON) answered: the first cell.
  std::string_view text() const { return text(0, 0); }

 private:
  struct Place {
    std::size_t offset;
    std::size_t length;  // null_length: NULL
  };
  static constexpr std::size_t null_length = static_cast<std::size_t>(-1);

  std::vector<std::string> columns_;
  std::vector<Place> cells_;
  std::string text_;
};

}  // namespace duet::task::postgres
