#pragma once

#include <chrono>

namespace duet::task {

/// CLOCK_BOOTTIME: since the machine was started, the same for all its processes. It goes on while the machine is
/// suspended, which the clock of the loop does not, and nobody can set it.
struct BootClock {
  using duration = std::chrono::nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<BootClock>;
  static constexpr bool is_steady = true;

  static time_point now();
};

using BootTime = BootClock::time_point;

}  // namespace duet::task
