#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>

#include "automation/time_zone.h"
#include "duet/base/clock.h"

namespace duet::automation {

/// When a schedule comes due: minute, hour, day of month, month, day of week, in a time zone or else in local time
/// (`TZ`, or the system's).
///
/// A day matches as in every cron: if both day fields are restricted, either will do; a field that begins with `*` is
/// not a restriction. When the clocks change, it depends on the hour field. One that begins with `*` means "every so
/// often": it goes by the clock on the wall, so nothing happens in a gap and everything twice in a repeated hour. Any
/// other names times of day: each comes once, the first time the clock reads it or, if it is skipped, something later.
class Cron {
 public:
  /// The first time that is later than `after`, on a full minute.
  base::UtcTime next(base::UtcTime after) const;

 private:
  friend std::variant<Cron, std::string> parse_cron(std::string_view text, std::shared_ptr<const TimeZone> zone);

  bool day_matches(std::chrono::local_days day) const;
  std::chrono::local_seconds next_match(std::chrono::local_seconds from) const;
  std::chrono::sys_seconds next_reached(std::chrono::sys_seconds after) const;
  std::chrono::sys_seconds next_shown(std::chrono::sys_seconds after) const;

  std::uint64_t minutes_ = 0;  // a bit for each value
  std::uint64_t hours_ = 0;
  std::uint64_t days_ = 0;
  std::uint64_t months_ = 0;
  std::uint64_t weekdays_ = 0;  // Sunday is 0
  bool every_hour_ = false;
  bool either_day_ = false;
  std::shared_ptr<const TimeZone> zone_;  // none: local time
};

/// `@hourly`, `@daily`, `@weekly`, `@monthly`, `@yearly`, or five fields with numbers, names (`mon`, `jan`, in any
/// case), ranges, lists, steps and `*`; 0 and 7 are Sunday. The text says what is wrong. A date that never comes, such
/// as 30 February, is refused.
std::variant<Cron, std::string> parse_cron(std::string_view text, std::shared_ptr<const TimeZone> zone = nullptr);
/// `@reboot`, which is the daemon's start and no schedule.
bool is_reboot(std::string_view text);

}  // namespace duet::automation
