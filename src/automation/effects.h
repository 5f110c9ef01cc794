#pragma once

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "duet/base/clock.h"

namespace duet::automation {

/// What a rule has started, as the cause of what follows.
struct Cause {
  std::string name = {};  ///< of a task, `task-7`, or of the firing that has run a program, `firing-9`
  unsigned depth = 0;
};

/// When the tasks and programs of rules ran, to tell which changes of files are their doing: those that are seen while
/// one runs, and a little after.
class Effects {
 public:
  /// One that had ended runs once more.
  void started(const Cause& cause, base::TimePoint at) {
    const auto known = find(cause.name);
    if (known == runs_.end()) {
      runs_.push_back({cause, at});
    } else if (known->end) {
      *known = {cause, at};
    }
  }

  void ended(std::string_view name, base::TimePoint at) {
    std::erase_if(runs_, [&](const Run& run) { return run.end && at - *run.end > longest_memory; });
    if (const auto run = find(name); run != runs_.end() && !run->end) run->end = at;
  }

  bool knows(std::string_view name) const {
    return std::ranges::find(runs_, name, [](const Run& run) { return std::string_view(run.cause.name); }) !=
           runs_.end();
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
  std::vector<Run>::iterator find(std::string_view name) {
    return std::find_if(runs_.begin(), runs_.end(), [name](const Run& run) { return run.cause.name == name; });
  }

  static constexpr base::Duration longest_memory = std::chrono::minutes(1);  // longer than changes take to settle

  std::vector<Run> runs_;
};

}  // namespace duet::automation
