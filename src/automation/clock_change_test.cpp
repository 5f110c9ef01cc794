#include "automation/clock_change.h"

#include <gtest/gtest.h>

#include "automation/scarcity_test.h"

namespace duet::automation {
namespace {

TEST(ClockChange, IsQuietWhileTheClockIsLeftAlone) {
  transport::Loop loop;
  int changes = 0;
  {
    const ClockChange change(loop, [&] { ++changes; });
    loop.turn(loop.now() + std::chrono::milliseconds(20));
  }
  loop.turn(loop.now());
  EXPECT_EQ(changes, 0) << "a timer that is due at once would keep the daemon busy for ever";
}

TEST(ClockChange, DoesNotWorkWhereTheLoopCannotWatchIt) {
  transport::Loop loop;
  EXPECT_TRUE(ClockChange(loop, [] {}).works());
  const BlindLoops blind;
  EXPECT_FALSE(ClockChange(loop, [] {}).works());
}

}  // namespace
}  // namespace duet::automation
