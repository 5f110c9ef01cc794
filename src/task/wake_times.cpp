#include "task/wake_times.h"

#include <algorithm>
#include <vector>

namespace duet::task {

void WakeTimes::set(TaskId id, Block block, base::Duration pause) {
  forget(id, block);
  const base::TimePoint end = loop_.now() + std::max(pause, base::Duration::zero());
  pauses_.insert({end, {id, block}});
  pause_ends_[{id, block}] = end;
  look_later();
}

void WakeTimes::set_wall(TaskId id, Block block, base::UtcTime time) {
  forget(id, block);
  times_.insert({time, {id, block}});
  time_ends_[{id, block}] = time;
  look_later();
}

void WakeTimes::forget(TaskId id, Block block) {
  const Wait wait{id, block};
  if (const auto pause = pause_ends_.extract(wait)) pauses_.erase({pause.mapped(), wait});
  if (const auto time = time_ends_.extract(wait)) times_.erase({time.mapped(), wait});
}

std::optional<base::Duration> WakeTimes::left(TaskId id, Block block) const {
  if (const auto pause = pause_ends_.find({id, block}); pause != pause_ends_.end()) return pause->second - loop_.now();
  if (const auto time = time_ends_.find({id, block}); time != time_ends_.end()) {
    return time->second - loop_.clock().utc();
  }
  return std::nullopt;
}

void WakeTimes::look() {
  next_look_.reset();
  std::vector<Wait> due;
  const base::TimePoint now = loop_.now();
  const base::UtcTime utc = loop_.clock().utc();
  for (auto at = pauses_.begin(); at != pauses_.end() && at->first <= now; ++at) due.push_back(at->second);
  for (auto at = times_.begin(); at != times_.end() && at->first <= utc; ++at) due.push_back(at->second);
  for (const Wait& wait : due) forget(wait.first, wait.second);
  look_later();
  for (const Wait& wait : due) due_(wait.first, wait.second);
}

void WakeTimes::look_later() {
  if (pauses_.empty() && times_.empty()) return;
  base::TimePoint next = base::TimePoint::max();
  if (!pauses_.empty()) next = pauses_.begin()->first;
  if (!times_.empty()) {
    const base::Duration left =
        std::clamp<base::Duration>(times_.begin()->first - loop_.clock().utc(), base::Duration::zero(), between_looks);
    next = std::min(next, loop_.now() + left);
  }
  if (next_look_ && *next_look_ <= next) return;
  next_look_ = next;
  timer_ = loop_.after(std::max(next - loop_.now(), base::Duration::zero()), [this] { look(); });
}

}  // namespace duet::task
