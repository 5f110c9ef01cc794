#include "app/words/bytes.h"

#include <array>
#include <charconv>
#include <cstdio>
#include <limits>
#include <system_error>

namespace duet::app {

std::optional<std::uint64_t> parse_bytes(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return std::nullopt;
  const std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
  unsigned shift = 0;
  if (unit == "K" || unit == "KiB") shift = 10;
  if (unit == "M" || unit == "MiB") shift = 20;
  if (unit == "G" || unit == "GiB") shift = 30;
  const bool known = unit.empty() || shift > 0;
  if (!known || number > (std::numeric_limits<std::uint64_t>::max() >> shift)) return std::nullopt;
  return number << shift;
}

std::string readable_bytes(std::uint64_t bytes) {
  constexpr std::array<const char*, 5> units{"B", "KiB", "MiB", "GiB", "TiB"};
  constexpr double next_unit = 1024;
  auto number = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; number >= next_unit - 0.5 && unit + 1 < units.size(); ++unit) number /= next_unit;
  std::array<char, 32> out{};
  const bool is_whole = unit == 0 || number >= 9.95;
  const int size = std::snprintf(out.data(), out.size(), is_whole ? "%.0f %s" : "%.1f %s", number, units.at(unit));
  return {out.data(), static_cast<std::size_t>(size)};
}

}  // namespace duet::app
