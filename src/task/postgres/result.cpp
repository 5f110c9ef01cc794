#include "task/postgres/result.h"

#include <algorithm>
#include <charconv>

namespace duet::task::postgres {
namespace {

int digit_of(char letter) {
  if (letter >= '0' && letter <= '9') return letter - '0';
  if (letter >= 'a' && letter <= 'f') return letter - 'a' + 10;
  if (letter >= 'A' && letter <= 'F') return letter - 'A' + 10;
  return -1;
}

std::optional<std::string> from_hexadecimal(std::string_view text) {
  if (text.size() % 2 != 0) return std::nullopt;
  std::string bytes(text.size() / 2, '\0');
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const int high = digit_of(text[2 * i]);
    const int low = digit_of(text[2 * i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    bytes[i] = static_cast<char>(high * 16 + low);
  }
  return bytes;
}

}  // namespace

Result::Result(std::vector<std::string> columns, const std::vector<Row>& rows) : columns_(std::move(columns)) {
  for (const Row& row : rows) {
    for (std::size_t column = 0; column < columns_.size(); ++column) {
      add(column < row.size() && row[column] ? Cell(*row[column]) : std::nullopt);
    }
  }
}

void Result::add(Cell cell) {
  cells_.push_back({text_.size(), cell ? cell->size() : null_length});
  if (cell) text_.append(*cell);
}

void Result::reserve(std::size_t cells, std::size_t bytes) {
  cells_.reserve(cells);
  text_.reserve(bytes);
}

int Result::column(std::string_view name) const {
  const auto found = std::find(columns_.begin(), columns_.end(), name);
  return found == columns_.end() ? -1 : static_cast<int>(found - columns_.begin());
}

Result::Cell Result::at(std::size_t row, int column) const {
  if (column < 0 || static_cast<std::size_t>(column) >= columns_.size() || row >= rows()) return std::nullopt;
  const Place place = cells_[row * columns_.size() + static_cast<std::size_t>(column)];
  if (place.length == null_length) return std::nullopt;
  return std::string_view(text_).substr(place.offset, place.length);
}

std::optional<std::int64_t> Result::number(std::size_t row, int column) const {
  const std::string_view digits = text(row, column);
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return number;
}

std::optional<std::string> Result::bytes(std::size_t row, int column) const {
  const Cell cell = at(row, column);
  if (!cell || !cell->starts_with("\\x")) return std::nullopt;
  return from_hexadecimal(cell->substr(2));
}

}  // namespace duet::task::postgres
