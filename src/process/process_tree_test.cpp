#include "process/process_tree.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <string>

#include <gtest/gtest.h>

#include "process/launch.h"

namespace duet::process {
namespace {

/// A shell and a `sleep` below it, which runs when the test begins.
class ProcessTreeTest : public testing::Test {
 protected:
  ProcessTreeTest() {
    base::Pipe pipe = base::make_pipe();
    Launch launched{.arguments = {"sh", "-c", "sleep 1000 & echo $!; wait"},
                    .environment = current_environment(),
                    .standard = {-1, pipe.write_end.get(), -1}};
    launched.environment["DUET_PROCESS_TREE_TEST"] = "here";
    child_ = launch(launched);
    std::string text(64, '\0');
    EXPECT_GT(read(pipe.read_end.get(), text.data(), text.size()), 0);
    grandchild_ = std::stoi(text);
  }
  ~ProcessTreeTest() override {
    kill(-child_.pid, SIGKILL);
    reap(child_);
  }

  int signal_that_ended_child() const {
    siginfo_t ended{};
    waitid(P_PID, static_cast<id_t>(child_.pid), &ended, WEXITED | WNOWAIT);
    return ended.si_status;
  }

  // Waits for that, if it must.
  static bool has_ended(const base::Fd& held) {
    pollfd ready{.fd = held.get(), .events = POLLIN, .revents = 0};
    return poll(&ready, 1, 60'000) == 1;
  }

  Child child_;
  pid_t grandchild_ = 0;
};

TEST_F(ProcessTreeTest, AProcessIsReadFromProc) {
  const auto entry = read_process(child_.pid);
  ASSERT_TRUE(entry);
  EXPECT_EQ(entry->parent, getpid());
  EXPECT_EQ(entry->session, child_.pid);
  EXPECT_EQ(entry->group, child_.pid);
  EXPECT_GT(entry->start_ticks, 0U);
  EXPECT_FALSE(read_process(0));
}

TEST_F(ProcessTreeTest, ParentsStandBeforeTheirChildren) {
  const auto found = descendants(getpid());
  const auto place = [&](pid_t pid) {
    return std::find_if(found.begin(), found.end(), [pid](const auto& each) { return each.pid == pid; }) -
           found.begin();
  };
  EXPECT_LT(place(child_.pid), place(grandchild_));
  EXPECT_LT(place(grandchild_), static_cast<long>(found.size()));
  EXPECT_TRUE(descendants(grandchild_).empty());
}

TEST_F(ProcessTreeTest, TheEnvironmentIsReadAsItWasAtTheStart) {
  EXPECT_TRUE(has_in_environment(child_.pid, "DUET_PROCESS_TREE_TEST=here"));
  EXPECT_FALSE(has_in_environment(child_.pid, "DUET_PROCESS_TREE_TEST=her"));
  EXPECT_FALSE(has_in_environment(child_.pid, "DUET_PROCESS_TREE_TEST=here2"));
  EXPECT_FALSE(has_in_environment(child_.pid, "PROCESS_TREE_TEST=here"));
  EXPECT_FALSE(has_in_environment(0x7FFFFFFF, "DUET_PROCESS_TREE_TEST=here"));
}

TEST(ProcessEnvironment, IsAlsoSeenOfAProcessThatIsBeingExecuted) {
  Launch launched{.arguments = {"sh", "-c", "exec sh -c \"$AGAIN\""}, .environment = current_environment()};
  launched.environment["AGAIN"] = "exec sh -c \"$AGAIN\"";
  launched.environment["DUET_PROCESS_TREE_TEST"] = "here";
  const Child child = launch(launched);
  int seen = 0;
  for (int look = 0; look < 2000; ++look) seen += has_in_environment(child.pid, "DUET_PROCESS_TREE_TEST=here") ? 1 : 0;
  EXPECT_EQ(seen, 2000);
  kill(child.pid, SIGKILL);
  reap(child);
}

TEST(ProcessEnvironment, NobodyWaitsForOneThatIsEmpty) {
  const Child child = launch({.arguments = {"/bin/sleep", "1000"}, .environment = {}});
  const Child zombie = launch({.arguments = {"/bin/true"}, .environment = {}});
  const auto before = std::chrono::steady_clock::now();
  for (int look = 0; look < 100; ++look) {
    EXPECT_FALSE(has_in_environment(child.pid, "A=1") || has_in_environment(zombie.pid, "A=1"));
  }
  EXPECT_LT(std::chrono::steady_clock::now() - before, std::chrono::seconds(60)) << "a wait takes a second";
  kill(child.pid, SIGKILL);
  reap(child);
  reap(zombie);
}

TEST_F(ProcessTreeTest, AProcessHasSomethingInMemory) {
  EXPECT_GT(resident_memory(getpid()), 100'000U);
  EXPECT_EQ(resident_memory(0x7FFFFFFF), 0U);
}

TEST_F(ProcessTreeTest, AnotherProcessOfThatNumberIsNotHeld) {
  auto entry = read_process(child_.pid);
  EXPECT_TRUE(hold_process(*entry));
  ++entry->start_ticks;
  EXPECT_FALSE(hold_process(*entry));
}

TEST_F(ProcessTreeTest, AGroupIsKilledThoughItsLeaderHasEnded) {
  const auto leader = read_process(child_.pid);
  const base::Fd member = hold_process(*read_process(grandchild_));
  kill(child_.pid, SIGKILL);
  signal_that_ended_child();
  kill_group(*leader);
  EXPECT_TRUE(has_ended(member));
}

TEST_F(ProcessTreeTest, AGroupWhoseNumberIsAnothersByNowIsLeftAlone) {
  ProcessEntry leader = *read_process(child_.pid);
  --leader.start_ticks;
  kill_group(leader);
  kill(child_.pid, SIGTERM);
  EXPECT_EQ(signal_that_ended_child(), SIGTERM);
}

TEST_F(ProcessTreeTest, AnEndedProcessIsAZombieUntilItIsReaped) {
  signal_process(hold_process(*read_process(child_.pid)), SIGKILL);
  EXPECT_EQ(signal_that_ended_child(), SIGKILL);
  EXPECT_TRUE(read_process(child_.pid)->is_zombie());
}

TEST_F(ProcessTreeTest, ATermReachesStoppedDescendants) {
  const base::Fd grandchild = hold_process(*read_process(grandchild_));
  kill(-child_.pid, SIGSTOP);
  siginfo_t stopped{};
  waitid(P_PID, static_cast<id_t>(child_.pid), &stopped, WSTOPPED | WNOWAIT);
  signal_descendants(SIGTERM);
  EXPECT_EQ(signal_that_ended_child(), SIGTERM);
  EXPECT_TRUE(has_ended(grandchild));
}

TEST_F(ProcessTreeTest, AKillReachesAllDescendants) {
  const base::Fd grandchild = hold_process(*read_process(grandchild_));
  signal_descendants(SIGKILL);
  EXPECT_EQ(signal_that_ended_child(), SIGKILL);
  EXPECT_TRUE(has_ended(grandchild));
}

TEST_F(ProcessTreeTest, ThisBootHasAnId) {
  EXPECT_EQ(boot_id().size(), 36U);
  EXPECT_EQ(boot_id(), boot_id());
}

TEST_F(ProcessTreeTest, KillsWhatIsBelowAChildAndNotTheChild) {
  const auto entry = read_process(grandchild_);
  ASSERT_TRUE(entry);
  const base::Fd held = hold_process(*entry);
  kill_descendants(child_.pid);
  EXPECT_TRUE(has_ended(held));
  EXPECT_EQ(signal_that_ended_child(), 0) << "the shell has nothing to wait for any more";
}

}  // namespace
}  // namespace duet::process
