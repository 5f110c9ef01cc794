#include "simulate/cluster_truth.h"

#include "simulate/cluster_fixture_test.h"
#include "task/refusal.h"

namespace duet::simulate {
namespace {

using namespace std::chrono_literals;
using testing::Test;

class ClusterTruthTest : public ClusterFixture {
 protected:
  static task::Event event_of(const ModelEvent& event) {
    return {.seq = static_cast<std::uint64_t>(event.seq.value()),
            .kind = event.kind,
            .task = static_cast<task::TaskId>(event.task)};
  }
  void reach(std::size_t host, base::Duration time) {
    truth.set_reached(host, true);
    clock.advance(time);
  }
};

TEST_F(ClusterTruthTest, AnAcceptedTaskIsThereAndIsWhatWasAskedFor) {
  truth.submitted(0, {.prompt = "x"});
  truth.submitted(0, {.prompt = "y"});
  const task::TaskId x = write({.prompt = "x"});
  truth.accepted("x", x);
  truth.accepted("x", x);
  EXPECT_EQ(said(), "");
  truth.accepted("y", x);
  EXPECT_EQ(said(), "y is said to be task-1, which is x");
}

TEST_F(ClusterTruthTest, AnAcceptedTaskThatIsNotThereIsMissed) {
  truth.submitted(0, {.prompt = "x"});
  truth.accepted("x", 9);
  EXPECT_EQ(said(), "task-9 was accepted, and is not there");
}

TEST_F(ClusterTruthTest, OneSubmitIsOneTask) {
  const task::TaskId id = submit({.prompt = "x"});
  die(start(0, id), exited(0));
  tell_end(0, tree_of(id, 1), completed());
  EXPECT_EQ(said_at_end(), "");
  write({.prompt = "x"});
  EXPECT_EQ(said_at_end(), "x became task-1 and task-2");
}

TEST_F(ClusterTruthTest, WhatWasRefusedForGoodNeverTurnsUp) {
  truth.submitted(0, {.prompt = "x"});
  truth.refused(0, "x", task::unavailable("store", "down"));
  EXPECT_EQ(said_at_end(), "");
  const task::TaskId id = write({.prompt = "x"});
  truth.asked_to_cancel(id);
  call("cancel_v1", as(0, {std::to_string(id)}));
  EXPECT_EQ(said_at_end(), "x was refused for good, and is there");
}

TEST_F(ClusterTruthTest, ARowIsWhatTheClientAskedFor) {
  truth.submitted(0, {.prompt = "x", .on_lost = task::OnLost::fail});
  const task::TaskId id = write({.prompt = "x", .on_lost = task::OnLost::retry});
  truth.asked_to_cancel(id);
  call("cancel_v1", as(0, {std::to_string(id)}));
  EXPECT_EQ(said_at_end(), "task-1 has another priority, retries or on_lost than was asked for");
}

TEST_F(ClusterTruthTest, ADaemonThatReachesTheDatabaseRefusesNothing) {
  truth.submitted(0, {.prompt = "x"});
  reach(0, 25s);
  truth.refused(0, "x", task::unavailable("store", "down"));
  EXPECT_EQ(said(), "");
  reach(0, 1s);
  truth.refused(0, "x", task::unavailable("store", "down"));
  EXPECT_EQ(said(), "the submit of x is refused without need: Subsystem unavailable: down");
}

TEST_F(ClusterTruthTest, ADependencyIsUnknownOnlyIfItIsNotThere) {
  const task::TaskId id = submit({.prompt = "x"});
  reach(0, 60s);
  truth.submitted(0, {.prompt = "y", .after = {id + 1}});
  truth.refused(0, "y", task::unknown_task("task-2"));
  EXPECT_EQ(said(), "");
  truth.submitted(0, {.prompt = "z", .after = {id}});
  truth.refused(0, "z", task::unknown_task("task-1"));
  EXPECT_NE(said(), "");
}

TEST_F(ClusterTruthTest, OnlyWhatHasEndedCannotBeCancelled) {
  const task::TaskId id = submit({.prompt = "x"});
  reach(0, 60s);
  truth.not_cancelled(0, id + 1, task::unknown_task("task-2"));
  EXPECT_EQ(said(), "");
  truth.not_cancelled(0, id, task::not_cancellable(id, task::State::completed));
  EXPECT_EQ(said(), "the cancel of task-1 is refused without need: Task not cancellable");
}

TEST_F(ClusterTruthTest, AWaitIsAnsweredWithTheEndOrWhenItsTimeIsOver) {
  const task::TaskId id = submit({.prompt = "x"});
  task::Task told;
  truth.waited(0, id, true, told);
  EXPECT_EQ(said(), "");
  truth.waited(0, id, false, told);
  EXPECT_EQ(said(), "the wait for task-1 is answered before its end");
}

TEST_F(ClusterTruthTest, AWaitIsAnsweredWithTheEndThatThereIs) {
  const task::TaskId id = submit({.prompt = "x"});
  tell_end(0, start(0, id), completed());
  task::Task told;
  told.progress.state = task::State::completed;
  told.progress.exit_code = 0;
  truth.waited(0, id, false, told);
  EXPECT_EQ(said(), "");
  told.progress.exit_code = 1;
  truth.waited(0, id, false, told);
  EXPECT_EQ(said(), "the wait for task-1 is answered with another end than it has");
}

TEST_F(ClusterTruthTest, WhoIsFencedEndsWhatHeHas) {
  const task::TaskId id = submit({.prompt = "x"});
  truth.set_reached(0, true);
  start(0, id);
  clock.advance(100s);
  truth.check_fenced();
  EXPECT_EQ(said(), "") << "it is his";
  truth.asked_to_cancel(id);
  call("leave_v1", as(0));
  truth.check_fenced();
  clock.advance(90s);
  truth.check_fenced();
  EXPECT_EQ(said(), "") << "it has time to hear of it";
  clock.advance(1s);
  truth.check_fenced();
  EXPECT_EQ(said(), "task-1 runs on under fence 1, which is not its worker's any more");
}

TEST_F(ClusterTruthTest, AWorkerWithoutABeatForItsLeaseIsSilent) {
  call("beat_v1", as(1, {"f", "1", "{}", "{a}", "{a}", "30000", "60000"}));
  clock.advance(lease);
  call("silence_v1", as(0, {"2", "2"}));
  EXPECT_EQ(said(), "");
}

TEST_F(ClusterTruthTest, AWorkerThatHasBeatenIsNotSilent) {
  call("beat_v1", as(1, {"f", "1", "{}", "{a}", "{a}", "30000", "60000"}));
  clock.advance(lease - 1s);
  call("silence_v1", as(0, {"2", "2"}));
  EXPECT_EQ(said(), "worker-1 is called silent, but has beaten in its lease");
}

TEST_F(ClusterTruthTest, AWorkerThatCouldBeatIsNotSilent) {
  clock.advance(lease);
  reach(1, 17s);
  call("silence_v1", as(0, {"2", "1"}));
  EXPECT_EQ(said(), "") << "it may have been late";
  attach(1);
  reach(1, 1s);
  call("silence_v1", as(0, {"2", "1"}));
  EXPECT_EQ(said(), "") << "its beat has moved";
}

TEST_F(ClusterTruthTest, AWorkerThatHadTimeToBeatIsNotSilent) {
  clock.advance(lease);
  reach(1, 18s);
  call("silence_v1", as(0, {"2", "1"}));
  EXPECT_EQ(said(), "worker-1 is called silent, but could beat");
}

TEST_F(ClusterTruthTest, AnOutageMakesNobodySilent) {
  truth.set_sound(1, true);
  clock.advance(61s);
  truth.outage();
  truth.outage();
  call("silence_v1", as(0, {"2", "1"}));
  EXPECT_EQ(said(), "") << "of many outages none may have been long enough for a beat";
  attach(1);
  clock.advance(61s);
  truth.outage();
  call("silence_v1", as(0, {"2", "2"}));
  EXPECT_EQ(said(), "worker-1 is called silent, but could beat");
}

TEST_F(ClusterTruthTest, EventsAreToldInOrderAndAsTheyAre) {
  submit({.prompt = "x"});
  call("number_v1", {"1000"});
  const auto& events = database.data().events;
  ASSERT_GE(events.size(), 3U);
  truth.heard(0, event_of(events[0]));
  truth.heard(0, event_of(events[1]));
  truth.heard(1, event_of(events[2]));
  EXPECT_EQ(said(), "") << "a daemon begins anywhere";
  truth.heard(0, event_of(events[1]));
  EXPECT_EQ(said(), "a daemon is told of event 2 after 2");
}

TEST_F(ClusterTruthTest, AnEventIsTheSameForEveryDaemon) {
  call("number_v1", {"1000"});
  task::Event event = event_of(database.data().events[0]);
  event.task = 5;
  truth.heard(0, event);
  EXPECT_EQ(said(), "event 1 is told as another one");
}

TEST_F(ClusterTruthTest, OnlyAfterAFailoverEventsMayBeMissing) {
  const ModelDatabase::Data before = database.data();
  truth.failed_over(clock.now(), before);
  truth.journal_began_anew(0);
  EXPECT_EQ(said(), "");
}

TEST_F(ClusterTruthTest, NobodySaysThatEventsAreMissingIfNoneIs) {
  truth.journal_began_anew(0);
  EXPECT_EQ(said(), "a daemon says that events are missing, and none is");
}

TEST_F(ClusterTruthTest, AtTheEndEveryDaemonWasToldAllEvents) {
  call("number_v1", {"1000"});
  const auto& events = database.data().events;
  truth.heard(0, event_of(events[0]));
  truth.heard(0, event_of(events[1]));
  truth.check_told(0, 3);
  truth.check_told(1, 3);
  EXPECT_EQ(said(), "");
  truth.check_told(1, 2);
  EXPECT_EQ(said(), "worker-1 waits for event 2 and was told of 0, but the next one is 3");
}

TEST_F(ClusterTruthTest, WhatAFailoverLostMayBeGoneAndNothingElse) {
  const ModelDatabase::Data standby = database.data();
  const base::TimePoint since = clock.now();
  clock.advance(1s);
  const task::TaskId id = submit({.prompt = "x"});
  const ModelDatabase::Data before = database.data();
  database.fail_over(standby);
  truth.failed_over(since, before);
  call("renew_v1", {"1"});
  truth.accepted("x", id);
  EXPECT_EQ(said_at_end(), "");
  truth.accepted("x", id + 1);
  EXPECT_EQ(said(), "task-2 was accepted, and is not there");
}

}  // namespace
}  // namespace duet::simulate
