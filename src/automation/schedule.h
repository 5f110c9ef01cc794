#pragma once

#include <cstddef>
#include <string>

#include "automation/cron.h"
#include "duet/base/clock.h"

namespace duet::automation {

/// A cron that knows up to when its times have been dealt with, so that none is dealt with twice or forgotten.
class Schedule {
 public:
  static constexpr std::size_t most_counted = 1'000;

  Schedule(const Cron& cron, base::UtcTime seen) : Schedule(cron, seen, seen) {}
  /// As one before it was: with its seen() and its latest().
  Schedule(const Cron& cron, base::UtcTime seen, base::UtcTime latest)
      : cron_(cron), seen_(seen), latest_(latest), next_(cron.next(seen)) {}

  /// The next time that has not been dealt with.
  base::UtcTime next() const { return next_; }
  /// Up to when all is dealt with, by the clock as it is now.
  base::UtcTime seen() const { return seen_; }
  /// Up to when something was dealt with ever: later than that if the clock was set back.
  base::UtcTime latest() const { return latest_; }

  struct Passed {
    std::size_t count = 0;    ///< not beyond most_counted
    base::UtcTime last = {};  ///< of all, also of those that are not counted
  };
  /// Deals with all times up to now, in the time zone of now; at least every hour. Times that come again because the
  /// clock was set back are not taken twice, unless it was set back by more than an hour; and then neither, if it jumps
  /// to where it was before, since it was wrong meanwhile.
  Passed advance(base::UtcTime now);

 private:
  base::UtcTime last_until(base::UtcTime now, base::UtcTime earlier) const;

  Cron cron_;
  base::UtcTime seen_;
  base::UtcTime latest_;
  base::UtcTime next_;
};

}  // namespace duet::automation
