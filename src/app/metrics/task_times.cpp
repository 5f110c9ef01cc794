#include "app/metrics/task_times.h"

#include <algorithm>
#include <string_view>

#include "duet/rpc/json_scan.h"
#include "task/time_text.h"
#include "task/transition.h"

namespace duet::app {
namespace {

using std::chrono::milliseconds;

// The times in an event, without their quotes.
struct EventTimes {
  std::string_view started, completed;
};

EventTimes times_in(std::string_view params) {
  EventTimes found;
  rpc::for_each_member(params, [&](std::string_view name, std::string_view value) {
    if (value.size() < 2) return true;
    const std::string_view text = value.substr(1, value.size() - 2);
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

}  // namespace

TaskTimes::Times TaskTimes::take(const task::Event& event) {
  Times times;
  if (event.arrived_at) {  // most events: their text is not looked at
    times.is_new = true;
    if (waiting_.size() < most_waiting_) waiting_.emplace(event.task, *event.arrived_at);
  } else if (task::tells_start(event) || task::tells_end(event)) {
    const EventTimes told = times_in(event.params);
    const auto found = waiting_.find(event.task);
    if (found != waiting_.end()) {
      if (!told.started.empty()) times.waited = between(found->second, task::parse_time(told.started));
      waiting_.erase(found);
    }
    if (task::tells_end(event)) times.ran = between(task::parse_time(told.started), task::parse_time(told.completed));
  }
  return times;
}

}  // namespace duet::app
