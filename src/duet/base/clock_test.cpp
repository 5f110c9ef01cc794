#include "duet/base/clock.h"

#include <future>

#include <gtest/gtest.h>

namespace duet::base {
namespace {

using namespace std::chrono_literals;

/// A thread that waits for `ready` on a clock.
struct Sleeper {
  explicit Sleeper(Clock& on, Duration limit)
      : result(std::async(std::launch::async, [this, &on, deadline = on.now() + limit] {
          std::unique_lock lock(mutex);
          return on.wait(lock, changed, deadline, [this] { return ready; });
        })) {}

  std::mutex mutex;
  std::condition_variable changed;
  bool ready = false;
  std::future<bool> result;
};

TEST(SystemClock, NeverGoesBack) {
  const TimePoint before = system_clock().now();
  EXPECT_LE(before, system_clock().now());
}

TEST(SystemClock, ADeadlineInThePastEndsAWaitAtOnce) {
  std::mutex mutex;
  std::condition_variable changed;
  std::unique_lock lock(mutex);
  EXPECT_FALSE(system_clock().wait(lock, changed, system_clock().now() - 1s, [] { return false; }));
  EXPECT_TRUE(system_clock().wait(lock, changed, system_clock().now() - 1s, [] { return true; }));
  EXPECT_TRUE(lock.owns_lock());
}

TEST(SystemClock, AWaitEndsAtItsDeadline) {
  const TimePoint before = system_clock().now();
  Sleeper sleeper(system_clock(), 5ms);
  EXPECT_FALSE(sleeper.result.get());
  EXPECT_GE(system_clock().now() - before, 5ms);
}

TEST(VirtualClock, StandsStillUntilItIsAdvanced) {
  const UtcTime start{1'000'000s};
  VirtualClock clock(start);
  const TimePoint before = clock.now();
  EXPECT_EQ(clock.now(), before);
  clock.advance(1500ms);
  EXPECT_EQ(clock.now(), before + 1500ms);
  EXPECT_EQ(clock.utc(), start + 1500ms);
}

TEST(VirtualClock, WakesThoseWhoseDeadlineHasCome) {
  VirtualClock clock;
  const TimePoint start = clock.now();
  Sleeper early(clock, 10ms);
  Sleeper late(clock, 20ms);
  ASSERT_TRUE(clock.await_waiters(2));
  EXPECT_EQ(clock.next_deadline(), start + 10ms);

  clock.advance(10ms);
  EXPECT_FALSE(early.result.get());
  EXPECT_EQ(clock.next_deadline(), start + 20ms);

  clock.advance(10ms);
  EXPECT_FALSE(late.result.get());
  EXPECT_EQ(clock.next_deadline(), TimePoint::max());
}

TEST(VirtualClock, ANotificationEndsAWaitWithoutAnyTimePassing) {
  VirtualClock clock;
  Sleeper sleeper(clock, 1h);
  ASSERT_TRUE(clock.await_waiters(1));
  {
    const std::lock_guard guard(sleeper.mutex);
    sleeper.ready = true;
  }
  sleeper.changed.notify_one();
  EXPECT_TRUE(sleeper.result.get());
}

TEST(VirtualClock, NoWakeUpIsLostHoweverThreadsMeet) {
  VirtualClock clock;
  for (int round = 0; round < 500; ++round) {
    Sleeper sleeper(clock, 1ms);
    if (round % 2 == 0) clock.await_waiters(1);
    clock.advance(1ms);
    ASSERT_EQ(sleeper.result.wait_for(60s), std::future_status::ready);
  }
}

}  // namespace
}  // namespace duet::base
