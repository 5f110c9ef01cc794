#include "app/words/moment.h"

#include <algorithm>
#include <ctime>

#include "app/words/duration.h"

namespace duet::app {
namespace {

using std::chrono::minutes;
using std::chrono::system_clock;

// Those that the daemon takes; a moment has room for a little more.
constexpr int first_year = 1970;
constexpr int last_year = 2199;

/// Reads a text from left to right; what does not fit leaves it as it is.
class MomentReader {
 public:
  explicit MomentReader(std::string_view text) : rest_(text) {}

  bool at_end() const { return rest_.empty(); }
  bool take(std::string_view word) {
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }
  // A number of `least` to `most` digits.
  std::optional<int> number(std::size_t least, std::size_t most) {
    std::size_t count = 0;
    int value = 0;
    for (; count < most && count < rest_.size() && rest_[count] >= '0' && rest_[count] <= '9'; ++count) {
      value = value * 10 + (rest_[count] - '0');
    }
    if (count < least) return std::nullopt;
    rest_.remove_prefix(count);
    return value;
  }
  void skip_digits() {
    while (number(1, 1)) continue;
  }

 private:
  std::string_view rest_;
};

struct ClockTime {
  int hour = 0;
  int minute = 0;
  int second = 0;
};

// `14:00`, `9:30:15`
std::optional<ClockTime> read_clock(MomentReader& from) {
  const auto hour = from.number(1, 2);
  if (!hour || !from.take(":")) return std::nullopt;
  const auto minute = from.number(2, 2);
  if (!minute) return std::nullopt;
  const std::optional<int> second = from.take(":") ? from.number(2, 2) : 0;
  if (!second || *hour > 23 || *minute > 59 || *second > 59) return std::nullopt;
  return ClockTime{*hour, *minute, *second};
}

struct Date {
  int year = 0;
  int month = 0;
  int day = 0;
};

std::optional<Date> read_date(MomentReader& from) {
  const auto year = from.number(4, 4);
  if (!year || !from.take("-")) return std::nullopt;
  const auto month = from.number(2, 2);
  if (!month || !from.take("-")) return std::nullopt;
  const auto day = from.number(2, 2);
  if (!day) return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(*year), std::chrono::month(static_cast<unsigned>(*month)),
                                         std::chrono::day(static_cast<unsigned>(*day))};
  if (!date.ok() || *year < first_year || *year > last_year) return std::nullopt;
  return Date{*year, *month, *day};
}

std::tm fields_of(Date date, ClockTime clock) {
  std::tm fields{};
  fields.tm_year = date.year - 1900;
  fields.tm_mon = date.month - 1;
  fields.tm_mday = date.day;
  fields.tm_hour = clock.hour;
  fields.tm_min = clock.minute;
  fields.tm_sec = clock.second;
  fields.tm_isdst = -1;
  return fields;
}

/// When clocks here show a time: twice in the hour that is repeated as summer time ends. In the hour that is left out
/// as it begins, both are an hour later.
struct LocalMoments {
  Moment first;
  Moment last;
};

// A day behind the last of a month is the next month's, as mktime() has it.
LocalMoments local_moments(Date date, ClockTime clock) {
  const auto read = [&](int summer, bool& is_right) {
    std::tm fields = fields_of(date, clock);
    fields.tm_isdst = summer;
    const std::time_t seconds = std::mktime(&fields);
    is_right = fields.tm_isdst == summer;
    return system_clock::from_time_t(seconds);
  };
  bool in_summer = false;
  bool in_winter = false;
  const Moment summer = read(1, in_summer);
  const Moment winter = read(0, in_winter);
  if (in_summer && in_winter) return {std::min(summer, winter), std::max(summer, winter)};
  return in_summer ? LocalMoments{summer, summer} : LocalMoments{winter, winter};
}

Moment local_moment(Date date, ClockTime clock) { return local_moments(date, clock).first; }

Moment utc_moment(Date date, ClockTime clock) {
  std::tm fields = fields_of(date, clock);
  fields.tm_isdst = 0;
  return system_clock::from_time_t(timegm(&fields));
}

Date local_date(Moment moment) {
  const std::time_t seconds = system_clock::to_time_t(moment);
  std::tm fields{};
  localtime_r(&seconds, &fields);
  return {fields.tm_year + 1900, fields.tm_mon + 1, fields.tm_mday};
}

Date days_after(Date date, int days) {
  date.day += days;
  return date;
}

// `Z`, `+01:00`, `-0530`: how far the clock there is ahead.
std::optional<minutes> read_offset(MomentReader& from) {
  if (from.take("Z") || from.take("z")) return minutes(0);
  const bool ahead = from.take("+");
  if (!ahead && !from.take("-")) return std::nullopt;
  const auto hour = from.number(2, 2);
  from.take(":");
  const auto minute = from.number(2, 2);
  if (!hour || !minute || *hour > 23 || *minute > 59) return std::nullopt;
  const minutes offset(*hour * 60 + *minute);
  return ahead ? offset : -offset;
}

// `2026-11-17 14:00`, `2026-11-17T14:00:00.123Z`, `2026-11-17`
std::optional<Moment> read_dated(std::string_view text, bool date_alone) {
  MomentReader from(text);
  const std::optional<Date> date = read_date(from);
  if (!date) return std::nullopt;
  if (from.at_end()) return date_alone ? std::optional(local_moment(*date, {})) : std::nullopt;
  if (!from.take(" ") && !from.take("T")) return std::nullopt;
  const std::optional<ClockTime> clock = read_clock(from);
  if (!clock) return std::nullopt;
  if (from.take(".")) from.skip_digits();
  if (from.at_end()) return local_moment(*date, *clock);
  const std::optional<minutes> offset = read_offset(from);
  if (!offset || !from.at_end()) return std::nullopt;
  return utc_moment(*date, *clock) - *offset;
}

// `14:00` as the whole text.
std::optional<ClockTime> whole_clock(std::string_view text) {
  MomentReader from(text);
  const std::optional<ClockTime> clock = read_clock(from);
  return from.at_end() ? clock : std::nullopt;
}

// `tomorrow 9:30`: the clock time behind the word for a day.
std::optional<ClockTime> clock_behind(std::string_view text, std::string_view day) {
  if (!text.starts_with(day) || !text.substr(day.size()).starts_with(' ')) return std::nullopt;
  return whole_clock(text.substr(day.size() + 1));
}

}  // namespace

std::optional<Moment> parse_moment(std::string_view text) { return read_dated(text, false); }

std::optional<Moment> parse_future(std::string_view text, Moment now) {
  if (text == "now") return now;
  if (text.starts_with('+')) {
    const auto wait = parse_duration(text.substr(1));
    return wait ? std::optional(now + *wait) : std::nullopt;
  }
  const Date today = local_date(now);
  if (const auto clock = clock_behind(text, "today")) return local_moment(today, *clock);
  if (const auto clock = clock_behind(text, "tomorrow")) return local_moment(days_after(today, 1), *clock);
  if (const auto clock = whole_clock(text)) {
    const LocalMoments moments = local_moments(today, *clock);
    if (moments.last <= now) return local_moment(days_after(today, 1), *clock);
    return moments.first > now ? moments.first : moments.last;
  }
  return read_dated(text, false);
}

std::optional<Moment> parse_past(std::string_view text, Moment now) {
  if (text.ends_with(" ago")) text.remove_suffix(4);
  if (const auto age = parse_duration(text)) return now - *age;
  const Date today = local_date(now);
  if (text == "today") return local_moment(today, {});
  if (text == "yesterday") return local_moment(days_after(today, -1), {});
  if (const auto clock = clock_behind(text, "today")) return local_moment(today, *clock);
  if (const auto clock = clock_behind(text, "yesterday")) return local_moment(days_after(today, -1), *clock);
  if (const auto clock = whole_clock(text)) {
    const LocalMoments moments = local_moments(today, *clock);
    if (moments.first > now) return local_moments(days_after(today, -1), *clock).last;
    return moments.last <= now ? moments.last : moments.first;
  }
  return read_dated(text, true);
}

}  // namespace duet::app
