#include "automation/schedule.h"

#include <algorithm>

namespace duet::automation {

Schedule::Passed Schedule::advance(base::UtcTime now) {
  Passed passed;
  for (; next_ <= now && passed.count < most_counted; next_ = cron_.next(next_)) {
    ++passed.count;
    passed.last = next_;
  }
  const bool set_back = seen_ - now > std::chrono::hours(1);
  seen_ = set_back ? now : std::max(seen_, now);
  next_ = cron_.next(seen_);
  return passed;
}

}  // namespace duet::automation
