#include "automation/alarm.h"

namespace duet::automation {

void Alarm::set(base::UtcTime time) {
  if (!clock_change_) clock_change_.emplace(loop_, [this] { ring_(); });
  if (timer_) loop_.cancel(*timer_);
  timer_ = loop_.after(time - loop_.clock().utc(), [this] {
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
