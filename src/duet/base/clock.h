#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "duet/api.h"

namespace duet::base {

using Duration = std::chrono::steady_clock::duration;
using TimePoint = std::chrono::steady_clock::time_point;
using UtcTime = std::chrono::system_clock::time_point;

/// Since 1970, as stores and the wire count.
inline std::int64_t milliseconds_of(UtcTime time) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch()).count();
}

/// What time it is, and waiting until it is later.
///
/// Deadlines are `TimePoint`s of the clock that is waited on and never jump; `utc()` is for people to read and may.
/// Any thread may call anything. A clock must outlive the threads that wait on it.
class DUET_API Clock {
 public:
  virtual ~Clock() = default;

  virtual TimePoint now() const = 0;
  virtual UtcTime utc() const = 0;

  /// Waits until `ready()`, which is called with `lock` held, or until the deadline. Returns the last `ready()`.
  /// Whoever changes what `ready` looks at notifies `changed`.
  template <typename Ready>
  bool wait(std::unique_lock<std::mutex>& lock, std::condition_variable& changed, TimePoint deadline, Ready ready) {
    while (!ready()) {
      if (now() >= deadline) return ready();
      doze(lock, changed, deadline);
    }
    return true;
  }

 private:
  /// Returns on a notification, at the deadline, or for no reason.
  virtual void doze(std::unique_lock<std::mutex>& lock, std::condition_variable& changed, TimePoint deadline) = 0;
};

/// The clock of the machine.
class DUET_API SystemClock final : public Clock {
 public:
  TimePoint now() const override { return std::chrono::steady_clock::now(); }
  UtcTime utc() const override { return std::chrono::system_clock::now(); }

 private:
  void doze(std::unique_lock<std::mutex>& lock, std::condition_variable& changed, TimePoint deadline) override;
};

DUET_API Clock& system_clock();

/// A clock for tests: it stands still until `advance`, which wakes every waiter whose deadline has come.
///
/// `await_waiters` lets a test know that a thread has come to its wait, so that no test has to sleep.
class DUET_API VirtualClock final : public Clock {
 public:
  explicit VirtualClock(UtcTime utc = {}) : utc_(utc) {}

  TimePoint now() const override;
  UtcTime utc() const override;

  void advance(Duration step);
  /// Sets the clock on the wall; the other one does not jump.
  void set_utc(UtcTime utc);

  /// The earliest deadline that a thread waits for; the end of time if there is none.
  TimePoint next_deadline() const;

  /// Blocks until at least `count` threads wait on this clock; false if that takes more than `patience` of real time.
  bool await_waiters(std::size_t count, Duration patience = std::chrono::seconds(20));

 private:
  struct Waiter {
    std::mutex* mutex;
    std::condition_variable* changed;
    TimePoint deadline;
    bool being_woken = false;
  };

  void doze(std::unique_lock<std::mutex>& lock, std::condition_variable& changed, TimePoint deadline) override;
  void leave(Waiter& waiter);

  mutable std::mutex mutex_;
  std::condition_variable arrived_;
  std::condition_variable woken_;
  std::vector<Waiter*> waiters_;
  TimePoint now_;
  UtcTime utc_;
};

}  // namespace duet::base
