#pragma once

#include <atomic>

#include "duet/base/clock.h"

namespace duet::base {

/// The clock of the machine, ahead of it by what a test has skipped: patience may be long for what has to succeed, and
/// be over at once for what has to fail.
class SkippingClock final : public Clock {
 public:
  TimePoint now() const override { return system_clock().now() + Duration(skipped_); }
  UtcTime utc() const override { return system_clock().utc() + Duration(skipped_); }
  void skip(Duration time) { skipped_ += time.count(); }

 private:
  void doze(std::unique_lock<std::mutex>& lock, std::condition_variable& changed, TimePoint deadline) override {
    changed.wait_until(lock, deadline - Duration(skipped_));
  }
  std::atomic<Duration::rep> skipped_ = 0;
};

}  // namespace duet::base
