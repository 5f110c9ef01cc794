#include "automation/schedule.h"

#include <algorithm>

namespace duet::automation {

Schedule::Passed Schedule::advance(base::UtcTime now) {
  constexpr std::chrono::hours hour{1};
  const bool comes_back = seen_ < latest_ && now - seen_ > hour && latest_ - now < hour;
  if (comes_back) seen_ = latest_;
  Passed passed;
  for (next_ = cron_.next(seen_); next_ <= now && passed.count < most_counted; next_ = cron_.next(next_)) {
    ++passed.count;
    passed.last = next_;
  }
  if (next_ <= now) passed.last = last_until(now, next_);
  const bool set_back = seen_ - now > hour;
  seen_ = set_back ? now : std::max(seen_, now);
  latest_ = std::max(latest_, seen_);
  next_ = cron_.next(seen_);
  return passed;
}

// The last time of the schedule that is not after `now`, by bisection, as there may be millions. `earlier` is one of
// its times, and not after `now`.
base::UtcTime Schedule::last_until(base::UtcTime now, base::UtcTime earlier) const {
  base::UtcTime none_after = now;
  while (none_after - earlier > std::chrono::seconds(1)) {
    const base::UtcTime middle = earlier + (none_after - earlier) / 2;
    const base::UtcTime next = cron_.next(middle);
    if (next <= now) {
      earlier = next;
    } else {
      none_after = middle;
    }
  }
  return earlier;
}

}  // namespace duet::automation
