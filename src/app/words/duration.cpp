#include "app/words/duration.h"

#include <charconv>
#include <cmath>
#include <cstdint>
#include <system_error>

namespace duet::app {
namespace {

using std::chrono::milliseconds;

struct Unit {
  std::string_view name;
  double length;  // in milliseconds
};

constexpr Unit units[] = {{"ms", 1}, {"", 1e3}, {"s", 1e3}, {"m", 60e3}, {"h", 3600e3}, {"d", 86400e3}};

std::string two_units(std::chrono::seconds total, std::int64_t length, std::string_view name, std::int64_t rest_length,
                      std::string_view rest_name) {
  const std::int64_t rest = total.count() % length / rest_length;
  std::string out = std::to_string(total.count() / length) + std::string(name);
  if (rest > 0) out += " " + std::to_string(rest) + std::string(rest_name);
  return out;
}

}  // namespace

std::optional<milliseconds> parse_duration(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || !std::isfinite(number) || std::signbit(number)) return std::nullopt;
  const std::string_view name = text.substr(static_cast<std::size_t>(end - text.data()));
  for (const Unit& unit : units) {
    if (unit.name != name) continue;
    const double length = number * unit.length;
    if (length > static_cast<double>(longest_duration.count())) return std::nullopt;
    return milliseconds(static_cast<std::int64_t>(length < 1 ? std::ceil(length) : std::round(length)));
  }
  return std::nullopt;
}

std::string readable_duration(milliseconds duration) {
  if (duration < std::chrono::seconds(1)) return std::to_string(duration.count()) + "ms";
  if (duration < std::chrono::seconds(10)) {
    const std::int64_t tenths = duration.count() / 100;
    return std::to_string(tenths / 10) + (tenths % 10 == 0 ? "" : "." + std::to_string(tenths % 10)) + "s";
  }
  const auto total = std::chrono::floor<std::chrono::seconds>(duration);
  if (total < std::chrono::minutes(1)) return std::to_string(total.count()) + "s";
  if (total < std::chrono::hours(1)) return two_units(total, 60, "m", 1, "s");
  if (total < std::chrono::hours(24)) return two_units(total, 3600, "h", 60, "m");
  return two_units(total, 86'400, "d", 3600, "h");
}

}  // namespace duet::app
