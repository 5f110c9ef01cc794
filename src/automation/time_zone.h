#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace duet::automation {

/// A time zone of the IANA database, as the system has it (`/usr/share/zoneinfo`, or `TZDIR`): the offsets of the past
/// and, from the rule at the end of its file, of all times to come.
class TimeZone {
 public:
  /// None if there is none of that name.
  static std::shared_ptr<const TimeZone> find(std::string_view name);
  /// From the bytes of a file; none if they are no TZif of version 2 or later.
  static std::shared_ptr<const TimeZone> read(std::string_view bytes);

  /// From UTC, to the east.
  std::chrono::seconds offset_at(std::chrono::sys_seconds at) const;

 private:
  /// `M3.5.0/2`: when the clocks are changed each year.
  struct Day {
    enum class Kind : unsigned char { weekday_of_month, day_without_leap, day_of_year } kind = Kind::day_of_year;
    int month = 0;
    int week = 0;
    int day = 0;
    std::chrono::seconds time{7'200};
  };
  /// `CET-1CEST,M3.5.0,M10.5.0/3`
  struct Rule {
    std::chrono::seconds standard{0};
    std::chrono::seconds summer{0};
    bool has_summer = false;
    Day begins = {};
    Day ends = {};
  };
  struct Change {
    std::chrono::sys_seconds at;
    std::chrono::seconds offset;
  };
  class RuleReader;

  static std::chrono::local_seconds local_of(const Day& day, std::chrono::year year);
  std::chrono::seconds offset_by_rule(std::chrono::sys_seconds at) const;

  std::chrono::seconds first_{0};  // before all changes
  std::vector<Change> changes_;
  std::optional<Rule> rule_;  // after the last one
};

}  // namespace duet::automation
