#include "automation/alarm.h"

#include <algorithm>

namespace duet::automation {

void Alarm::set(base::UtcTime time) {
  constexpr base::Duration minute = std::chrono::minutes(1);
  if (!clock_change_ || !clock_change_->works()) clock_change_.emplace(loop_, [this] { ring_(); });
  if (timer_) loop_.cancel(*timer_);
  const base::Duration wait = time - loop_.clock().utc();
  timer_ = loop_.after(clock_change_->works() ? wait : std::min(wait, minute), [this] {
    timer_.reset();
    ring_();
  });
}

void Alarm::unset() {
  if (timer_) loop_.cancel(*timer_);
  timer_.reset();
  clock_change_.reset();
}

}  // namespace duet::automation
