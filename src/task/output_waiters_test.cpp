#include "task/output_waiters.h"

#include <chrono>

#include <gtest/gtest.h>

namespace duet::task {
namespace {

using namespace std::chrono_literals;

struct OutputWaitersTest : testing::Test {
  OutputWaiters::Ticket wait(TaskId id, base::Duration limit = 1h) {
    return waiters.wait(id, limit, [this](bool is_last) {
      ++looks;
      last_looks += is_last ? 1 : 0;
      return content;
    });
  }

  base::VirtualClock clock;
  transport::Loop loop{clock};
  OutputWaiters waiters{loop};
  bool content = false;
  int looks = 0;
  int last_looks = 0;
};

TEST_F(OutputWaitersTest, LooksAtEveryNewsUntilItIsContent) {
  wait(7);
  EXPECT_TRUE(waiters.is_awaited(7));
  waiters.take(7);
  EXPECT_TRUE(waiters.is_awaited(7));
  content = true;
  waiters.take(7);
  EXPECT_FALSE(waiters.is_awaited(7));
  waiters.take(7);
  EXPECT_EQ(looks, 2);
}

TEST_F(OutputWaitersTest, NewsOfAnotherTaskSayNothing) {
  wait(7);
  EXPECT_FALSE(waiters.is_awaited(6));
  waiters.take(6);
  waiters.take(8);
  EXPECT_EQ(looks, 0);
}

TEST_F(OutputWaitersTest, LooksForTheLastTimeWhenTheTimeIsUp) {
  wait(7, 2s);
  clock.advance(2s);
  loop.turn(loop.now());
  EXPECT_EQ(last_looks, 1);
  EXPECT_FALSE(waiters.is_awaited(7));
}

TEST_F(OutputWaitersTest, WhoStopsWaitingIsNotCalled) {
  waiters.stop_waiting(wait(7, 2s));
  waiters.take(7);
  clock.advance(3s);
  loop.turn(loop.now());
  EXPECT_EQ(looks, 0);
}

TEST_F(OutputWaitersTest, AllLookForTheLastTimeAtTheEnd) {
  wait(7);
  wait(7);
  wait(9);
  waiters.end();
  EXPECT_EQ(last_looks, 3);
  EXPECT_FALSE(waiters.is_awaited(7));
}

}  // namespace
}  // namespace duet::task
