#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <optional>

#include "duet/base/clock.h"
#include "task/store_tables.h"

namespace duet::app {

/// What the events of tasks tell of how long these waited and ran. Of those that wait, as many as there is room for are
/// known, those that came first; one that was queued before this daemon began is not.
class TaskTimes {
 public:
  struct Times {
    bool is_new = false;                                   ///< the task was just submitted
    std::optional<std::chrono::milliseconds> waited = {};  ///< it begins its first attempt
    std::optional<std::chrono::milliseconds> ran = {};     ///< it has ended; its last attempt
  };

  explicit TaskTimes(std::size_t most_waiting = 4096) : most_waiting_(most_waiting) {}

  Times take(const task::Event& event);

 private:
  std::size_t most_waiting_;
  std::map<task::TaskId, base::UtcTime> waiting_;
};

}  // namespace duet::app
