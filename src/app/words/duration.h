#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace duet::app {

/// Durations as people write them, in flags and settings alike: `500ms`, `10s`, `5m`, `1h`, `2d`; a bare number is
/// seconds. Fractions are fine; what is smaller than a millisecond counts as one.
inline constexpr std::string_view duration_forms = "500ms, 10s, 5m, 1h, 2d or a number of seconds";
inline constexpr std::chrono::milliseconds longest_duration = std::chrono::hours(365 * 24);

/// Nullopt: not a duration, a negative one, or one above the longest.
std::optional<std::chrono::milliseconds> parse_duration(std::string_view text);

/// `850ms`, `4.2s`, `1m 20s`, `2h 5m`, `3d 4h`: the two units that matter. For people; not for parse_duration.
std::string readable_duration(std::chrono::milliseconds duration);

}  // namespace duet::app
