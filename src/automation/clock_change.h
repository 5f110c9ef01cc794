#pragma once

#include <functional>

#include "duet/base/fd.h"
#include "duet/transport/loop.h"

namespace duet::automation {

/// Calls when the clock on the wall was set, or the machine has slept: timers that wait for a time of day are wrong
/// then. Where the kernel cannot tell, nothing is called, and works() is false. For the loop's thread.
class ClockChange final : transport::Loop::Watcher {
 public:
  ClockChange(transport::Loop& loop, std::function<void()> changed);
  ClockChange(const ClockChange&) = delete;
  ClockChange& operator=(const ClockChange&) = delete;

  bool works() const { return static_cast<bool>(timer_); }

 private:
  void on_ready(std::uint32_t events) override;
  void arm() const;

  std::function<void()> changed_;
  base::Fd timer_;
  transport::Loop::Watch watch_;
};

}  // namespace duet::automation
