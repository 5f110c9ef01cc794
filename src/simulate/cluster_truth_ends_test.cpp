#include <signal.h>

#include "simulate/cluster_fixture_test.h"
#include "simulate/play.h"

namespace duet::simulate {
namespace {

using namespace std::chrono_literals;
using task::Reason;

class ClusterEndsTest : public ClusterFixture {
 protected:
  /// The one task, whose process ends so and which is told to have ended so.
  std::string said_of(int status, const End& end, bool is_stopped = false) {
    id = submit({.prompt = "x"});
    const Tree tree = start(0, id);
    if (is_stopped) truth.stopped_tasks(0);
    die(tree, status);
    tell_end(0, tree, end);
    return said_at_end();
  }

  task::TaskId id = 0;
};

TEST_F(ClusterEndsTest, EveryTaskEnds) {
  submit({.prompt = "x"});
  EXPECT_TRUE(said_at_end().starts_with("task-1 never ends")) << said();
}

TEST_F(ClusterEndsTest, OneThatSucceededIsCompleted) { EXPECT_EQ(said_of(exited(0), completed()), ""); }

TEST_F(ClusterEndsTest, OneThatFailedIsNotCompleted) {
  EXPECT_EQ(said_of(exited(1), completed()), "task-1 is completed, but its process has not succeeded");
}

TEST_F(ClusterEndsTest, OneThatIsCompletedHasItsCode) {
  End end = completed();
  end.code = 3;
  EXPECT_EQ(said_of(exited(0), end), "task-1 is completed with another code than its process");
}

TEST_F(ClusterEndsTest, OneThatIsCompletedRan) {
  id = submit({.prompt = "x"});
  tell_end(0, tree_of(id, claim(0)), completed());
  EXPECT_EQ(said_at_end(), "task-1 is completed, but never ran under its last fence");
}

TEST_F(ClusterEndsTest, OneThatFailedHasItsCode) { EXPECT_EQ(said_of(exited(2), failed(2)), ""); }

TEST_F(ClusterEndsTest, OneThatFailedHasNoOtherCode) {
  EXPECT_EQ(said_of(exited(2), failed(1)), "task-1 has failed otherwise than its process");
}

TEST_F(ClusterEndsTest, OneThatSucceededHasNotFailed) {
  EXPECT_EQ(said_of(exited(0), failed(0)), "task-1 has failed, but its process has succeeded");
}

TEST_F(ClusterEndsTest, UnlessItsDaemonWasStopped) { EXPECT_EQ(said_of(exited(0), failed(0), true), ""); }

TEST_F(ClusterEndsTest, NobodyEndsATaskByHimself) {
  EXPECT_EQ(said_of(SIGTERM, killed()), "task-1 was ended by a signal, and nobody asked for that");
}

TEST_F(ClusterEndsTest, AStopEndsTasks) { EXPECT_EQ(said_of(SIGTERM, killed(), true), ""); }

TEST_F(ClusterEndsTest, AStopEndsWhatItsDaemonHasJustAskedFor) {
  id = submit({.prompt = "x"});
  const Tree tree = tree_of(id, claim(0));
  truth.stopped_tasks(0);
  truth.began(0, tree);
  die(tree, SIGTERM);
  tell_end(0, tree, killed());
  EXPECT_EQ(said_at_end(), "");
}

TEST_F(ClusterEndsTest, AReasonThatNobodyAskedForIsNone) {
  End end = failed(1);
  end.failure->reason = Reason::timeout;
  EXPECT_EQ(said_of(exited(1), end), "task-1 has failed for a reason that there is not");
}

TEST_F(ClusterEndsTest, ACancelHolds) {
  id = submit({.prompt = "x"});
  truth.asked_to_cancel(id);
  truth.cancelled(id);
  const Tree tree = start(0, id);
  die(tree, exited(0));
  tell_end(0, tree, completed());
  EXPECT_EQ(said_at_end(), "a cancel of task-1 was acknowledged, but it ended as 2");
}

TEST_F(ClusterEndsTest, NothingIsCancelledThatNobodyAskedFor) {
  id = submit({.prompt = "x"});
  call("cancel_v1", as(0, {std::to_string(id)}));
  EXPECT_EQ(said_at_end(), "task-1 is cancelled, and nobody asked for it");
}

TEST_F(ClusterEndsTest, ACancelledTaskHasNoProcesses) {
  id = submit({.prompt = "x"});
  const Tree tree = start(0, id);
  truth.asked_to_cancel(id);
  call("cancel_v1", as(0, {std::to_string(id)}));
  truth.main_ended(tree, SIGTERM, true);
  End end = killed();
  end.flags = End::tree_is_gone;
  tell_end(0, tree, end);
  EXPECT_EQ(said(), "task-1 is cancelled, but processes of it run under fence 1");
}

TEST_F(ClusterEndsTest, ACancelledTaskEndedAsItsProcess) {
  id = submit({.prompt = "x"});
  const Tree tree = start(0, id);
  truth.asked_to_cancel(id);
  call("cancel_v1", as(0, {std::to_string(id)}));
  die(tree, SIGKILL);
  End end = killed();
  end.flags = End::tree_is_gone;
  tell_end(0, tree, end);
  EXPECT_EQ(said_at_end(), "task-1 is cancelled, and is said to have ended otherwise than its process");
}

TEST_F(ClusterEndsTest, ACancelledTaskIsOverWhenItsProcessesAre) {
  id = submit({.prompt = "x"});
  const Tree tree = start(0, id);
  truth.asked_to_cancel(id);
  call("cancel_v1", as(0, {std::to_string(id)}));
  die(tree, SIGTERM);
  End end = killed();
  end.flags = End::tree_is_gone;
  tell_end(0, tree, end);
  EXPECT_EQ(said_at_end(), "");
}

TEST_F(ClusterEndsTest, OnlyWhatCannotStartHasNotStarted) {
  std::uint64_t number = 0;
  while (play_of(prompt_of(number), 1).can_start) ++number;
  id = submit({.prompt = prompt_of(number)});
  tell_end(0, tree_of(id, claim(0)), failed_with(Reason::spawn));
  EXPECT_EQ(said_at_end(), "");
  while (!play_of(prompt_of(number), 1).can_start) ++number;
  id = submit({.prompt = prompt_of(number)});
  tell_end(0, tree_of(id, claim(0)), failed_with(Reason::spawn));
  EXPECT_EQ(said_at_end(), "task-2 is said to have no program that can be started, but it has");
}

TEST_F(ClusterEndsTest, WhatHasStartedIsNotSaidNotToHave) {
  EXPECT_EQ(said_of(exited(1), failed_with(Reason::spawn)), "task-1 is said not to have begun, but has");
}

TEST_F(ClusterEndsTest, LostIsOnlyWhatNoKeeperSaw) {
  EXPECT_TRUE(said_of(exited(1), failed_with(Reason::lost)).starts_with("task-1 is called lost (so it is), but"));
}

TEST_F(ClusterEndsTest, WithItsKeeperATaskIsLost) {
  id = submit({.prompt = "x"});
  const Tree tree = start(0, id);
  truth.keeper_died(0, tree.run);
  die(tree, SIGKILL, false);
  tell_end(0, tree, failed_with(Reason::lost));
  EXPECT_EQ(said_at_end(), "");
}

TEST_F(ClusterEndsTest, WhatIsLostHasEnded) {
  id = submit({.prompt = "x"});
  const Tree tree = start(0, id);
  truth.keeper_died(0, tree.run);
  tell_end(0, tree, failed_with(Reason::lost));
  EXPECT_EQ(said_at_end(), "task-1 has ended, but its process has not");
}

TEST_F(ClusterEndsTest, WhatNeverRanIsNotLost) {
  id = submit({.prompt = "x"});
  const Tree tree = tree_of(id, claim(0));
  tell_end(0, tree, failed_with(Reason::lost));
  EXPECT_EQ(said_at_end(), "task-1 is called lost, but never ran");
}

TEST_F(ClusterEndsTest, WhatNeverRanIsLostIfItsKeeperDiedWithIt) {
  id = submit({.prompt = "x"});
  const Tree tree = tree_of(id, claim(0));
  truth.keeper_died(0, tree.run);
  tell_end(0, tree, failed_with(Reason::lost));
  EXPECT_EQ(said_at_end(), "");
}

TEST_F(ClusterEndsTest, WithItsWorkerATaskIsLost) {
  id = submit({.prompt = "x"});
  const Tree tree = start(0, id);
  clock.advance(lease);
  call("silence_v1", as(1, {"1", "1"}));
  call("lose_v1", as(1, {"1", "1"}));
  die(tree, exited(0));
  EXPECT_EQ(said_at_end(), "");
}

TEST_F(ClusterEndsTest, ATaskFailsWithWhatItComesAfter) {
  const task::TaskId first = submit({.prompt = "x"});
  const Tree tree = start(0, first);
  const task::TaskId second = submit({.prompt = "y", .after = {first}});
  die(tree, exited(1));
  tell_end(0, tree, failed(1));
  EXPECT_EQ(said_at_end(), "");
  truth.began(1, tree_of(second, 9));
  EXPECT_NE(said(), "");
}

TEST_F(ClusterEndsTest, ItDoesNotIfThatHasSucceeded) {
  const task::TaskId first = submit({.prompt = "x"});
  const Tree tree = start(0, first);
  die(tree, exited(0));
  tell_end(0, tree, completed());
  const task::TaskId second = submit({.prompt = "y", .after = {first}});
  tell_end(0, tree_of(second, claim(0)), failed_with(Reason::dependency));
  EXPECT_EQ(said_at_end(), "task-2 failed with what it comes after, which did not fail");
}

TEST_F(ClusterEndsTest, WhatRanInMomentsThatAreLostMayFailWithWhatIsCancelledThen) {
  const task::TaskId first = submit({.prompt = "x"});
  const task::TaskId second = submit({.prompt = "y", .after = {first}});
  const ModelDatabase::Data standby = database.data();
  const base::TimePoint since = clock.now();
  for (const task::TaskId each : {first, second}) {
    const Tree tree = start(0, each);
    die(tree, exited(0));
    tell_end(0, tree, completed());
  }
  const ModelDatabase::Data before = database.data();
  database.fail_over(standby);
  truth.failed_over(since, before);
  call("renew_v1", {"1"});
  truth.asked_to_cancel(first);
  call("cancel_v1", as(0, {std::to_string(first)}));
  EXPECT_EQ(said_at_end(), "");
  truth.began(0, tree_of(second, 9));
  truth.check_ends();
  EXPECT_NE(said(), "");
}

TEST_F(ClusterEndsTest, EveryEventGetsItsNumber) {
  truth.check_ends();
  EXPECT_EQ(said(), "an event never got its number");
}

class ClusterOutputTest : public ClusterEndsTest {
 protected:
  void send(const Tree& tree, const std::string& bytes, const std::string& marks, bool is_last) {
    Report report;
    report.outputs.push_back(
        {.run = tree.run,
         .fence = static_cast<std::int64_t>(tree.fence),
         .portion = {
             .pieces = {{.offset = 0, .bytes = bytes, .marks = marks}}, .total = bytes.size(), .last = is_last}});
    tell(0, report);
  }

  std::string said_with(const std::string& bytes, const std::string& marks, bool is_last) {
    id = submit({.prompt = "x"});
    const Tree tree = start(0, id);
    truth.wrote(0, tree.run, "one", task::Stream::out);
    truth.wrote(0, tree.run, "two", task::Stream::err);
    die(tree, exited(0));
    send(tree, bytes, marks, is_last);
    tell_end(0, tree, completed());
    return said_at_end();
  }
};

TEST_F(ClusterOutputTest, AllOfItIsKeptWithItsStreams) { EXPECT_EQ(said_with("onetwo", "0o3e", true), ""); }

TEST_F(ClusterOutputTest, OtherBytesAreNot) {
  EXPECT_EQ(said_with("onetwx", "0o3e", true), "task-1, attempt 1: other output is kept than was written");
}

TEST_F(ClusterOutputTest, NorFromAnotherStream) {
  EXPECT_EQ(said_with("onetwo", "", true), "task-1, attempt 1: other output is kept than was written");
}

TEST_F(ClusterOutputTest, APartIsNotAll) {
  EXPECT_EQ(said_with("one", "", true), "task-1, attempt 1: other output is kept than was written");
}

TEST_F(ClusterOutputTest, APartIsNotEnoughAtTheEnd) {
  EXPECT_EQ(said_with("one", "", false), "task-1: 3 bytes of output are kept, 6 were written");
}

TEST_F(ClusterOutputTest, AllOfItIsSaidToBeAll) {
  EXPECT_EQ(said_with("onetwo", "0o3e", false), "task-1 has ended, but its output is not said to be all");
}

}  // namespace
}  // namespace duet::simulate
