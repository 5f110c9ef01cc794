#include "automation/cron.h"

#include <time.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstddef>
#include <optional>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

namespace duet::automation {
namespace {

using std::chrono::days;
using std::chrono::hours;
using std::chrono::local_days;
using std::chrono::local_seconds;
using std::chrono::minutes;
using std::chrono::seconds;
using std::chrono::sys_seconds;

constexpr std::array<std::string_view, 12> month_names{"jan", "feb", "mar", "apr", "may", "jun",
                                                       "jul", "aug", "sep", "oct", "nov", "dec"};
constexpr std::array<std::string_view, 7> weekday_names{"sun", "mon", "tue", "wed", "thu", "fri", "sat"};
constexpr std::array<unsigned, 12> longest_months{31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};

constexpr int sunday = 7;  // at the end of a range; else 0

struct Field {
  std::string_view name;
  int first;
  int last;
  std::span<const std::string_view> names = {};
};

constexpr std::array<Field, 5> fields{{{"minute", 0, 59},
                                       {"hour", 0, 23},
                                       {"day of month", 1, 31},
                                       {"month", 1, 12, month_names},
                                       {"day of week", 0, sunday, weekday_names}}};

using Fault = std::invalid_argument;
using Place = std::shared_ptr<const TimeZone>;

struct Nickname {
  std::string_view name;
  std::string_view fields;
};
constexpr std::array<Nickname, 7> nicknames{{{"@hourly", "0 * * * *"},
                                             {"@daily", "0 0 * * *"},
                                             {"@midnight", "0 0 * * *"},
                                             {"@weekly", "0 0 * * 0"},
                                             {"@monthly", "0 0 1 * *"},
                                             {"@yearly", "0 0 1 1 *"},
                                             {"@annually", "0 0 1 1 *"}}};

Fault fault_in(const Field& field, const std::string& what) {
  return Fault("the " + std::string(field.name) + " " + what);
}

std::string quote(std::string_view text) { return "\"" + std::string(text) + "\""; }

std::optional<int> number(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc{} && end == text.data() + text.size();
  return whole && text.front() != '-' ? std::optional(value) : std::nullopt;
}

bool same_word(std::string_view text, std::string_view word) {
  return std::equal(text.begin(), text.end(), word.begin(), word.end(),
                    [](char a, char b) { return std::tolower(static_cast<unsigned char>(a)) == b; });
}

int value_of(const Field& field, std::string_view text) {
  for (std::size_t i = 0; i < field.names.size(); ++i) {
    if (same_word(text, field.names[i])) return field.first + static_cast<int>(i);
  }
  const std::optional<int> value = number(text);
  if (value && *value >= field.first && *value <= field.last) return *value;
  throw fault_in(field, "is " + std::to_string(field.first) + " to " + std::to_string(field.last) +
                            (field.names.empty() ? "" : " or a name like " + std::string(field.names.back())) +
                            ", not " + quote(text));
}

int step_of(const Field& field, std::string_view text) {
  const std::optional<int> step = number(text);
  if (step && *step > 0 && *step <= field.last - field.first + 1) return *step;
  throw fault_in(field, "cannot go in steps of " + quote(text));
}

// One element of a list: `*`, `5`, `1-5`, and the first and last with `/2`.
std::uint64_t parse_element(const Field& field, std::string_view text) {
  const std::size_t slash = text.find('/');
  const int step = slash == text.npos ? 1 : step_of(field, text.substr(slash + 1));
  const std::string_view range = text.substr(0, slash);
  const std::size_t dash = range.find('-');
  int from = field.first;
  int to = field.last;
  if (range != "*") {
    from = value_of(field, range.substr(0, dash));
    to = dash == range.npos ? from : value_of(field, range.substr(dash + 1));
    if (slash != text.npos && dash == range.npos) throw fault_in(field, "has a step without a range: " + quote(text));
    if (to == 0 && from > 0 && field.last == sunday) to = sunday;
    if (to < from) throw fault_in(field, "has a range that ends before it begins: " + quote(range));
  }
  std::uint64_t bits = 0;
  for (int value = from; value <= to; value += step) bits |= std::uint64_t{1} << value;
  return bits;
}

std::uint64_t parse_field(const Field& field, std::string_view text) {
  std::uint64_t bits = 0;
  for (;;) {
    const std::size_t comma = text.find(',');
    bits |= parse_element(field, text.substr(0, comma));
    if (comma == text.npos) return bits;
    text.remove_prefix(comma + 1);
  }
}

std::vector<std::string_view> words(std::string_view text) {
  constexpr std::string_view blanks = " \t";
  std::vector<std::string_view> found;
  for (std::size_t at = text.find_first_not_of(blanks); at != text.npos; at = text.find_first_not_of(blanks, at)) {
    const std::size_t end = std::min(text.find_first_of(blanks, at), text.size());
    found.push_back(text.substr(at, end - at));
    at = end;
  }
  return found;
}

bool has(std::uint64_t bits, unsigned value) { return (bits >> value & 1) != 0; }

bool date_exists(std::uint64_t days_of_month, std::uint64_t months) {
  for (unsigned month = 1; month <= longest_months.size(); ++month) {
    for (unsigned day = 1; day <= longest_months[month - 1]; ++day) {
      if (has(months, month) && has(days_of_month, day)) return true;
    }
  }
  return false;
}

seconds offset_at(const Place& zone, sys_seconds at) {
  if (zone) return zone->offset_at(at);
  const time_t when = at.time_since_epoch().count();
  tm local{};
  return localtime_r(&when, &local) == nullptr ? seconds(0) : seconds(local.tm_gmtoff);
}

local_seconds local_at(const Place& zone, sys_seconds at) {
  return local_seconds(at.time_since_epoch() + offset_at(zone, at));
}
sys_seconds utc_with(local_seconds local, seconds offset) { return sys_seconds(local.time_since_epoch() - offset); }

// The first instant after `from` at which the clocks are changed, if that is before `limit`, else `limit`.
sys_seconds next_change(const Place& zone, sys_seconds from, sys_seconds limit) {
  constexpr hours stride{6};  // no zone changes its clocks twice in so short a time
  const seconds offset = offset_at(zone, from);
  sys_seconds before = from;
  while (before < limit) {
    sys_seconds after = std::min(before + stride, limit);
    if (offset_at(zone, after) == offset) {
      before = after;
      continue;
    }
    while (after - before > seconds(1)) {
      const sys_seconds middle = before + (after - before) / 2;
      (offset_at(zone, middle) == offset ? before : after) = middle;
    }
    return after;
  }
  return limit;
}

// The first instant at which the local clock reads `time` or later.
sys_seconds first_reached(const Place& zone, local_seconds time) {
  sys_seconds at = utc_with(time, days(1));  // east of every zone
  while (local_at(zone, at) < time) {
    const sys_seconds expected = utc_with(time, offset_at(zone, at));
    at = next_change(zone, at, expected);
  }
  return at;
}

}  // namespace

bool Cron::day_matches(local_days day) const {
  const std::chrono::year_month_day date(day);
  const std::chrono::weekday weekday(day);
  if (!has(months_, static_cast<unsigned>(date.month()))) return false;
  const bool by_date = has(days_, static_cast<unsigned>(date.day()));
  const bool by_weekday = has(weekdays_, weekday.c_encoding());
  return either_day_ ? by_date || by_weekday : by_date && by_weekday;
}

local_seconds Cron::next_match(local_seconds from) const {
  constexpr days longest_wait{366 * 40};  // 29 February, or the first of a month on a given weekday
  const local_days first = std::chrono::floor<days>(from);
  unsigned minute = static_cast<unsigned>(std::chrono::floor<minutes>(from - first).count());
  for (local_days day = first; day < first + longest_wait; day += days(1), minute = 0) {
    if (!day_matches(day)) continue;
    for (; minute < 24 * 60; ++minute) {
      if (has(hours_, minute / 60) && has(minutes_, minute % 60)) return day + minutes(minute);
    }
  }
  return first + longest_wait;
}

// The times of day that are named: each once.
sys_seconds Cron::next_reached(sys_seconds after) const {
  local_seconds from = std::chrono::floor<minutes>(local_at(zone_, after));
  for (;;) {
    const local_seconds match = next_match(from);
    const sys_seconds at = first_reached(zone_, match);
    if (at > after) return at;
    from = match + minutes(1);
  }
}

// Whatever the clock shows, as often as it shows it.
sys_seconds Cron::next_shown(sys_seconds after) const {
  sys_seconds from = after + seconds(1);
  for (;;) {
    const sys_seconds at =
        utc_with(next_match(std::chrono::ceil<minutes>(local_at(zone_, from))), offset_at(zone_, from));
    const sys_seconds change = next_change(zone_, from, at + seconds(1));
    if (at < change) return at;
    from = change;
  }
}

base::UtcTime Cron::next(base::UtcTime after) const {
  const sys_seconds second = std::chrono::floor<seconds>(after);
  return every_hour_ ? next_shown(second) : next_reached(second);
}

bool is_reboot(std::string_view text) {
  const std::vector<std::string_view> parts = words(text);
  return parts.size() == 1 && parts[0] == "@reboot";
}

std::variant<Cron, std::string> parse_cron(std::string_view text, std::shared_ptr<const TimeZone> zone) {
  std::vector<std::string_view> parts = words(text);
  const auto* const nickname =
      parts.size() == 1 ? std::ranges::find(nicknames, parts[0], &Nickname::name) : nicknames.end();
  if (nickname != nicknames.end()) parts = words(nickname->fields);
  if (parts.size() == 1 && parts[0].starts_with('@')) {
    return "there is no " + quote(parts[0]) + ", but @hourly, @daily, @weekly, @monthly, @yearly and @reboot";
  }
  if (parts.size() != fields.size()) {
    return "a schedule has five fields (minute, hour, day of month, month, day of week), not " +
           std::to_string(parts.size());
  }
  Cron cron;
  cron.zone_ = std::move(zone);
  try {
    cron.minutes_ = parse_field(fields[0], parts[0]);
    cron.hours_ = parse_field(fields[1], parts[1]);
    cron.days_ = parse_field(fields[2], parts[2]);
    cron.months_ = parse_field(fields[3], parts[3]);
    cron.weekdays_ = parse_field(fields[4], parts[4]);
  } catch (const Fault& fault) {
    return fault.what();
  }
  if (has(cron.weekdays_, sunday)) cron.weekdays_ |= 1;
  cron.every_hour_ = parts[1].starts_with('*');
  cron.either_day_ = !parts[2].starts_with('*') && !parts[4].starts_with('*');
  if (!cron.either_day_ && !date_exists(cron.days_, cron.months_)) return "the day and the month never come together";
  return cron;
}

}  // namespace duet::automation
