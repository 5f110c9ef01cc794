#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>

namespace duet::app {

/// How often values of which size were seen: four cells for each doubling, so that what comes back is right to an
/// eighth. Values beyond the last cell count as its. Nothing that was counted loses weight.
template <std::size_t cells>
class Histogram {
 public:
  static constexpr std::size_t size = cells;

  void add(std::uint64_t value, std::uint64_t times = 1) { add_to(cell_of(value), times); }
  void add_to(std::size_t cell, std::uint64_t times) { counts_[cell] += times; }
  void add(const Histogram& other) {
    for (std::size_t cell = 0; cell < cells; ++cell) counts_[cell] += other.counts_[cell];
  }

  /// The value that this part of all are not above; none if there is none. `part` is above 0 and at most 1.
  std::optional<double> quantile(double part) const {
    std::uint64_t total = 0;
    for (const std::uint64_t count : counts_) total += count;
    if (total == 0) return std::nullopt;
    const double wanted = part * static_cast<double>(total);
    std::uint64_t passed = 0;
    for (std::size_t cell = 0; cell < cells; ++cell) {
      passed += counts_[cell];
      if (static_cast<double>(passed) >= wanted) return middle_of(cell);
    }
    return middle_of(cells - 1);
  }

  std::uint64_t count_at(std::size_t cell) const { return counts_[cell]; }

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
  std::array<std::uint64_t, cells> counts_{};
};

/// A count in one or two bytes: its highest bits, and how many zeros follow. One byte has 4 bits of it and two bytes
/// 12, so that a count up to 16 or 4,096 is exact, and a larger one right to 1/16 or 1/4096. One above 10^10 is cut
/// there.
template <typename Bytes>
class SmallCount {
 public:
  SmallCount() = default;
  explicit constexpr SmallCount(std::uint64_t count) {
    unsigned zeros = zeros_of(count);
    if (zeros > 0) zeros = zeros_of(count + (std::uint64_t{1} << (zeros - 1)));  // rounding may make it longer
    if (zeros > 0) count = (count + (std::uint64_t{1} << (zeros - 1))) >> zeros;
    const std::uint64_t code = zeros * leading + count;
    constexpr std::uint64_t most = std::numeric_limits<Bytes>::max();
    code_ = static_cast<Bytes>(std::min(code, most));
  }

  constexpr std::uint64_t value() const {
    if (code_ < 2 * leading) return code_;
    const unsigned zeros = static_cast<unsigned>(code_ / leading) - 1;
    return (leading + code_ % leading) << zeros;
  }

 private:
  static constexpr unsigned exponent_bits = 5;
  static constexpr std::uint64_t leading = std::uint64_t{1} << (8 * sizeof(Bytes) - exponent_bits);

  static constexpr unsigned zeros_of(std::uint64_t count) {
    constexpr auto kept = static_cast<unsigned>(8 * sizeof(Bytes) - exponent_bits + 1);
    const auto bits = static_cast<unsigned>(std::bit_width(count));
    return bits > kept ? bits - kept : 0;
  }

  Bytes code_ = 0;
};

/// A histogram in little room. Trivially copyable, since it is kept in files.
template <typename Bytes, std::size_t cells>
class PackedHistogram {
 public:
  PackedHistogram() = default;
  explicit PackedHistogram(const Histogram<cells>& whole) {
    for (std::size_t cell = 0; cell < cells; ++cell) counts_[cell] = SmallCount<Bytes>(whole.count_at(cell));
  }

  void add_to(Histogram<cells>& sum) const {
    for (std::size_t cell = 0; cell < cells; ++cell) sum.add_to(cell, counts_[cell].value());
  }

 private:
  std::array<SmallCount<Bytes>, cells> counts_{};
};

}  // namespace duet::app
