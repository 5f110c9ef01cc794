#include "app/stdio/orphan_watch.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <optional>

#include <gtest/gtest.h>

namespace duet::app {
namespace {

using namespace std::chrono_literals;

class OrphanWatchTest : public ::testing::Test {
 protected:
  OrphanWatchTest() : parent_(fork()) {
    if (parent_ == 0) {
      while (true) pause();
    }
    watch_.emplace(
        loop_, parent_, [this] { return heard_at_; }, [this] { ++told_; });
  }
  ~OrphanWatchTest() override { end_parent(); }

  void end_parent() {
    if (parent_ <= 0) return;
    kill(parent_, SIGKILL);
    waitpid(parent_, nullptr, 0);
    parent_ = 0;
  }
  void advance(base::Duration time) {
    clock_.advance(time);
    loop_.turn(loop_.now());
  }

  base::VirtualClock clock_;
  transport::Loop loop_{clock_};
  base::TimePoint heard_at_ = clock_.now();
  int told_ = 0;
  pid_t parent_;
  std::optional<OrphanWatch> watch_;
};

TEST_F(OrphanWatchTest, ASilentClientThatLivesIsNone) {
  advance(3600s);
  EXPECT_EQ(told_, 0);
}

TEST_F(OrphanWatchTest, OneWhoseClientIsGoneIsTakenForOneAfterAMinuteOfSilence) {
  advance(30s);
  end_parent();
  advance(29s);
  EXPECT_EQ(told_, 0);
  advance(1s);
  EXPECT_EQ(told_, 1);
}

TEST_F(OrphanWatchTest, WhatIsHeardMeanwhileCounts) {
  end_parent();
  advance(59s);
  heard_at_ = clock_.now();
  advance(59s);
  EXPECT_EQ(told_, 0);
  advance(1s);
  EXPECT_EQ(told_, 1);
}

}  // namespace
}  // namespace duet::app
