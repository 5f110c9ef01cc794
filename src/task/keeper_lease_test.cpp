#include <signal.h>

#include <string>

#include "task/keeper_fixture_test.h"
#include "task/lease_file.h"

namespace duet::task {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;
using Kind = Outcome::Kind;

constexpr RunId first{1, 1};
constexpr RunId second{2, 1};

// Runs of a queue that many machines share.
class KeeperLeaseTest : public KeeperTest {
 protected:
  Assignment claimed(const std::string& script, bool leased, std::uint64_t task = 1) const {
    Assignment assignment = shell(script, task);
    assignment.claim = Claim{.fence = 12'345'678'901, .worker = "build-3", .leased = leased};
    return assignment;
  }
  void extend(BootClock::duration until_end, BootClock::duration third = hours(1)) {
    end_ = BootClock::now() + until_end;
    ASSERT_TRUE(lease_.extend(end_ + third, 3 * third));
  }
  void begin(const Assignment& assignment, const std::string& ready) {
    keepers().start(assignment);
    ASSERT_TRUE(await_file(ready));
    ASSERT_TRUE(turn_until([&] { return story(assignment.run).started.has_value(); }));
  }
  static std::string stubborn() { return "trap '' TERM; touch ready; while true; do sleep 0.05; done"; }
  static std::string obedient() {
    return "trap 'echo told; exit 3' TERM; touch ready; while true; do sleep 0.05; done";
  }

  Lease lease_{tasks_.get()};
  BootTime end_ = {};
};

TEST_F(KeeperLeaseTest, ATaskFindsItsFenceAndItsWorker) {
  const Story told = run(claimed("echo $DUET_TASK_FENCE $DUET_TASK_WORKER", false));
  EXPECT_EQ(told.outcome->result, "12345678901 build-3\n");
}

TEST_F(KeeperLeaseTest, WithoutAClaimItFindsNeither) {
  Assignment assignment = shell("echo ${DUET_TASK_FENCE-none} ${DUET_TASK_WORKER-none}");
  assignment.environment["DUET_TASK_FENCE"] = "7";
  assignment.environment["DUET_TASK_WORKER"] = "another";
  EXPECT_EQ(run(assignment).outcome->result, "none none\n");
}

TEST_F(KeeperLeaseTest, TheRecordSaysWhatItBelongsTo) {
  extend(hours(2));
  begin(claimed("touch ready; while [ ! -e go ]; do sleep 0.01; done", true), "ready");
  const auto claim = RunRecord::open_to_read(tasks_.get(), first).read().claim;
  EXPECT_EQ(claim, (Claim{.fence = 12'345'678'901, .worker = "build-3", .leased = true}));
  std::ofstream(folder_.file("go")) << "";
  ASSERT_TRUE(finish(first));
  EXPECT_EQ(story(first).outcome->problem, "");
}

TEST_F(KeeperLeaseTest, WithoutALeaseALeasedRunNeverBegins) {
  const Story told = run(claimed("touch began", true));
  EXPECT_TRUE(told.never_began);
  EXPECT_EQ(told.why, lease_was_over);
  EXPECT_FALSE(has_file("began"));
  EXPECT_FALSE(RunRecord::open(tasks_.get(), first));
}

TEST_F(KeeperLeaseTest, ALeaseThatIsNotExtendedEndsTheRun) {
  extend(hours(2));
  begin(claimed(stubborn(), true), "ready");
  extend(milliseconds(200));
  ASSERT_TRUE(finish(first));
  EXPECT_GE(BootClock::now(), end_ + settings_.grace);
  EXPECT_EQ(story(first).outcome->kind, Kind::signalled);
  EXPECT_EQ(story(first).outcome->signal, SIGKILL);
  EXPECT_TRUE(story(first).outcome->ended_with_lease());
}

TEST_F(KeeperLeaseTest, ItIsToldToEndBeforeItIsKilled) {
  settings_.grace = hours(1);
  extend(hours(2));
  begin(claimed(obedient(), true), "ready");
  extend(milliseconds(200));
  ASSERT_TRUE(finish(first));
  EXPECT_GE(BootClock::now(), end_);
  EXPECT_EQ(story(first).outcome->code, 3);
  EXPECT_EQ(story(first).outcome->result, "told\n");
  EXPECT_TRUE(story(first).outcome->ended_with_lease());
}

TEST_F(KeeperLeaseTest, WithoutADaemonToo) {
  settings_.grace = hours(1);
  extend(hours(2));
  begin(claimed("sleep 1000 & " + obedient(), true), "ready");
  restart_daemon();
  extend(milliseconds(200));
  ASSERT_TRUE(turn_until([&] { return living().empty(); }));
  EXPECT_GE(BootClock::now(), end_);
  keepers().adopt(first);
  ASSERT_TRUE(finish(first));
  EXPECT_TRUE(story(first).outcome->ended_with_lease());
  EXPECT_EQ(story(first).outcome->result, "told\n");
}

TEST_F(KeeperLeaseTest, ALeaseThatIsOverLeavesNoGrace) {
  settings_.grace = hours(1);
  extend(hours(2));
  begin(claimed(stubborn(), true), "ready");
  extend(milliseconds(100), milliseconds(100));
  ASSERT_TRUE(finish(first));
  EXPECT_EQ(story(first).outcome->signal, SIGKILL);
}

TEST_F(KeeperLeaseTest, ALeaseThatIsExtendedLetsItGoOn) {
  extend(hours(2));
  begin(claimed("touch ready; while [ ! -e go ]; do sleep 0.01; done; exit 3", true), "ready");
  extend(seconds(3));
  const BootTime known = end_;
  extend(hours(2));
  ASSERT_TRUE(turn_until([&] { return BootClock::now() > known + milliseconds(500); }));
  std::ofstream(folder_.file("go")) << "";
  ASSERT_TRUE(finish(first));
  EXPECT_EQ(story(first).outcome->kind, Kind::exited);
  EXPECT_EQ(story(first).outcome->code, 3);
  EXPECT_FALSE(story(first).outcome->ended_with_lease());
}

TEST_F(KeeperLeaseTest, ARunThatIsNotLeasedGoesOnWithoutOne) {
  const Story told = run(claimed("sleep 0.5; exit 3", false));
  EXPECT_EQ(told.outcome->code, 3);
}

// The others are ended by the next daemon.
TEST_F(KeeperLeaseTest, TheMainProcessOfALeasedRunDiesWithItsKeeper) {
  extend(hours(2));
  const std::string script = "sleep 1000 & trap '' TERM HUP; touch ready$DUET_TASK_ID; while true; do sleep 1; done";
  begin(claimed(script, true), "readytask-1");
  begin(claimed(script, false, 2), "readytask-2");
  const pid_t leased = story(first).started->pid;
  const pid_t ordinary = story(second).started->pid;
  const std::vector<pid_t> keepers_of_both{keeper_of(first), keeper_of(second)};
  restart_daemon();
  for (const pid_t keeper : keepers_of_both) kill(keeper, SIGKILL);
  ASSERT_TRUE(turn_until([&] { return !is_alive(leased); }));
  EXPECT_TRUE(turn_until([&] { return !is_alive(keepers_of_both[1]); }));
  EXPECT_TRUE(is_alive(ordinary));
  for (const RunId run : {first, second}) keepers().adopt(run);
  for (const RunId run : {first, second}) {
    ASSERT_TRUE(finish(run));
    EXPECT_EQ(story(run).outcome->kind, Kind::lost);
  }
  EXPECT_TRUE(living().empty());
}

}  // namespace
}  // namespace duet::task
