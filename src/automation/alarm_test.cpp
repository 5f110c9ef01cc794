#include "automation/alarm.h"

#include <gtest/gtest.h>

namespace duet::automation {
namespace {

using namespace std::chrono_literals;

struct AlarmTest : testing::Test {
  base::VirtualClock clock{base::UtcTime(1000h)};
  transport::Loop loop{clock};
  int rings = 0;
  Alarm alarm{loop, [this] { ++rings; }};

  void advance(base::Duration step) {
    clock.advance(step);
    loop.turn(loop.now());
  }
};

TEST_F(AlarmTest, RingsOnceAtItsTime) {
  alarm.set(clock.utc() + 1h);
  advance(59min);
  EXPECT_EQ(rings, 0);
  advance(1min);
  EXPECT_EQ(rings, 1);
  advance(5h);
  EXPECT_EQ(rings, 1);
}

TEST_F(AlarmTest, CanBeSetToAnotherTimeAndUnset) {
  alarm.set(clock.utc() + 1h);
  alarm.set(clock.utc() + 2h);
  advance(1h);
  EXPECT_EQ(rings, 0);
  alarm.unset();
  advance(5h);
  EXPECT_EQ(rings, 0);
}

TEST_F(AlarmTest, ATimeThatHasPassedRingsAtOnce) {
  alarm.set(clock.utc() - 1h);
  advance(0s);
  EXPECT_EQ(rings, 1);
}

}  // namespace
}  // namespace duet::automation
