#pragma once

#include <chrono>
#include <optional>
#include <string_view>

namespace duet::app {

/// Moments as people write them on a command line. Clock times and dates are local, unless they end with `Z` or an
/// offset such as `+01:00`. Of a time that clocks show twice in a night the first is meant, of one that they leave out
/// the same an hour later.
using Moment = std::chrono::system_clock::time_point;

/// A date with a clock time and nothing else, of the years 1970 to 2199: `2026-11-17T14:00`, `2026-11-17 14:00:00Z`.
std::optional<Moment> parse_moment(std::string_view text);

/// For what is still to come: a clock time is the next one of that name, `+2h` is from now on.
inline constexpr std::string_view future_forms =
    "14:00, tomorrow 9:30, 2026-11-17 14:00, 2026-11-17T14:00:00Z or +2h, up to the year 2199";
std::optional<Moment> parse_future(std::string_view text, Moment now);

/// For what has been: a clock time is the last one of that name, `2h` is so long ago, a date alone is its midnight.
inline constexpr std::string_view past_forms = "2h, 14:00, today, yesterday 9:30, 2026-11-17 or 2026-11-17T14:00:00Z";
std::optional<Moment> parse_past(std::string_view text, Moment now);

}  // namespace duet::app
