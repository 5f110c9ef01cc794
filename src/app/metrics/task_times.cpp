#include "app/metrics/task_times.h"

#include <algorithm>
#include <charconv>

#include "duet/base/utc_text.h"
#include "duet/rpc/json_scan.h"
#include "task/transition.h"

namespace duet::app {
namespace {

using std::chrono::milliseconds;

// The times in an event, without their quotes.
struct EventTimes {
  std::string_view created, started, completed;
};

EventTimes times_in(std::string_view params) {
  EventTimes found;
  rpc::for_each_member(params, [&](std::string_view name, std::string_view value) {
    if (value.size() < 2) return true;
    const std::string_view text = value.substr(1, value.size() - 2);
    if (name == "createdAt") found.created = text;
    if (name == "startedAt") found.started = text;
    if (name == "completedAt") found.completed = text;
    return true;
  });
  return found;
}

std::optional<milliseconds> between(std::optional<base::UtcTime> from, std::optional<base::UtcTime> to) {
  if (!from || !to) return std::nullopt;
  return std::max(std::chrono::duration_cast<milliseconds>(*to - *from), milliseconds(0));  // the clock may be set back
}

template <typename Whole>
bool take_digits(std::string_view text, std::size_t at, std::size_t count, Whole& value) {
  const char* const end = text.data() + at + count;
  return std::from_chars(text.data() + at, end, value).ptr == end;
}

}  // namespace

std::optional<base::UtcTime> utc_time_of(std::string_view text) {
  if (text.size() != base::UtcText::size) return std::nullopt;
  int year = 0;
  unsigned month = 0;
  unsigned day = 0;
  unsigned hours = 0;
  unsigned minutes = 0;
  unsigned millis = 0;
  unsigned seconds = 0;
  const bool has_digits = take_digits(text, 0, 4, year) && take_digits(text, 5, 2, month) &&
                          take_digits(text, 8, 2, day) && take_digits(text, 11, 2, hours) &&
                          take_digits(text, 14, 2, minutes) && take_digits(text, 17, 2, seconds) &&
                          take_digits(text, 20, 3, millis);
  const std::chrono::year_month_day date{std::chrono::year(year), std::chrono::month(month), std::chrono::day(day)};
  if (!has_digits || !date.ok()) return std::nullopt;
  const base::UtcTime time = std::chrono::sys_days(date) + std::chrono::hours(hours) + std::chrono::minutes(minutes) +
                             std::chrono::seconds(seconds) + milliseconds(millis);
  return base::utc_text(time) == text ? std::optional(time) : std::nullopt;
}

TaskTimes::Times TaskTimes::take(const task::Event& event) {
  Times times;
  const EventTimes told = times_in(event.params);
  if (event.kind == "taskQueued" && !told.created.empty()) {
    times.is_new = true;
    const std::optional<base::UtcTime> created = utc_time_of(told.created);
    if (created && waiting_.size() < most_waiting_) waiting_.emplace(event.task, *created);
  } else if (task::tells_start(event) || task::tells_end(event)) {
    const auto found = waiting_.find(event.task);
    if (found != waiting_.end()) {
      if (!told.started.empty()) times.waited = between(found->second, utc_time_of(told.started));
      waiting_.erase(found);
    }
    if (task::tells_end(event)) times.ran = between(utc_time_of(told.started), utc_time_of(told.completed));
  }
  return times;
}

}  // namespace duet::app
