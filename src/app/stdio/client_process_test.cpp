#include "app/stdio/client_process.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <limits>

#include <gtest/gtest.h>

namespace duet::app {
namespace {

using namespace std::chrono_literals;

/// A child that does nothing until it is ended.
class Sleeper {
 public:
  Sleeper() : pid_(fork()) {
    if (pid_ == 0) {
      while (true) pause();
    }
  }
  ~Sleeper() { end(); }

  pid_t pid() const { return pid_; }
  void end() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }

 private:
  pid_t pid_;
};

class ClientProcessTest : public testing::Test {
 protected:
  void turn(base::Duration time) { loop_.turn(loop_.now() + time); }

  transport::Loop loop_;
  int ended_ = 0;
  ClientProcess client_{loop_, [this] { ++ended_; }};
};

TEST_F(ClientProcessTest, TellsOnceThatTheProcessHasEnded) {
  Sleeper sleeper;
  ASSERT_TRUE(client_.watch(sleeper.pid()));
  turn(0ms);
  EXPECT_EQ(ended_, 0);
  sleeper.end();
  turn(10s);
  turn(0ms);
  EXPECT_EQ(ended_, 1);
}

TEST_F(ClientProcessTest, WatchesTheLastOneOnly) {
  Sleeper first;
  Sleeper second;
  ASSERT_TRUE(client_.watch(first.pid()));
  ASSERT_TRUE(client_.watch(second.pid()));
  first.end();
  turn(0ms);
  EXPECT_EQ(ended_, 0);
  second.end();
  turn(10s);
  EXPECT_EQ(ended_, 1);
}

TEST_F(ClientProcessTest, RefusesWhatIsNoProcess) {
  Sleeper sleeper;
  const pid_t gone = sleeper.pid();
  sleeper.end();
  for (const std::int64_t pid : {std::int64_t{gone}, std::int64_t{0}, std::int64_t{-1}, std::int64_t{1} << 32,
                                 (std::int64_t{1} << 32) + getpid(), std::numeric_limits<std::int64_t>::max(),
                                 std::numeric_limits<std::int64_t>::min()}) {
    EXPECT_FALSE(client_.watch(pid)) << pid;
  }
  turn(0ms);
  EXPECT_EQ(ended_, 0);
}

}  // namespace
}  // namespace duet::app
