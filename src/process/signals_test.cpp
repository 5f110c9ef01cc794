#include "process/signals.h"

#include <signal.h>

#include <vector>

#include <gtest/gtest.h>

namespace duet::process {
namespace {

struct SignalsTest : testing::Test {
  SignalsTest() { pthread_sigmask(SIG_SETMASK, nullptr, &before); }
  ~SignalsTest() override { pthread_sigmask(SIG_SETMASK, &before, nullptr); }
  sigset_t before{};
};

TEST_F(SignalsTest, ReachTheLoopAndDoNothingElse) {
  transport::Loop loop;
  std::vector<int> came;
  const Signals signals(loop, {SIGUSR1, SIGHUP}, [&](int signal) { came.push_back(signal); });
  raise(SIGUSR1);
  raise(SIGHUP);
  EXPECT_TRUE(came.empty()) << "only from the loop";
  while (came.size() < 2) loop.turn(loop.now() + std::chrono::seconds(20));
  EXPECT_EQ(came, (std::vector<int>{SIGHUP, SIGUSR1}));
}

}  // namespace
}  // namespace duet::process
