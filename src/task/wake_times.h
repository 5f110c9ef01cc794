#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#include "duet/base/clock.h"
#include "duet/transport/loop.h"
#include "task/task.h"
#include "task/task_queue.h"

namespace duet::task {

/// When queued tasks are to go on: after a pause, or at a time on the wall. A task has at most one time for each block
/// that it waits with. One timer for all of them.
///
/// The clock on the wall may be set, and a machine may sleep: it is looked at every ten seconds at least, as long as
/// somebody waits for it. For the loop's thread only.
class WakeTimes {
 public:
  using Due = std::function<void(TaskId, Block)>;
  static constexpr base::Duration between_looks = std::chrono::seconds(10);

  WakeTimes(transport::Loop& loop, Due due) : loop_(loop), due_(std::move(due)) {}
  WakeTimes(const WakeTimes&) = delete;
  WakeTimes& operator=(const WakeTimes&) = delete;

  /// Each takes the place of what was said before for the same task and block.
  void set(TaskId id, Block block, base::Duration pause);
  void set_wall(TaskId id, Block block, base::UtcTime time);
  void forget(TaskId id, Block block);
  /// How long it still waits; none if it does not.
  std::optional<base::Duration> left(TaskId id, Block block) const;

 private:
  using Wait = std::pair<TaskId, Block>;

  void look();
  void look_later();

  transport::Loop& loop_;
  Due due_;
  std::set<std::pair<base::TimePoint, Wait>> pauses_;
  std::set<std::pair<base::UtcTime, Wait>> times_;
  std::map<Wait, base::TimePoint> pause_ends_;
  std::map<Wait, base::UtcTime> time_ends_;
  std::optional<base::TimePoint> next_look_;
  transport::Loop::Timer timer_;
};

}  // namespace duet::task
