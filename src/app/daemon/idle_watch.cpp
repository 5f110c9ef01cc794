#include "app/daemon/idle_watch.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace duet::app {

IdleWatch::IdleWatch(transport::Loop& loop, base::Duration limit, Calls calls)
    : loop_(loop), limit_(limit), calls_(std::move(calls)), unused_since_(loop.now()) {
  look();
}

void IdleWatch::look() {
  constexpr base::Duration shortest_pause = std::chrono::milliseconds(10);
  const bool is_used = calls_.is_used();
  // When it ended nobody knows exactly: now is the latest that it can have been.
  if (is_used || was_used_) note_use();
  was_used_ = is_used;
  const base::Duration left = unused_since_ + limit_ - loop_.now();
  if (left <= base::Duration::zero()) return calls_.end();
  timer_ = loop_.after(std::clamp(std::min(left, limit_ / 8), shortest_pause, longest_pause), [this] { look(); });
}

}  // namespace duet::app
