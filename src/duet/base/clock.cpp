#include "duet/base/clock.h"

#include <algorithm>

namespace duet::base {

void SystemClock::doze(std::unique_lock<std::mutex>& lock, std::condition_variable& changed, TimePoint deadline) {
  changed.wait_until(lock, deadline);
}

Clock& system_clock() {
  static SystemClock clock;
  return clock;
}

TimePoint VirtualClock::now() const {
  const std::lock_guard guard(mutex_);
  return now_;
}

UtcTime VirtualClock::utc() const {
  const std::lock_guard guard(mutex_);
  return utc_;
}

void VirtualClock::set_utc(UtcTime utc) {
  const std::lock_guard lock(mutex_);
  utc_ = utc;
}

void VirtualClock::advance(Duration step) {
  std::vector<Waiter*> due;
  {
    const std::lock_guard guard(mutex_);
    now_ += step;
    utc_ += std::chrono::duration_cast<UtcTime::duration>(step);
    for (Waiter* waiter : waiters_) {
      if (waiter->deadline > now_ || waiter->being_woken) continue;
      waiter->being_woken = true;
      due.push_back(waiter);
    }
  }
  for (Waiter* waiter : due) {
    // Once its mutex could be had the waiter is inside wait(), so the notification cannot come too early.
    waiter->mutex->lock();
    waiter->mutex->unlock();
    waiter->changed->notify_all();
    const std::lock_guard guard(mutex_);
    waiter->being_woken = false;
    woken_.notify_all();
  }
}

TimePoint VirtualClock::next_deadline() const {
  const std::lock_guard guard(mutex_);
  TimePoint earliest = TimePoint::max();
  for (const Waiter* waiter : waiters_) earliest = std::min(earliest, waiter->deadline);
  return earliest;
}

bool VirtualClock::await_waiters(std::size_t count, Duration patience) {
  std::unique_lock lock(mutex_);
  return arrived_.wait_for(lock, patience, [&] { return waiters_.size() >= count; });
}

void VirtualClock::doze(std::unique_lock<std::mutex>& lock, std::condition_variable& changed, TimePoint deadline) {
  Waiter self{lock.mutex(), &changed, deadline};
  {
    const std::lock_guard guard(mutex_);
    if (now_ >= deadline) return;
    waiters_.push_back(&self);
    arrived_.notify_all();
  }
  changed.wait(lock);
  // advance() may still hold a pointer to `self` and want the caller's mutex.
  lock.unlock();
  leave(self);
  lock.lock();
}

void VirtualClock::leave(Waiter& waiter) {
  std::unique_lock guard(mutex_);
  woken_.wait(guard, [&] { return !waiter.being_woken; });
  std::erase(waiters_, &waiter);
}

}  // namespace duet::base
