#pragma once

#include <functional>
#include <optional>

#include "automation/clock_change.h"
#include "duet/base/clock.h"
#include "duet/transport/loop.h"

namespace duet::automation {

/// Calls at a time by the clock on the wall, and early when that is set or the machine wakes up: whoever is called
/// looks at the clock and sets the alarm again. While the kernel cannot tell of that, it calls every minute. Costs
/// nothing while it is not set. For the loop's thread.
class Alarm {
 public:
  Alarm(transport::Loop& loop, std::function<void()> ring) : loop_(loop), ring_(std::move(ring)) {}
  Alarm(const Alarm&) = delete;
  Alarm& operator=(const Alarm&) = delete;
  ~Alarm() { unset(); }

  void set(base::UtcTime time);
  void unset();

 private:
  transport::Loop& loop_;
  std::function<void()> ring_;
  transport::Loop::Timer timer_;
  std::optional<ClockChange> clock_change_;
};

}  // namespace duet::automation
