#include "task/leftovers.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "duet/base/few_descriptors_test.h"
#include "duet/base/sanitizer_test.h"
#include "duet/transport/temporary_folder_test.h"
#include "process/launch.h"

namespace duet::task {
namespace {

using std::chrono::milliseconds;

class LeftoversTest : public testing::Test {
 protected:
  static constexpr std::chrono::seconds patience{90};

  ~LeftoversTest() override {
    for (const process::Child& child : children_) {
      kill(-child.pid, SIGKILL);  // each is the leader of a group
      process::reap(child);
    }
  }

  /// A process with the mark; returns once it has said that it is ready.
  process::Child& start(const std::string& script, const std::string& mark) {
    const std::string ready = folder_.file("ready-" + std::to_string(children_.size()));
    process::Launch launch{.arguments = {"/bin/sh", "-c", script}, .environment = process::current_environment()};
    launch.environment["DUET_TASK_MARK"] = mark;
    launch.environment["READY"] = ready;
    children_.push_back(process::launch(launch));
    EXPECT_TRUE(turn_until([&] { return std::filesystem::exists(ready); }));
    return children_.back();
  }
  bool has_ended(const process::Child& child) const { return process::read_process(child.pid)->is_zombie(); }

  template <typename Done>
  bool turn_until(Done done) {
    const auto deadline = loop_.now() + patience;
    while (!done() && loop_.now() < deadline) loop_.turn(loop_.now() + milliseconds(10));
    return done();
  }

  transport::TemporaryFolder folder_;
  transport::Loop loop_;
  Fingerprint fingerprint_{.mark = random_mark(), .boot = process::boot_id()};
  std::vector<process::Child> children_;
};

TEST_F(LeftoversTest, WhoHasTheMarkIsEndedAndNobodyElse) {
  const std::string other = random_mark();
  start("touch $READY; while :; do sleep 0.05; done", fingerprint_.mark);
  start("trap '' TERM; touch $READY; while :; do sleep 0.05; done", fingerprint_.mark);
  start("touch $READY; while :; do sleep 0.05; done", other);
  bool done = false;
  const Leftovers leftovers(loop_, fingerprint_, milliseconds(100), [&] { done = true; });
  EXPECT_FALSE(done);
  ASSERT_TRUE(turn_until([&] { return done; }));
  EXPECT_TRUE(has_ended(children_[0]));
  EXPECT_TRUE(has_ended(children_[1]));
  EXPECT_FALSE(has_ended(children_[2]));
}

TEST_F(LeftoversTest, NothingToEndIsDoneAtOnce) {
  bool done = false;
  const Leftovers leftovers(loop_, fingerprint_, std::chrono::hours(1), [&] { done = true; });
  EXPECT_TRUE(turn_until([&] { return done; }));
}

TEST_F(LeftoversTest, TheSameSessionAndTheMainProcessAreFoundWithoutAMark) {
  start("env -i sleep 1000 & touch $READY; sleep 1000", fingerprint_.mark);
  const process::Child& main = start("touch $READY; sleep 1000", "another");
  EXPECT_GE(find_leftovers(fingerprint_).size(), 2U);
  fingerprint_.main = main.pid;
  const auto entry = process::read_process(main.pid);
  fingerprint_.main_ticks = entry->start_ticks + 1;
  const std::size_t without = find_leftovers(fingerprint_).size();
  fingerprint_.main_ticks = entry->start_ticks;
  EXPECT_GT(find_leftovers(fingerprint_).size(), without);
  bool done = false;
  const Leftovers leftovers(loop_, fingerprint_, milliseconds(100), [&] { done = true; });
  ASSERT_TRUE(turn_until([&] { return done; }));
  EXPECT_TRUE(find_leftovers(fingerprint_).empty());
}

TEST_F(LeftoversTest, ADaemonThatTheTaskStartedIsLeftAlone) {
  start("touch $READY; sleep 1000", fingerprint_.mark);
  start("exec env DUET_RPC_READY_FD=3 sh -c 'touch $READY; exec sleep 1000'", fingerprint_.mark);
  const auto found = find_leftovers(fingerprint_);
  ASSERT_FALSE(found.empty());
  for (const process::ProcessEntry& entry : found) EXPECT_NE(entry.pid, children_[1].pid);
}

TEST_F(LeftoversTest, AfterAnotherBootNothingIsLeft) {
  start("touch $READY; sleep 1000", fingerprint_.mark);
  fingerprint_.boot = "another boot";
  EXPECT_TRUE(find_leftovers(fingerprint_).empty());
}

TEST_F(LeftoversTest, WithoutDescriptorsItWaitsUntilItCanLook) {
  if (base::under_sanitizer) GTEST_SKIP() << "the sanitizer needs descriptors itself to look at an object's type";
  start("touch $READY; sleep 1000", fingerprint_.mark);
  bool done = false;
  const Leftovers leftovers(loop_, fingerprint_, milliseconds(100), [&] { done = true; });
  for (const int left : {0, 1}) {
    {
      const base::FewDescriptors few(left);
      for (int turns = 0; turns < 5; ++turns) loop_.turn(loop_.now() + milliseconds(100));
    }
    EXPECT_FALSE(done);
    EXPECT_FALSE(has_ended(children_[0]));
  }
  ASSERT_TRUE(turn_until([&] { return done; }));
  EXPECT_TRUE(has_ended(children_[0]));
}

// A plain folder stands for a cgroup whose processes are others at each look.
TEST_F(LeftoversTest, WhoIsInTheCgroupAndCannotBeFoundIsWaitedForAndKilledWithIt) {
  fingerprint_.cgroup = folder_.file("cgroup");
  const std::string processes = fingerprint_.cgroup + "/cgroup.procs";
  const std::string killed = fingerprint_.cgroup + "/cgroup.kill";
  std::filesystem::create_directory(fingerprint_.cgroup);
  std::ofstream(processes) << "2147483647\n";
  std::ofstream(killed) << "";
  bool done = false;
  const Leftovers leftovers(loop_, fingerprint_, milliseconds(50), [&] { done = true; });
  ASSERT_TRUE(turn_until([&] { return done || std::filesystem::file_size(killed) > 0; }));
  EXPECT_FALSE(done);
  std::filesystem::remove(processes);
  EXPECT_TRUE(turn_until([&] { return done; }));
}

TEST_F(LeftoversTest, ADaemonThatIsInTheCgroupIsNotKilledWithIt) {
  start("exec env DUET_RPC_READY_FD=3 sh -c 'touch $READY; exec sleep 1000'", "another");
  fingerprint_.cgroup = folder_.file("cgroup");
  const std::string killed = fingerprint_.cgroup + "/cgroup.kill";
  std::filesystem::create_directory(fingerprint_.cgroup);
  std::ofstream(fingerprint_.cgroup + "/cgroup.procs") << children_[0].pid << '\n';
  std::ofstream(killed) << "";
  bool done = false;
  const Leftovers leftovers(loop_, fingerprint_, milliseconds(0), [&] { done = true; });
  EXPECT_TRUE(turn_until([&] { return done; }));
  EXPECT_EQ(std::filesystem::file_size(killed), 0U);
}

TEST_F(LeftoversTest, DroppedItLeavesThemAsTheyAre) {
  start("trap '' TERM; touch $READY; while :; do sleep 0.05; done", fingerprint_.mark);
  {
    const Leftovers leftovers(loop_, fingerprint_, milliseconds(50), [] { FAIL(); });
    loop_.turn(loop_.now() + milliseconds(10));
  }
  loop_.turn(loop_.now() + milliseconds(100));
  EXPECT_FALSE(has_ended(children_[0]));
}

TEST_F(LeftoversTest, ManyAreEndedWithAFewDescriptors) {
  const auto descriptors = [] {
    std::size_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) count += entry.exists() ? 1 : 0;
    return count;
  };
  start("i=0; while [ $i -lt 300 ]; do sleep 1000 & i=$((i+1)); done; trap '' TERM; touch $READY; wait; wait",
        fingerprint_.mark);
  const std::size_t before = descriptors();
  bool done = false;
  const Leftovers leftovers(loop_, fingerprint_, milliseconds(2000), [&] { done = true; });
  std::size_t most = 0;
  ASSERT_TRUE(turn_until([&] {
    most = std::max(most, descriptors());
    return done;
  }));
  EXPECT_GT(most, before + 100);
  EXPECT_LE(most, before + 260);
  EXPECT_TRUE(find_leftovers(fingerprint_).empty());
}

}  // namespace
}  // namespace duet::task
