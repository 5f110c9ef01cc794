#include "task/supervisor_fixture_test.h"

namespace duet::task {
namespace {

using namespace std::chrono_literals;

// Its end is decided with that of the task that it comes after, and written later.
TEST_F(SupervisorTest, ACancelOfATaskWhoseEndIsOnItsWayToTheDiskHearsOfThatEnd) {
  for (int i = 0; i < 3; ++i) submit();
  submit({.prompt = "true", .after = {3}});
  std::optional<rpc::Error> refusal;
  supervisor->cancel(3, [&](const tl::expected<void, rpc::Error>&) {
    supervisor->cancel(4, [&](const tl::expected<void, rpc::Error>& cancelled) { refusal = cancelled.error(); });
  });
  ASSERT_TRUE(turn_until([&] { return refusal.has_value(); }));
  EXPECT_NE(refusal->data().find("failed"), std::string::npos) << refusal->data();
  EXPECT_EQ(reason(4), Reason::dependency);
}

// Both are one commit: when the cancel is decided the task is on disk, and not in the queue yet.
TEST_F(SupervisorTest, ACancelOfATaskThatIsSubmittedRightAfterItIsToldThatThereIsNone) {
  int cancel_answer = 0;
  std::optional<TaskId> submitted;
  supervisor->cancel(
      1, [&](const tl::expected<void, rpc::Error>& cancelled) { cancel_answer = cancelled.error().code(); });
  supervisor->submit({.prompt = "true"},
                     [&](const tl::expected<Accepted, rpc::Error>& accepted) { submitted = accepted->id; });
  ASSERT_TRUE(turn_until([&] { return submitted && cancel_answer != 0; }));
  EXPECT_EQ(submitted, 1U);
  EXPECT_EQ(cancel_answer, -32000);
}

// The next daemon may find that it ended otherwise.
TEST_F(SupervisorTest, ACancelHearsOfNoEndThatIsNotOnDisk) {
  submit();
  run_started({1, 1});
  write_fault = SQLITE_FULL;
  tell.ended({1, 1}, {.kind = Outcome::Kind::exited, .code = 7, .ended_at = clock.utc()});
  tell.gone({1, 1});
  wait_for_store();
  EXPECT_EQ(*cancel(1), -32003);
  write_fault = SQLITE_OK;
  advance(std::chrono::seconds(2));
  EXPECT_EQ(state(1), State::failed);
  EXPECT_EQ(*cancel(1), -32001);
}

TEST_F(SupervisorTest, OneWhoThrowsAtTheEndOfATaskCostsNobodyElseAnAnswer) {
  submit();
  submit({.prompt = "true", .after = {1}});
  std::string answers;
  supervisor->wait(1, {}, [](const auto&) { throw std::runtime_error("a defect"); });
  supervisor->wait(1, {}, [&](const auto&) { answers += 'w'; });
  tell.started({1, 1}, {.pid = 100, .at = clock.utc()});
  tell.ended({1, 1}, {.kind = Outcome::Kind::exited, .ended_at = clock.utc()});
  tell.gone({1, 1});
  bool thrown = false;
  ASSERT_TRUE(turn_until([&] {
    try {
      loop.turn(loop.now());
    } catch (const std::runtime_error&) {
      thrown = true;
    }
    return !answers.empty();
  }));
  wait_for_store();
  EXPECT_TRUE(thrown);
  EXPECT_EQ(started(), (Strings{"1.1", "2.1"}));
}

TEST_F(SupervisorTest, AQueuedTaskIsCancelledAtOnce) {
  for (int i = 0; i < 3; ++i) submit();
  EXPECT_EQ(*cancel(3), 1);
  EXPECT_EQ(state(3), State::cancelled);
  EXPECT_EQ(take_events().back(), "taskCancelled task-3");
  EXPECT_TRUE(runner.cancelled.empty());
  for (const TaskId id : {1U, 2U}) run_exits({id, 1}, 0);
  EXPECT_EQ(started(), (Strings{"1.1", "2.1"}));
}

TEST_F(SupervisorTest, ARunningTaskIsCancelledWhenItsTreeIsGone) {
  settings.max_running = 1;
  supervisor->change_settings(settings);
  submit();
  submit();
  run_started({1, 1});
  const auto answer = cancel(1);
  EXPECT_EQ(*answer, 0);
  EXPECT_EQ(runner.cancelled, (std::vector<RunId>{{1, 1}}));
  tell.terminated({1, 1});
  EXPECT_EQ(*answer, 1);
  EXPECT_EQ(*cancel(1), 1) << "a second one is as certain";
  run_ends({1, 1}, {.kind = Outcome::Kind::signalled, .signal = 15}, false);
  EXPECT_EQ(state(1), State::running);
  EXPECT_EQ(started().size(), 1U);
  tell.gone({1, 1});
  wait_for_store();
  EXPECT_EQ(state(1), State::cancelled);
  EXPECT_EQ(task(1).progress.signal, "SIGTERM");
  EXPECT_EQ(reason(1), std::nullopt);
  EXPECT_EQ(started().size(), 2U);
  EXPECT_EQ(*cancel(1), -32001);
}

TEST_F(SupervisorTest, OnlyWhatExistsAndHasNotEndedCanBeCancelled) {
  submit();
  run_exits({1, 1}, 0);
  EXPECT_EQ(*cancel(1), -32001);
  EXPECT_EQ(*cancel(2), -32000);
}

TEST_F(SupervisorTest, ACancelThatComesTooLateSaysSo) {
  submit();
  run_started({1, 1});
  int answer = 0;
  supervisor->cancel(1, [&](const auto& cancelled) { answer = cancelled ? 1 : cancelled.error().code(); });
  run_exits({1, 1}, 0);
  EXPECT_EQ(answer, -32001);
  EXPECT_EQ(state(1), State::completed);
  EXPECT_TRUE(runner.cancelled.empty());
}

TEST_F(SupervisorTest, ACancelThatCannotBeWrittenIsRefusedAndEndsARunningTaskAllTheSame) {
  for (int i = 0; i < 3; ++i) submit();
  run_started({1, 1});
  write_fault = SQLITE_FULL;
  for (const TaskId id : {1U, 3U}) {
    const auto answer = cancel(id);
    EXPECT_TRUE(turn_until([&] { return *answer == -32003; }));
  }
  EXPECT_EQ(runner.cancelled, (std::vector<RunId>{{1, 1}}));
  write_fault = SQLITE_OK;
  submit();
  EXPECT_TRUE(turn_until([&] { return store->is_healthy(); }));
  EXPECT_EQ(state(1), State::running);
  run_ends({1, 1}, {.kind = Outcome::Kind::signalled, .signal = 15});
  EXPECT_EQ(state(1), State::cancelled);
  EXPECT_EQ(started().back(), "3.1");
}

TEST_F(SupervisorTest, ACancelIsNotCertainBecauseAStopEndsTheTask) {
  submit();
  run_started({1, 1});
  write_fault = SQLITE_FULL;
  int answer = 0;
  supervisor->stop(true, [] {});
  supervisor->cancel(1, [&](const auto& cancelled) { answer = cancelled ? 1 : cancelled.error().code(); });
  tell.terminated({1, 1});
  EXPECT_EQ(answer, 0);
  tell.ended({1, 1}, {.kind = Outcome::Kind::signalled, .signal = 15});
  EXPECT_TRUE(turn_until([&] { return answer != 0; }));
  EXPECT_EQ(answer, -32003);
}

TEST_F(SupervisorTest, ACancelIsCertainWhenItIsDecidedAfterAStopHasEndedTheTask) {
  submit();
  run_started({1, 1});
  supervisor->stop(true, [] {});
  tell.terminated({1, 1});
  EXPECT_EQ(*cancel(1), 1);
}

TEST_F(SupervisorTest, ACancelOfATaskThatIsBeingStartedIsCarriedOut) {
  submit();
  const auto answer = cancel(1);
  EXPECT_EQ(runner.cancelled, (std::vector<RunId>{{1, 1}}));
  run_started({1, 1});
  tell.terminated({1, 1});
  run_ends({1, 1}, {.kind = Outcome::Kind::signalled, .signal = 15});
  EXPECT_EQ(*answer, 1);
  EXPECT_EQ(state(1), State::cancelled);
}

TEST_F(SupervisorTest, ACancelledRunThatNeverBeganIsCancelled) {
  submit();
  const auto answer = cancel(1);
  tell.never_began({1, 1}, {});
  wait_for_store();
  EXPECT_EQ(*answer, 1);
  EXPECT_EQ(state(1), State::cancelled);
}

TEST_F(SupervisorTest, ACancelledTaskCountsTheAttemptWhoseStartIsNotOnDisk) {
  submit();
  cancel(1);  // while it is being started
  begin({{1, 1}});
  run_ends({1, 1}, {.kind = Outcome::Kind::signalled, .signal = 15});
  EXPECT_EQ(state(1), State::cancelled);
  EXPECT_EQ(task(1).progress.attempts, 1U);
}

TEST_F(SupervisorTest, ATaskThatWaitsForItsNextAttemptCanBeCancelled) {
  submit({.prompt = "x", .retries = 3});
  run_exits({1, 1}, 1);
  EXPECT_EQ(*cancel(1), 1);
  EXPECT_EQ(state(1), State::cancelled);
  advance(1min);
  EXPECT_EQ(started(), (Strings{"1.1"}));
}

TEST_F(SupervisorTest, ACancelWhileTheNextAttemptIsBeingWrittenDownCounts) {
  submit({.prompt = "x", .retries = 3});
  run_started({1, 1});
  tell.ended({1, 1}, {.kind = Outcome::Kind::exited, .code = 1});
  int answer = 0;
  supervisor->cancel(1, [&](const auto& cancelled) { answer = cancelled ? 1 : cancelled.error().code(); });
  tell.gone({1, 1});
  wait_for_store();
  EXPECT_EQ(answer, 1);
  EXPECT_EQ(state(1), State::cancelled);
}

TEST_F(SupervisorTest, ACancelledTaskFailsThoseThatComeAfterIt) {
  submit();
  submit();
  submit();
  submit({.prompt = "x", .after = {3}});
  EXPECT_EQ(*cancel(3), 1);
  EXPECT_EQ(reason(4), Reason::dependency);
}

TEST_F(SupervisorTest, ADecidedCancelSurvivesTheDaemon) {
  submit();
  submit();
  run_started({1, 1});
  cancel(1);
  cancel(2);  // which is being started
  begin({{1, 1}, {2, 1}});
  EXPECT_EQ(runner.adopted, (std::vector<RunId>{{1, 1}, {2, 1}}));
  run_started({1, 1});
  EXPECT_EQ(runner.cancelled, (std::vector<RunId>{{1, 1}}));
  run_ends({1, 1}, {.kind = Outcome::Kind::signalled, .signal = 15});
  EXPECT_EQ(state(1), State::cancelled);
  tell.never_began({2, 1}, {});
  wait_for_store();
  EXPECT_EQ(state(2), State::cancelled);
}

TEST_F(SupervisorTest, ADecidedCancelOfATaskThatNeverBeganSurvivesTheDaemon) {
  submit();
  cancel(1);
  begin();
  EXPECT_EQ(state(1), State::cancelled);
  EXPECT_TRUE(runner.adopted.empty());
}

TEST_F(SupervisorTest, RunningTasksAreAdopted) {
  submit();
  submit();
  submit();
  run_started({1, 1});
  take_events();
  begin({{1, 1}, {2, 1}});  // 2.1 has begun, but the daemon did not live to write it down
  EXPECT_EQ(runner.adopted, (std::vector<RunId>{{1, 1}, {2, 1}}));
  EXPECT_EQ(started(), (Strings{})) << "both slots are taken";
  run_started({1, 1});
  EXPECT_EQ(take_events(), (Strings{}));
  run_started({2, 1});
  EXPECT_EQ(take_events(), (Strings{"taskStarted task-2"}));
  run_exits({1, 1}, 7);
  EXPECT_EQ(task(1).progress.exit_code, 7);
  EXPECT_EQ(started(), (Strings{"3.1"}));
}

TEST_F(SupervisorTest, ATaskThatEndedWithoutADaemonHasItsTrueEnd) {
  submit();
  begin({{1, 1}});
  const base::UtcTime ended = clock.utc() - 10min;
  tell.ended({1, 1},
             {.kind = Outcome::Kind::exited, .code = 7, .started = Started{42, ended - 1min}, .ended_at = ended});
  tell.gone({1, 1});
  wait_for_store();
  EXPECT_EQ(task(1).progress.completed_at, ended);
  EXPECT_EQ(task(1).progress.started_at, ended - 1min);
  EXPECT_EQ(task(1).progress.pid, 42);
}

TEST_F(SupervisorTest, AnAdoptedRunThatNeverBeganIsStartedAtOnce) {
  submit();
  begin({{1, 1}});
  tell.never_began({1, 1}, {});
  EXPECT_EQ(started(), (Strings{"1.1"}));
}

TEST_F(SupervisorTest, ARunningTaskWithoutATraceIsLost) {
  submit();
  run_started({1, 1});
  begin();
  tell.never_began({1, 1}, {});
  wait_for_store();
  EXPECT_EQ(state(1), State::failed);
  EXPECT_EQ(reason(1), Reason::lost);
  EXPECT_EQ(started(), (Strings{}));
}

TEST_F(SupervisorTest, ARetryIsStillPausedAfterARestart) {
  submit({.prompt = "x", .retries = 5});
  run_exits({1, 1}, 1);
  begin();
  EXPECT_EQ(started(), (Strings{}));
  advance(1251ms);
  EXPECT_EQ(started(), (Strings{"1.2"}));
}

TEST_F(SupervisorTest, StoppingGivesRunningTasksTheirTime) {
  for (int i = 0; i < 3; ++i) submit();
  run_started({1, 1});
  run_started({2, 1});
  bool stopped = false;
  supervisor->stop(false, [&] { stopped = true; });
  EXPECT_EQ(submit(), -32003);
  advance(14s);
  EXPECT_TRUE(runner.cancelled.empty());
  run_exits({1, 1}, 0);
  EXPECT_EQ(state(1), State::completed);
  advance(1s);
  EXPECT_EQ(runner.cancelled, (std::vector<RunId>{{2, 1}}));
  EXPECT_FALSE(stopped);
  run_exits({2, 1}, 0);
  EXPECT_TRUE(stopped);
  EXPECT_EQ(state(2), State::failed);
  EXPECT_EQ(reason(2), Reason::signal);
  EXPECT_EQ(state(3), State::queued);
  EXPECT_EQ(started().size(), 2U);
}

TEST_F(SupervisorTest, AForcedStopEndsThemAtOnceAndNothingIsTriedAgain) {
  submit({.prompt = "x", .retries = 9});
  run_started({1, 1});
  bool stopped = false;
  supervisor->stop(false, [&] { stopped = true; });
  supervisor->stop(true, [&] { stopped = true; });
  EXPECT_EQ(runner.cancelled, (std::vector<RunId>{{1, 1}}));
  run_ends({1, 1}, {.kind = Outcome::Kind::signalled, .signal = 15});
  EXPECT_TRUE(stopped);
  EXPECT_EQ(state(1), State::failed);
}

TEST_F(SupervisorTest, LeavingWaitsForTheDiskOnly) {
  submit();
  run_started({1, 1});
  bool left = false;
  supervisor->leave([&] { left = true; });
  wait_for_store();
  EXPECT_TRUE(left);
  EXPECT_TRUE(runner.cancelled.empty());
}

TEST_F(SupervisorTest, AStopEndsNothingThatCannotBegin) {
  submit();
  supervisor->stop(true, [] {});
  run_ends({1, 1}, {.kind = Outcome::Kind::not_started, .problem = "no such program"});
  wait_for_store();
  EXPECT_EQ(state(1), State::failed);
  EXPECT_EQ(task(1).progress.error->reason, Reason::spawn);
}

TEST_F(SupervisorTest, ADiskThatStaysFullDoesNotKeepTheDaemonFromStopping) {
  submit();
  run_started({1, 1});
  write_fault = SQLITE_FULL;
  bool stopped = false;
  supervisor->stop(true, [&] { stopped = true; });
  run_ends({1, 1}, {.kind = Outcome::Kind::signalled, .signal = 15});
  EXPECT_TRUE(stopped);
  EXPECT_TRUE(runner.acknowledged.empty()) << "so that the next daemon finds the outcome";
}

TEST_F(SupervisorTest, ADecidedCancelHoldsThoughAllThatToldOfTheRunIsGone) {
  submit({.prompt = "x", .retries = 2});
  run_started({1, 1});
  cancel(1);
  begin();  // after a power cut: the record of the run is gone
  tell.never_began({1, 1}, {});
  wait_for_store();
  EXPECT_EQ(state(1), State::cancelled);
  advance(10min);
  EXPECT_EQ(started(), (Strings{}));
}

TEST_F(SupervisorTest, WhatIsLeftOfAnEndedTaskKeepsItsSlotInTheNextDaemon) {
  settings.max_running = 1;
  begin();
  submit();
  submit();
  run_started({1, 1});
  run_exits({1, 1}, 0, false);
  EXPECT_EQ(state(1), State::completed);
  begin({{1, 1}});
  EXPECT_EQ(runner.adopted, (std::vector<RunId>{{1, 1}}));
  EXPECT_EQ(runner.acknowledged, (std::vector<RunId>{{1, 1}}));
  EXPECT_EQ(runner.cancelled, (std::vector<RunId>{{1, 1}}));  // or a suspended keeper would hold the slot for ever
  EXPECT_EQ(started(), (Strings{}));
  EXPECT_FALSE(supervisor->output(1, 0, 10)->done);
  tell.gone({1, 1});
  wait_for_store();
  EXPECT_EQ(started(), (Strings{"2.1"}));
  EXPECT_TRUE(supervisor->output(1, 0, 10)->done);
}

TEST_F(SupervisorTest, ARunThatTheStoreDoesNotKnowYetIsEndedAndNotSettled) {
  submit({.prompt = "x", .retries = 2});
  begin({{1, 2}});  // the store was put back from a backup
  EXPECT_EQ(runner.adopted, (std::vector<RunId>{{1, 2}}));
  EXPECT_EQ(runner.cancelled, (std::vector<RunId>{{1, 2}}));
  EXPECT_TRUE(runner.acknowledged.empty());
}

// Whose end does not block its task, since another attempt runs, must not unblock it either.
TEST_F(SupervisorTest, ThatAnOlderAttemptIsGoneDoesNotCutThePauseBeforeTheNextShort) {
  submit({.prompt = "x", .retries = 2});
  run_started({1, 1});
  run_exits({1, 1}, 1);
  advance(2s);
  run_started({1, 2});
  begin({{1, 1}, {1, 2}});
  run_exits({1, 2}, 1);
  tell.gone({1, 1});
  wait_for_store();
  EXPECT_EQ(started(), (Strings{}));
  advance(10s);
  EXPECT_EQ(started(), (Strings{"1.3"}));
}

TEST_F(SupervisorTest, TheNextAttemptWaitsForWhatIsLeftOfTheLastAlsoInTheNextDaemon) {
  submit({.prompt = "x", .retries = 1});
  run_started({1, 1});
  run_exits({1, 1}, 1, false);
  begin({{1, 1}});
  advance(10s);
  EXPECT_EQ(started(), (Strings{}));
  tell.gone({1, 1});
  wait_for_store();
  EXPECT_EQ(started(), (Strings{"1.2"}));
}

TEST_F(SupervisorTest, ATaskThatWaitsForItsRetryIsCancelledWhenNothingOfItIsLeft) {
  submit({.prompt = "x", .retries = 1});
  run_started({1, 1});
  run_exits({1, 1}, 1, false);
  EXPECT_EQ(*cancel(1), 1);
  EXPECT_EQ(state(1), State::queued);
  EXPECT_EQ(task(1).progress.attempts, 1U);
  begin({{1, 1}});
  EXPECT_EQ(state(1), State::queued);
  tell.gone({1, 1});
  wait_for_store();
  EXPECT_EQ(state(1), State::cancelled);
  EXPECT_EQ(take_events().back(), "taskCancelled task-1");
}

TEST_F(SupervisorTest, AForcedStopLeavesWhatCannotBeEnded) {
  submit();
  run_started({1, 1});
  bool stopped = false;
  supervisor->stop(true, [&] { stopped = true; });
  wait_for_store();
  EXPECT_EQ(runner.cancelled, (std::vector<RunId>{{1, 1}}));
  advance(9s);
  EXPECT_FALSE(stopped);
  advance(1s);
  EXPECT_TRUE(stopped);
  EXPECT_EQ(state(1), State::running);
}

TEST_F(SupervisorTest, WhoWaitsAfterTheLastQuestionsWereAnsweredIsRefusedAtOnce) {
  submit();
  run_started({1, 1});
  supervisor->leave([] {});
  wait_for_store();
  int code = 0;
  supervisor->wait(1, std::nullopt, [&](const auto& found) { code = found.error().code(); });
  EXPECT_EQ(code, -32003);
}

TEST_F(SupervisorTest, ACancelIsNotAcknowledgedBecauseAnEarlierOneThatWasRefusedHasEndedTheTask) {
  submit();
  run_started({1, 1});
  write_fault = SQLITE_FULL;
  EXPECT_EQ(*cancel(1), -32003);
  tell.terminated({1, 1});
  EXPECT_NE(*cancel(1), 1);
}

TEST_F(SupervisorTest, ACancelThatIsDecidedIsAcknowledgedAgainWhileProcessesAreLeft) {
  submit({.prompt = "false", .retries = 1});
  run_started({1, 1});
  run_exits({1, 1}, 1, false);
  ASSERT_EQ(state(1), State::queued);
  EXPECT_EQ(*cancel(1), 1);
  EXPECT_EQ(*cancel(1), 1);
  EXPECT_EQ(runner.cancelled, (std::vector<RunId>{{1, 1}}));
  tell.gone({1, 1});
  wait_for_store();
  EXPECT_EQ(state(1), State::cancelled);
}

TEST_F(SupervisorTest, WhatComesWhileItsDependencyIsBeingFailedFailsToo) {
  for (int i = 0; i < 3; ++i) submit();
  submit({.prompt = "true", .after = {3}});
  // In one commit: task 3 ends, task 4 is to fail for that, and task 5, which comes after 4, is taken.
  supervisor->cancel(3, [](const auto& /*answer*/) {});
  supervisor->submit({.prompt = "true", .after = {4}}, [](const auto& /*answer*/) {});
  wait_for_store();
  EXPECT_EQ(reason(4), Reason::dependency);
  EXPECT_EQ(reason(5), Reason::dependency);
}

TEST_F(SupervisorTest, ACancelOfATaskThatIsBeingCancelledReachesAKeeperThatSaysNothing) {
  submit();
  run_started({1, 1});
  cancel(1);
  begin({{1, 1}});
  EXPECT_TRUE(runner.cancelled.empty());
  const auto answer = cancel(1);
  EXPECT_EQ(runner.cancelled, (std::vector<RunId>{{1, 1}}));
  tell.terminated({1, 1});
  EXPECT_EQ(*answer, 1);
}

TEST_F(SupervisorTest, ADecidedCancelIsCarriedOutThoughTheNextDaemonCannotWriteAtFirst) {
  submit({.prompt = "x", .retries = 1});
  run_started({1, 1});
  run_exits({1, 1}, 1, false);
  EXPECT_EQ(*cancel(1), 1);
  before_begin = [this] { write_fault = SQLITE_FULL; };
  begin({{1, 1}});
  advance(std::chrono::seconds(5));
  write_fault = SQLITE_OK;
  tell.gone({1, 1});
  advance(std::chrono::seconds(5));
  EXPECT_TRUE(turn_until([this] { return state(1) == State::cancelled; }));
  EXPECT_TRUE(runner.started.empty());
}

TEST_F(SupervisorTest, ARefusedCancelOfARunThatNeverBeganIsNotTold) {
  submit({.prompt = "x", .retries = 1});
  run_started({1, 1});
  run_exits({1, 1}, 1);
  begin({{1, 2}});  // the next attempt was given to a keeper
  take_events();
  write_fault = SQLITE_FULL;
  const auto answer = std::make_shared<int>(0);
  supervisor->cancel(1, [answer](const auto& cancelled) { *answer = cancelled ? 1 : cancelled.error().code(); });
  tell.never_began({1, 2}, {});
  wait_for_store();
  EXPECT_EQ(*answer, -32003);
  write_fault = SQLITE_OK;
  advance(std::chrono::seconds(5));
  EXPECT_EQ(take_events(), Strings{});
}

}  // namespace
}  // namespace duet::task
