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

  Schedule(const Cron& cron, base::UtcTime seen) : cron_(cron), seen_(seen), next_(cron.next(seen)) {}

  /// The next time that has not been dealt with.
  base::UtcTime next() const { return next_; }
  base::UtcTime seen() const { return seen_; }

  struct Passed {
    std::size_t count = 0;  ///< not beyond most_counted
    base::UtcTime last = {};
  };
  /// Deals with all times up to now. Times that come again because the clock was set back are not taken twice, unless
  /// it was set back by more than an hour.
  Passed advance(base::UtcTime now);

 private:
  Cron cron_;
  base::UtcTime seen_;
  base::UtcTime next_;
};

}  // namespace duet::automation
