#include "automation/alarm.h"

#include <algorithm>

namespace duet::automation {

void Alarm::set(base::UtcTime time) {
  constexpr base::Duration minute = std::chrono::minutes(1);
  if (!clock_change_ || !clock_change_->works()) clock_change_.emplace(loop_, [this] { ring_(); });
  const base::Duration wait = time - loop_.clock().utc();
  timer_ = loop_.after(clock_change_->works() ? wait : std::min(wait, minute), [this] { ring_(); });
}

void Alarm::unset() {
  timer_.cancel();
  clock_change_.reset();
}

}  // namespace duet::automation
