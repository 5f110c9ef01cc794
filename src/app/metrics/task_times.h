#pragma once

#include <chrono>
#include <optional>

#include <boost/unordered/unordered_flat_map.hpp>

#include "duet/base/clock.h"
#include "task/store_tables.h"

namespace duet::app {

/// What the events of tasks tell of how long these waited and ran. It remembers when each task was taken that has not
/// begun yet, in some 30 bytes, so it is as large as the queue. A wait that began before this daemon is not known.
class TaskTimes {
 public:
  struct Times {
    bool is_new = false;                                   ///< the task was just submitted
    std::optional<std::chrono::milliseconds> waited = {};  ///< it begins its first attempt
    std::optional<std::chrono::milliseconds> ran = {};     ///< it has ended; its last attempt
  };

  Times take(const task::Event& event);

 private:
  boost::unordered_flat_map<task::TaskId, base::UtcTime> waiting_;
};

}  // namespace duet::app
