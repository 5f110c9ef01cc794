#include "process/cgroup.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <system_error>

#include <gtest/gtest.h>

#include "duet/transport/temporary_folder_test.h"

namespace duet::process {
namespace {

// Plain files stand for those of the kernel: what is written to them can be read. tests/tasks/limits.py has real ones.
class CgroupTest : public testing::Test {
 protected:
  CgroupTest() { add("own", std::to_string(getpid()) + '\n'); }

  std::string path(const std::string& name) const { return folder_.file(name); }
  void put(const std::string& name, const std::string& text) const { std::ofstream(path(name)) << text; }
  std::string text(const std::string& name) const {
    std::ifstream file(path(name));
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void add(const std::string& name, const std::string& processes) const {
    std::filesystem::create_directory(path(name));
    put(name + "/cgroup.procs", processes);
    put(name + "/cgroup.subtree_control", "");
    put(name + "/cgroup.controllers", "cpu memory\n");
  }

  transport::TemporaryFolder folder_;
  const std::string leaf_ = std::string("own/") + CgroupHome::leaf_name;
};

TEST_F(CgroupTest, TheSmallerOneOfTwoLimitsCounts) {
  const Limits one{.memory = 5, .cpu = 2.0};
  const Limits other{.memory = 6, .processes = 7, .cpu = 1.0};
  EXPECT_EQ(both(one, other), (Limits{.memory = 5, .processes = 7, .cpu = 1.0}));
  EXPECT_EQ(both({}, {}), Limits{});
  EXPECT_FALSE(Limits{}.any());
}

TEST_F(CgroupTest, AProcessThatIsAloneMovesIntoALeaf) {
  add(leaf_, "");
  const auto home = CgroupHome::find_at(path("own"));
  ASSERT_TRUE(home) << home.error();
  EXPECT_EQ(home->folder(), path("own"));
  EXPECT_EQ(text(leaf_ + "/cgroup.procs"), std::to_string(getpid()));
}

TEST_F(CgroupTest, AProcessThatIsInTheLeafStaysThere) {
  put("own/cgroup.procs", "");
  add(leaf_, std::to_string(getpid()));
  const auto home = CgroupHome::find_at(path(leaf_));
  ASSERT_TRUE(home) << home.error();
  EXPECT_EQ(home->folder(), path("own"));
}

TEST_F(CgroupTest, ACgroupWithOthersInItIsNotDivided) {
  put("own/cgroup.procs", "1\n" + std::to_string(getpid()) + '\n');
  const auto home = CgroupHome::find_at(path("own"));
  ASSERT_FALSE(home);
  EXPECT_NE(home.error().find("Delegate=yes"), std::string::npos) << home.error();
  EXPECT_FALSE(CgroupHome::find_at(path("nowhere")));
}

TEST_F(CgroupTest, ControllersAreSwitchedOnWhenTheyAreNeeded) {
  add(leaf_, "");
  const auto home = CgroupHome::find_at(path("own"));
  ASSERT_TRUE(home);
  EXPECT_EQ(text("own/cgroup.subtree_control"), "");
  EXPECT_TRUE(home->provide_for({.memory = 1}, path("no-swaps")));
  EXPECT_EQ(text("own/cgroup.subtree_control"), "+memory");
  const auto missing = home->provide_for({.processes = 1});
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.error().find("'pids'"), std::string::npos) << missing.error();
}

TEST_F(CgroupTest, WhereSwapIsNotCountedMemoryCannotBeLimited) {
  add(leaf_, "");
  put("swaps", "Filename Type Size Used Priority\n");
  const auto home = CgroupHome::find_at(path("own"));
  ASSERT_TRUE(home);
  EXPECT_TRUE(home->provide_for({.memory = 1}, path("swaps"))) << "there is none";
  put("swaps", "Filename Type Size Used Priority\n/dev/dm-1 partition 999420 0 -2\n");
  const auto refused = home->provide_for({.memory = 1}, path("swaps"));
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().find("swap"), std::string::npos) << refused.error();
  EXPECT_TRUE(home->provide_for({.cpu = 1}, path("swaps")));
  put(leaf_ + "/memory.swap.max", "max\n");
  EXPECT_TRUE(home->provide_for({.memory = 1}, path("swaps")));
}

TEST_F(CgroupTest, ALimitThatCannotBeSetLeavesNothing) {
  EXPECT_THROW(Cgroup(path("new"), {.memory = 1 << 30}), std::system_error);  // there are no such files
  EXPECT_FALSE(std::filesystem::exists(path("new")));
  EXPECT_THROW(Cgroup(path("nowhere/new"), {}), std::system_error);
}

TEST_F(CgroupTest, WhatATreeMakesBelowItsOwnBelongsToIt) {
  {
    const Cgroup cgroup(path("tree"), {});
    add("tree/inner", "14\n");
    add("tree/inner/innermost", "15\n");
    EXPECT_EQ(cgroup.processes(), (std::vector<pid_t>{14, 15}));
    for (const std::string folder : {"tree/inner/innermost", "tree/inner"}) {  // which cgroups have, and folders do not
      for (const char* file : {"/cgroup.procs", "/cgroup.subtree_control", "/cgroup.controllers"}) {
        std::filesystem::remove(path(folder + file));
      }
    }
  }
  EXPECT_FALSE(std::filesystem::exists(path("tree")));
  EXPECT_TRUE(processes_below(path("tree")).empty());
}

TEST_F(CgroupTest, WhoIsNoPartOfATreeLeavesItsCgroup) {
  for (const char* name : {"own/task", "own/task/inner"}) add(name, "");
  leave_cgroup_of_tree(path("own/task/inner"));  // nobody has divided it
  EXPECT_FALSE(std::filesystem::exists(path(leaf_)));
  add(leaf_, "");
  leave_cgroup_of_tree(path(leaf_));
  EXPECT_EQ(text(leaf_ + "/cgroup.procs"), "");
  leave_cgroup_of_tree(path("own/task/inner"));
  EXPECT_EQ(text(leaf_ + "/cgroup.procs"), std::to_string(getpid()));
}

TEST_F(CgroupTest, WhoIsNoPartOfATreeInATreeLeavesBoth) {
  const std::string inner_leaf = std::string("own/task/") + CgroupHome::leaf_name;
  for (const std::string& name : {leaf_, std::string("own/task"), std::string("own/task/task"), inner_leaf})
    add(name, "");
  leave_cgroup_of_tree(path("own/task/task"));
  EXPECT_EQ(text(inner_leaf + "/cgroup.procs"), std::to_string(getpid()));
  EXPECT_EQ(text(leaf_ + "/cgroup.procs"), std::to_string(getpid())) << "at last";
}

TEST_F(CgroupTest, WhatTheKernelCountsIsRead) {
  const Cgroup cgroup(path("new"), {});
  EXPECT_FALSE(cgroup.counts().cpu || cgroup.counts().max_memory);
  put("new/cpu.stat", "usage_usec 1234567\nuser_usec 1\n");
  put("new/memory.max", "8192\n");
  put("new/memory.peak", "4096\n");
  put("new/memory.events", "low 0\nhigh 0\nmax 12\noom 2\noom_kill 3\noom_group_kill 1\n");
  put("new/cgroup.procs", "12\n13\n");
  EXPECT_EQ(cgroup.counts().cpu, std::chrono::microseconds(1'234'567));
  EXPECT_EQ(cgroup.counts().max_memory, 4096U);
  EXPECT_EQ(cgroup.counts().killed_for_memory, 3U);
  EXPECT_EQ(cgroup.processes(), (std::vector<pid_t>{12, 13}));
}

TEST_F(CgroupTest, WithoutALimitForMemoryNoneIsCounted) {
  const Cgroup cgroup(path("new"), {});
  put("new/memory.max", "max\n");
  put("new/memory.peak", "4096\n");
  put("new/memory.events", "oom 2\noom_kill 3\n");
  EXPECT_FALSE(cgroup.counts().max_memory);
  EXPECT_EQ(cgroup.counts().killed_for_memory, 0U);
}

TEST_F(CgroupTest, WhoIsKilledSinceTheMachineHasNoMemoryDidNotMeetItsLimit) {
  const Cgroup cgroup(path("new"), {});
  put("new/memory.max", "8192\n");
  put("new/memory.events", "low 0\nhigh 0\nmax 12\noom 0\noom_kill 1\noom_group_kill 0\n");
  EXPECT_EQ(cgroup.counts().killed_for_memory, 0U);
}

}  // namespace
}  // namespace duet::process
