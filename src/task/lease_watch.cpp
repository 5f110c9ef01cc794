#include "task/lease_watch.h"

#include <sys/timerfd.h>

#include <chrono>

namespace duet::task {

LeaseWatch::LeaseWatch(int tasks) : view_(tasks), timer_(timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK)) {}

LeaseLeft LeaseWatch::left() {
  const BootTime now = BootClock::now();
  const LeaseTerm term = view_.read(now).value_or(LeaseTerm{});
  BootTime next = BootTime::max();
  if (term.deadline > now) next = term.deadline;
  if (term.end() > now) next = term.end();
  const bool is_early_enough = set_to_ > now && set_to_ <= next;
  if (!is_early_enough) wake_at(next);
  return {.until_end = term.end() - now, .until_over = term.deadline - now};
}

void LeaseWatch::wake_at(BootTime next) {
  itimerspec time{};  // zeros: never
  if (next != BootTime::max()) {
    const auto seconds = std::chrono::floor<std::chrono::seconds>(next.time_since_epoch());
    time.it_value = {.tv_sec = seconds.count(), .tv_nsec = (next.time_since_epoch() - seconds).count()};
  }
  timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &time, nullptr);
  set_to_ = next;
}

}  // namespace duet::task
