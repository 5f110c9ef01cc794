#include "task/process_tree.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include <gtest/gtest.h>

#include "duet/base/process.h"
#include "duet/transport/await_test.h"

namespace duet::task {
namespace {

base::Child start(const std::string& script) {
  base::Launch launch{.arguments = {"/bin/sh", "-c", script}, .environment = base::current_environment()};
  launch.environment["DUET_PROCESS_TREE_TEST"] = "here";
  return base::launch(launch);
}

class ProcessTreeTest : public testing::Test {
 protected:
  base::Child child_ = start("exec sleep 1000");
  ~ProcessTreeTest() override {
    kill(child_.pid, SIGKILL);
    base::reap(child_);
  }
};

TEST_F(ProcessTreeTest, AProcessIsReadFromProc) {
  const auto entry = read_process(child_.pid);
  ASSERT_TRUE(entry);
  EXPECT_EQ(entry->parent, getpid());
  EXPECT_EQ(entry->session, child_.pid);
  EXPECT_EQ(entry->group, child_.pid);
  EXPECT_GT(entry->start_ticks, 0U);
  const auto all = all_processes();
  EXPECT_TRUE(std::any_of(all.begin(), all.end(), [&](const auto& each) { return each.pid == child_.pid; }));
  EXPECT_FALSE(read_process(0));
}

TEST_F(ProcessTreeTest, TheEnvironmentIsReadAsItWasAtTheStart) {
  EXPECT_TRUE(transport::await([&] { return has_in_environment(child_.pid, "DUET_PROCESS_TREE_TEST=here"); }));
  EXPECT_FALSE(has_in_environment(child_.pid, "DUET_PROCESS_TREE_TEST=her"));
  EXPECT_FALSE(has_in_environment(child_.pid, "DUET_PROCESS_TREE_TEST=here2"));
  EXPECT_FALSE(has_in_environment(child_.pid, "PROCESS_TREE_TEST=here"));
}

TEST_F(ProcessTreeTest, AnotherProcessOfThatNumberIsNotHeld) {
  auto entry = read_process(child_.pid);
  EXPECT_TRUE(hold_process(*entry));
  ++entry->start_ticks;
  EXPECT_FALSE(hold_process(*entry));
}

TEST_F(ProcessTreeTest, AnEndedProcessIsAZombieUntilItIsReaped) {
  signal_process(hold_process(*read_process(child_.pid)), SIGKILL);
  EXPECT_TRUE(transport::await([&] { return read_process(child_.pid)->is_zombie(); }));
}

TEST_F(ProcessTreeTest, ThisBootHasAnId) {
  EXPECT_EQ(boot_id().size(), 36U);
  EXPECT_EQ(boot_id(), boot_id());
}

}  // namespace
}  // namespace duet::task
