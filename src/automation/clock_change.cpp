#include "automation/clock_change.h"

#include <sys/timerfd.h>
#include <unistd.h>

#include <limits>
#include <system_error>
#include <utility>

namespace duet::automation {

ClockChange::ClockChange(transport::Loop& loop, std::function<void()> changed)
    : changed_(std::move(changed)), timer_(timerfd_create(CLOCK_REALTIME, TFD_NONBLOCK | TFD_CLOEXEC)) {
  if (!timer_) return;
  arm();
  try {
    watch_ = loop.watch(timer_.get(), EPOLLIN, *this);
  } catch (const std::system_error&) {
    timer_.reset();
  }
}

// A timer that never ends, but is cancelled when the clock is set.
void ClockChange::arm() const {
  itimerspec never{};
  never.it_value.tv_sec = std::numeric_limits<time_t>::max();
  timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &never, nullptr);
}

void ClockChange::on_ready(std::uint32_t) {
  std::uint64_t expirations = 0;
  [[maybe_unused]] const ssize_t count = read(timer_.get(), &expirations, sizeof expirations);  // ECANCELED: clock set
  arm();
  changed_();
}

}  // namespace duet::automation
