#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>

namespace duet::app {

/// How often values of which size were seen, in little room: four cells for each doubling, so that what comes back is
/// right to an eighth. Values beyond the last cell count as its. When a cell is full, all are halved: then the newer
/// values count for more. Trivially copyable, since it is kept in files.
template <typename Count, std::size_t cells>
class Histogram {
 public:
  static constexpr std::size_t size = cells;

  void add(std::uint64_t value, std::uint64_t times = 1) { add_to(cell_of(value), times); }
  void add_to(std::size_t cell, std::uint64_t times) {
    std::uint64_t sum = counts_[cell] + times;
    for (; sum > most; sum /= 2) halve();
    counts_[cell] = static_cast<Count>(sum);
  }

  template <typename Other>
  void add(const Histogram<Other, cells>& other) {
    std::array<std::uint64_t, cells> sums;
    for (std::size_t cell = 0; cell < cells; ++cell) sums[cell] = std::uint64_t{counts_[cell]} + other.count_at(cell);
    const std::uint64_t largest = *std::ranges::max_element(sums);
    int halvings = 0;
    while (largest >> halvings > most) ++halvings;
    for (std::size_t cell = 0; cell < cells; ++cell) counts_[cell] = static_cast<Count>(sums[cell] >> halvings);
  }

  /// The value that this part of all are not above; none if there is none. `part` is above 0 and at most 1.
  std::optional<double> quantile(double part) const {
    std::uint64_t total = 0;
    for (const Count count : counts_) total += count;
    if (total == 0) return std::nullopt;
    const double wanted = part * static_cast<double>(total);
    std::uint64_t passed = 0;
    for (std::size_t cell = 0; cell < cells; ++cell) {
      passed += counts_[cell];
      if (static_cast<double>(passed) >= wanted) return middle_of(cell);
    }
    return middle_of(cells - 1);
  }

  Count count_at(std::size_t cell) const { return counts_[cell]; }

  static constexpr std::size_t cell_of(std::uint64_t value) {
    if (value < 4) return static_cast<std::size_t>(value);
    const auto doublings = static_cast<std::size_t>(std::bit_width(value)) - 1;
    return std::min((doublings - 1) * 4 + static_cast<std::size_t>(value >> (doublings - 2) & 3U), cells - 1);
  }

  static constexpr double middle_of(std::size_t cell) {
    if (cell < 4) return static_cast<double>(cell);
    const std::size_t shift = cell / 4 - 1;
    const auto first = static_cast<double>(std::uint64_t{4 + cell % 4} << shift);
    return first + static_cast<double>((std::uint64_t{1} << shift) - 1) / 2;
  }

 private:
  static constexpr std::uint64_t most = std::numeric_limits<Count>::max();

  void halve() {
    for (Count& count : counts_) count = static_cast<Count>(count / 2);
  }

  std::array<Count, cells> counts_{};
};

}  // namespace duet::app
