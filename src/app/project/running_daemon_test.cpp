#include "app/project/running_daemon.h"

#include <unistd.h>

#include <gtest/gtest.h>

#include "app/project/temporary_project_test.h"

namespace duet::app {
namespace {

struct RunningDaemon : testing::Test {
  std::string refusal() const {
    try {
      take_lock_or_fail(folder);
      return "none";
    } catch (const Failure& failure) {
      return failure.what();
    }
  }

  TemporaryProject place;
  StateFolder folder = StateFolder::make(place.project());
};

TEST_F(RunningDaemon, NobodyHoldsALockThatNobodyTook) {
  EXPECT_FALSE(lock_holder(folder));
  take_lock_or_fail(folder);
  EXPECT_FALSE(lock_holder(folder)) << "it was given back";
}

TEST_F(RunningDaemon, TheHolderIsKnownByTheKernelWhateverIsWritten) {
  const DaemonLock lock = take_lock_or_fail(folder);
  const std::optional<pid_t> holder = lock_holder(folder);
  if (!holder) GTEST_SKIP() << "/proc/locks tells nothing here";
  EXPECT_EQ(holder, getpid());
  folder.write_small(pid_name, "1\n");
  EXPECT_EQ(lock_holder(folder), getpid());
}

TEST_F(RunningDaemon, ASecondOneIsRefusedWithThePidOfTheFirst) {
  const DaemonLock lock = take_lock_or_fail(folder);
  folder.write_small(pid_name, std::to_string(getpid()) + '\n');
  EXPECT_EQ(refusal(), "already running, pid " + std::to_string(getpid()) + "; 'daemon restart' starts it anew");
}

}  // namespace
}  // namespace duet::app
