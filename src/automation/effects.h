#pragma once

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "duet/base/clock.h"
#include "task/task.h"

namespace duet::automation {

/// A task that a rule has started, as the cause of what follows.
struct Cause {
  task::TaskId task = 0;
  unsigned depth = 0;
};

/// When the tasks of one rule ran, to tell which changes of files are their doing: those that are seen while one runs,
/// and a little after.
class Effects {
 public:
  void started(const Cause& cause, base::TimePoint at) {
    if (find(cause.task) == runs_.end()) runs_.push_back({cause, at});
  }

  void ended(task::TaskId task, base::TimePoint at) {
    std::erase_if(runs_, [&](const Run& run) { return run.end && at - *run.end > longest_memory; });
    if (const auto run = find(task); run != runs_.end()) run->end = at;
  }

  /// The deepest of those that may have caused what was seen then.
  std::optional<Cause> cause_of(base::TimePoint seen, base::Duration quiet) const {
    std::optional<Cause> found;
    for (const Run& run : runs_) {
      const bool during = run.start <= seen && (!run.end || seen <= *run.end + quiet);
      if (during && (!found || run.cause.depth > found->depth)) found = run.cause;
    }
    return found;
  }

 private:
  struct Run {
    Cause cause;
    base::TimePoint start;
    std::optional<base::TimePoint> end = {};
  };
  std::vector<Run>::iterator find(task::TaskId task) {
    return std::find_if(runs_.begin(), runs_.end(), [task](const Run& run) { return run.cause.task == task; });
  }

  static constexpr base::Duration longest_memory = std::chrono::minutes(1);  // longer than changes take to settle

  std::vector<Run> runs_;
};

}  // namespace duet::automation
