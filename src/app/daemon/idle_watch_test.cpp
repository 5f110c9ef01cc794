#include "app/daemon/idle_watch.h"

#include <gtest/gtest.h>

namespace duet::app {
namespace {

using namespace std::chrono_literals;

struct IdleWatchTest : testing::Test {
  /// Lets that much time pass, a second at a time; true if the end came.
  bool ends_within(std::chrono::seconds time) {
    for (const auto until = loop.now() + time; loop.now() < until && ends == 0;) {
      clock.advance(1s);
      loop.turn(loop.now());
    }
    return ends > 0;
  }

  base::VirtualClock clock;
  transport::Loop loop{clock};
  bool used = false;
  int ends = 0;
  IdleWatch watch{loop, 10min, {.is_used = [this] { return used; }, .end = [this] { ++ends; }}};
};

TEST_F(IdleWatchTest, TheEndComesWhenTheTimeHasPassedAndOnlyOnce) {
  EXPECT_FALSE(ends_within(599s));
  EXPECT_TRUE(ends_within(6s));
  clock.advance(1h);
  loop.turn(loop.now());
  EXPECT_EQ(ends, 1);
}

TEST_F(IdleWatchTest, ItDoesNotComeWhileItIsUsedNorTooSoonAfter) {
  EXPECT_FALSE(ends_within(300s));
  used = true;
  EXPECT_FALSE(ends_within(3h));
  used = false;
  EXPECT_FALSE(ends_within(599s));
  EXPECT_TRUE(ends_within(12s));
}

TEST_F(IdleWatchTest, WhoCameAndWentBetweenTwoLooksCounts) {
  EXPECT_FALSE(ends_within(590s));
  watch.note_use();
  EXPECT_FALSE(ends_within(599s));
  EXPECT_TRUE(ends_within(6s));
}

}  // namespace
}  // namespace duet::app
