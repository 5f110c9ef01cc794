#include "task/supervisor.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "task/run_record.h"
#include "task/supervisor_fixture_test.h"

namespace duet::task {
namespace {

using namespace std::chrono_literals;

TEST_F(SupervisorTest, ATaskGoesFromTheQueueToItsEnd) {
  EXPECT_EQ(submit("echo hello"), 1);
  ASSERT_EQ(runner.started.size(), 1U);
  EXPECT_EQ(runner.started[0].run, (RunId{1, 1}));
  EXPECT_EQ(runner.started[0].arguments, (Strings{"/bin/sh", "-c", "--", "echo hello"}));
  EXPECT_EQ(runner.started[0].directory, "/project");
  EXPECT_EQ(state(1), State::queued);
  run_started({1, 1});
  EXPECT_EQ(state(1), State::running);
  EXPECT_EQ(task(1).progress.pid, 100);
  EXPECT_EQ(task(1).progress.attempts, 1U);
  clock.advance(3s);
  run_exits({1, 1}, 0);
  EXPECT_EQ(state(1), State::completed);
  EXPECT_EQ(task(1).progress.exit_code, 0);
  EXPECT_EQ(task(1).result, "out");
  EXPECT_EQ(*task(1).progress.completed_at - *task(1).progress.started_at, 0s);
  EXPECT_EQ(runner.acknowledged, (std::vector<RunId>{{1, 1}}));
  EXPECT_EQ(take_events(), (Strings{"taskQueued task-1", "taskStarted task-1", "taskCompleted task-1"}));
  EXPECT_EQ(supervisor->counts(), (StateCounts{0, 0, 1, 0, 0}));
}

TEST_F(SupervisorTest, HigherPriorityRunsFirstThenTheOlderOne) {
  for (const char* prompt : {"a", "b"}) submit(prompt);
  submit({.prompt = "low", .priority = -1});
  submit({.prompt = "first"});
  submit({.prompt = "second"});
  submit({.prompt = "urgent", .priority = 9});
  for (TaskId id = 1; id <= 6; ++id) {
    const RunId run = runner.started[id - 1].run;
    run_started(run);
    run_exits(run, 0);
  }
  EXPECT_EQ(started(), (Strings{"1.1", "2.1", "6.1", "4.1", "5.1", "3.1"}));
}

TEST_F(SupervisorTest, NoMoreRunAtOnceThanTheSettingsAllow) {
  for (int i = 0; i < 4; ++i) submit();
  EXPECT_EQ(started(), (Strings{"1.1", "2.1"}));
  settings.max_running = 3;
  supervisor->change_settings(settings);
  EXPECT_EQ(started(), (Strings{"1.1", "2.1", "3.1"}));
  settings.max_running = 1;
  supervisor->change_settings(settings);
  for (TaskId id = 1; id <= 2; ++id) run_exits({id, 1}, 0);
  EXPECT_EQ(started().size(), 3U);
  run_exits({3, 1}, 0);
  EXPECT_EQ(started().back(), "4.1");
}

TEST_F(SupervisorTest, TheSlotIsFreeWhenTheTreeIsGone) {
  settings.max_running = 1;
  supervisor->change_settings(settings);
  submit();
  submit();
  run_started({1, 1});
  run_exits({1, 1}, 0, false);
  EXPECT_EQ(state(1), State::completed);
  EXPECT_EQ(started(), (Strings{"1.1"}));
  EXPECT_FALSE(supervisor->output(1, 0, 10)->done);
  tell.gone({1, 1});
  EXPECT_EQ(started(), (Strings{"1.1", "2.1"}));
  EXPECT_TRUE(supervisor->output(1, 0, 10)->done);
}

TEST_F(SupervisorTest, AFullQueueRefuses) {
  settings.queue_capacity = 3;
  supervisor->change_settings(settings);
  for (int i = 0; i < 2; ++i) {
    submit();
    run_started({static_cast<TaskId>(i + 1), 1});
  }
  EXPECT_EQ(submit(), 3);
  EXPECT_EQ(submit({.prompt = "x", .after = {1}}), 4);
  EXPECT_EQ(submit(), 5);
  EXPECT_EQ(submit(), -32002);
  EXPECT_EQ(last_error, R"({"capacity":3})");
  EXPECT_EQ(*cancel(5), 1);
  EXPECT_EQ(submit(), 6);
}

TEST_F(SupervisorTest, SubmissionsThatAreNotOnDiskYetCountAsWell) {
  settings.queue_capacity = 2;
  settings.max_running = 0;
  supervisor->change_settings(settings);
  int taken = 0;
  int refused = 0;
  for (int i = 0; i < 5; ++i) {
    supervisor->submit({.prompt = "x"}, [&](const auto& accepted) {
      taken += accepted ? 1 : 0;
      refused += !accepted && accepted.error().code() == -32002 ? 1 : 0;
    });
  }
  wait_for_store();
  EXPECT_EQ(taken, 2);
  EXPECT_EQ(refused, 3);
}

TEST_F(SupervisorTest, TheSameKeyIsTheSameTask) {
  const Submission first{.prompt = "x", .key = "k", .env = {{"A", "1"}}};
  EXPECT_EQ(submit(first), 1);
  EXPECT_EQ(submit(first), 1);
  Submission other = first;
  other.env["A"] = "2";
  EXPECT_EQ(submit(other), -32602);
  EXPECT_EQ(last_error.find("2"), last_error.npos);
  run_started({1, 1});
  run_exits({1, 1}, 0);
  EXPECT_EQ(submit(first), 1);
  begin();
  EXPECT_EQ(submit(first), 1);
  EXPECT_EQ(submit({.prompt = "x", .key = "another"}), 2);
}

TEST_F(SupervisorTest, AKeyThatIsRefusedNamesParametersAsTheyAreGiven) {
  provide_for = [](const process::Limits&) -> tl::expected<void, std::string> { return {}; };
  begin();
  EXPECT_EQ(submit({.prompt = "x", .key = "k", .limits = {.memory = 1 << 30, .cpu = 1}}), 1);
  EXPECT_EQ(submit({.prompt = "x", .key = "k", .limits = {.memory = 1 << 29, .processes = 9, .cpu = 1}}), -32602);
  EXPECT_NE(last_error.find(R"("differs":["memory","processes"])"), last_error.npos) << last_error;
  EXPECT_EQ(submit({.prompt = "x", .key = "k", .time_limit = 1s, .delay = 1s}), -32602);
  EXPECT_NE(last_error.find(R"("differs":["cpu","delaySeconds","memory","timeoutSeconds"])"), last_error.npos)
      << last_error;
}

TEST_F(SupervisorTest, APriorityThatIsGivenIsAnotherParameterThanNone) {
  settings.agents["cat"].priority = 5;
  supervisor->change_settings(settings);
  EXPECT_EQ(submit({.prompt = "x", .agent = "cat", .key = "k"}), 1);
  EXPECT_EQ(task(1).priority, 5);
  EXPECT_EQ(submit({.prompt = "x", .agent = "cat", .priority = 0, .key = "k"}), -32602);
  EXPECT_NE(last_error.find(R"("differs":["priority"])"), last_error.npos) << last_error;
  EXPECT_EQ(submit({.prompt = "x", .agent = "cat", .priority = 5, .key = "k"}), 1) << "which it has without";
  EXPECT_EQ(submit({.prompt = "x", .agent = "shell", .key = "other"}), 2);
  EXPECT_EQ(submit({.prompt = "x", .agent = "shell", .priority = 0, .key = "other"}), 2);
}

TEST_F(SupervisorTest, AKeyOfVersion01StandsForTheSameParameters) {
  store->write({.apply = [](StoreWriter& writer) {
    writer.insert(
        {.id = 1, .prompt = "x", .agent = "shell", .key = "k", .body = R"({"prompt":"x","priority":0,"key":"k"})"});
  }});
  wait_for_store();
  EXPECT_EQ(submit({.prompt = "x", .key = "k"}), 1);
  EXPECT_EQ(submit({.prompt = "x", .priority = 0, .key = "k", .retries = 0}), 1);
  EXPECT_EQ(submit({.prompt = "x", .priority = 1, .key = "k"}), -32602);
  EXPECT_EQ(submit({.prompt = "x", .key = "k", .retries = 1}), -32602);
}

TEST_F(SupervisorTest, TheSameKeyIsTheSameTaskWhileItIsOnItsWay) {
  std::vector<TaskId> ids;
  const auto note = [&](const tl::expected<Accepted, rpc::Error>& accepted) { ids.push_back(accepted->id); };
  for (int i = 0; i < 3; ++i) supervisor->submit({.prompt = "x", .key = "k"}, note);
  int refused = 0;
  supervisor->submit({.prompt = "y", .key = "k"}, [&](const auto& accepted) { refused = accepted.error().code(); });
  EXPECT_EQ(refused, -32602);
  wait_for_store();
  EXPECT_EQ(ids, (std::vector<TaskId>{1, 1, 1}));
}

TEST_F(SupervisorTest, IdsGoOnAfterARestart) {
  EXPECT_EQ(submit(), 1);
  EXPECT_EQ(submit(), 2);
  begin();
  EXPECT_EQ(submit(), 3);
}

TEST_F(SupervisorTest, TheReasonOfAFailureIsToldExactly) {
  settings.max_running = 9;
  supervisor->change_settings(settings);
  using Kind = Outcome::Kind;
  const std::vector<std::pair<Outcome, Reason>> cases{
      {{.kind = Kind::exited, .code = 7}, Reason::exit},
      {{.kind = Kind::signalled, .signal = 9}, Reason::signal},
      {{.kind = Kind::signalled, .signal = 15, .timed_out = true}, Reason::timeout},
      {{.kind = Kind::exited, .code = 0, .timed_out = true}, Reason::timeout},
      {{.kind = Kind::not_started, .problem = "no such program"}, Reason::spawn},
      {{.kind = Kind::lost}, Reason::lost}};
  for (std::size_t i = 0; i < cases.size(); ++i) {
    submit();
    run_ends({i + 1, 1}, cases[i].first);
    EXPECT_EQ(state(i + 1), State::failed);
    EXPECT_EQ(reason(i + 1), cases[i].second);
    EXPECT_EQ(take_events().back(), "taskFailed task-" + std::to_string(i + 1));
  }
  EXPECT_EQ(task(1).progress.exit_code, 7);
  EXPECT_EQ(task(2).progress.signal, "SIGKILL");
  EXPECT_EQ(task(2).progress.exit_code, std::nullopt);
}

TEST_F(SupervisorTest, RetriesBackOffAndAreQueuedInBetween) {
  submit({.prompt = "x", .retries = 2});
  const auto fail_attempt = [&](std::uint32_t attempt) {
    run_started({1, attempt});
    run_exits({1, attempt}, 1);
  };
  fail_attempt(1);
  EXPECT_EQ(state(1), State::queued);
  EXPECT_EQ(task(1).progress.attempts, 1U);
  EXPECT_EQ(take_events().back(), "taskQueued task-1");
  advance(749ms);
  EXPECT_EQ(started(), (Strings{"1.1"}));
  advance(502ms);
  EXPECT_EQ(started(), (Strings{"1.1", "1.2"}));
  fail_attempt(2);
  advance(1499ms);
  EXPECT_EQ(started().size(), 2U);
  advance(1002ms);
  EXPECT_EQ(started().back(), "1.3");
  fail_attempt(3);
  EXPECT_EQ(state(1), State::failed);
  EXPECT_EQ(task(1).progress.attempts, 3U);
  EXPECT_EQ(supervisor->counts(), (StateCounts{0, 0, 0, 1, 0}));
}

TEST_F(SupervisorTest, ARetryWaitsForTheTreeOfTheAttemptBefore) {
  submit({.prompt = "x", .retries = 1});
  run_started({1, 1});
  run_exits({1, 1}, 1, false);
  advance(2s);
  EXPECT_EQ(started(), (Strings{"1.1"}));
  tell.gone({1, 1});
  EXPECT_EQ(started(), (Strings{"1.1", "1.2"}));
}

TEST_F(SupervisorTest, ATaskWaitsForThoseItComesAfter) {
  settings.max_running = 9;
  supervisor->change_settings(settings);
  submit();
  submit();
  EXPECT_EQ(submit({.prompt = "x", .after = {1, 2, 2}}), 3);
  EXPECT_EQ(submit({.prompt = "x", .after = {3}}), 4);
  run_exits({1, 1}, 0);
  EXPECT_EQ(started().size(), 2U);
  run_exits({2, 1}, 0);
  EXPECT_EQ(started().back(), "3.1");
  run_exits({3, 1}, 0);
  EXPECT_EQ(started().back(), "4.1");
  EXPECT_EQ(submit({.prompt = "x", .after = {1}}), 5);
  EXPECT_EQ(started().back(), "5.1");
}

TEST_F(SupervisorTest, AFailedDependencyFailsAllThatComeAfterIt) {
  submit();
  submit({.prompt = "x", .after = {1}});
  submit({.prompt = "x", .after = {2}});
  run_exits({1, 1}, 3);
  for (const TaskId id : {2U, 3U}) {
    EXPECT_EQ(state(id), State::failed);
    EXPECT_EQ(reason(id), Reason::dependency);
    EXPECT_EQ(task(id).progress.attempts, 0U);
  }
  EXPECT_EQ(submit({.prompt = "x", .after = {3}}), 4);
  EXPECT_EQ(reason(4), Reason::dependency);
  EXPECT_EQ(submit({.prompt = "x", .after = {99}}), -32000);
  EXPECT_EQ(last_error, R"({"taskId":"task-99"})");
}

TEST_F(SupervisorTest, ALongChainFailsInOneCommit) {
  constexpr TaskId last = 300;
  submit();
  for (TaskId id = 2; id < last; ++id) submit({.prompt = "x", .after = {id - 1}});
  submit({.prompt = "x", .after = {5, last - 1, 7}});
  tell.ended({1, 1}, {.kind = Outcome::Kind::exited, .code = 1});
  tell.gone({1, 1});
  syncs = 0;
  ASSERT_TRUE(turn_until([&] { return supervisor->counts()[static_cast<std::size_t>(State::failed)] == last; }));
  EXPECT_LE(syncs, 3);
  EXPECT_EQ(reason(last), Reason::dependency);
  EXPECT_EQ(task(last - 1).progress.error->message, "task-298 did not succeed");
}

TEST_F(SupervisorTest, ARetriedDependencyHasNotFailedYet) {
  submit({.prompt = "x", .retries = 1});
  submit({.prompt = "x", .after = {1}});
  run_exits({1, 1}, 3);
  EXPECT_EQ(state(2), State::queued);
  advance(2s);
  run_exits({1, 2}, 0);
  EXPECT_EQ(started().back(), "2.1");
}

TEST_F(SupervisorTest, DependenciesHoldAcrossARestart) {
  submit();
  submit({.prompt = "x", .after = {1}});
  submit({.prompt = "x", .after = {2}});
  run_started({1, 1});
  begin({{1, 1}});
  EXPECT_EQ(started(), (Strings{}));
  run_exits({1, 1}, 0);
  EXPECT_EQ(started(), (Strings{"2.1"}));
}

TEST_F(SupervisorTest, AWaiterIsAnsweredAtTheEndOrWhenItsTimeIsUp) {
  submit();
  std::vector<State> answers;
  const auto note = [&](const tl::expected<Task, rpc::Error>& found) { answers.push_back(found->progress.state); };
  supervisor->wait(1, std::nullopt, note);
  supervisor->wait(1, 10s, note);
  const auto gone = supervisor->wait(1, 60s, note);
  supervisor->stop_waiting(*gone);
  advance(11s);
  EXPECT_EQ(answers, (std::vector<State>{State::queued}));
  run_exits({1, 1}, 0);
  EXPECT_EQ(answers, (std::vector<State>{State::queued, State::completed}));
  EXPECT_FALSE(supervisor->wait(1, std::nullopt, note));
  EXPECT_EQ(answers.size(), 3U);
  int refused = 0;
  supervisor->wait(2, std::nullopt, [&](const auto& found) { refused = found.error().code(); });
  EXPECT_EQ(refused, -32000);
}

TEST_F(SupervisorTest, NothingIsTakenOrStartedWhileTheStoreCannotWrite) {
  submit();
  write_fault = SQLITE_FULL;
  EXPECT_EQ(submit(), -32003);
  run_exits({1, 1}, 0);
  EXPECT_EQ(state(1), State::queued);
  EXPECT_EQ(take_events(), (Strings{"taskQueued task-1"}));
  write_fault = SQLITE_OK;
  EXPECT_GE(submit(), 2);
  EXPECT_TRUE(turn_until([&] { return state(1) == State::completed; }));
}

TEST_F(SupervisorTest, WhatWaitsForTheStoreStartsWhenItWorksAgain) {
  for (int i = 0; i < 3; ++i) submit();
  write_fault = SQLITE_FULL;
  EXPECT_EQ(submit(), -32003);
  run_exits({1, 1}, 0);
  EXPECT_EQ(started(), (Strings{"1.1", "2.1"}));
  write_fault = SQLITE_OK;
  advance(1s);
  EXPECT_EQ(started().size(), 3U);
}

TEST_F(SupervisorTest, ARunThatNeverBeganIsTriedAgain) {
  submit();
  tell.never_began({1, 1}, {});
  EXPECT_EQ(started().size(), 1U);
  advance(1s);
  EXPECT_EQ(started(), (Strings{"1.1", "1.1"}));
}

TEST_F(SupervisorTest, ATaskThatNeededMoreMemoryThanItsLimitSaysSo) {
  submit();
  tell.started({1, 1}, {.pid = 7, .at = loop.clock().utc()});
  Outcome outcome{.kind = Outcome::Kind::signalled, .signal = SIGKILL, .out_of_memory = true};
  tell.ended({1, 1}, outcome);
  wait_for_store();
  EXPECT_EQ(reason(1), Reason::memory);
}

TEST_F(SupervisorTest, WhatNeedsNoArgumentGoesToStdin) {
  const std::string prompt(1 << 20, 'p');
  submit({.prompt = prompt, .agent = "cat", .cwd = "sub", .env = {{"A", "1"}}, .time_limit = 5s});
  const Assignment& assignment = runner.started.at(0);
  EXPECT_EQ(assignment.input, prompt);
  EXPECT_EQ(assignment.arguments, (Strings{"cat"}));
  EXPECT_EQ(assignment.directory, "/project/sub");
  EXPECT_EQ(assignment.environment, (process::Environment{{"A", "1"}, {"PATH", "/bin"}}));
  EXPECT_EQ(assignment.time_limit, 5s);
}

TEST_F(SupervisorTest, TasksOfAnAgentThatWasTakenOutOfTheSettingsWaitForIt) {
  settings.max_running = 0;
  supervisor->change_settings(settings);
  submit({.prompt = "x", .agent = "cat"});
  const auto agents = std::exchange(settings.agents, {});
  settings.max_running = 1;
  supervisor->change_settings(settings);
  wait_for_store();
  EXPECT_EQ(started(), Strings());
  EXPECT_EQ(supervisor->explain(1)->reasons.at(0).why, Why::no_agent);
  settings.agents = agents;
  supervisor->change_settings(settings);
  EXPECT_EQ(started(), Strings{"1.1"});
}

TEST_F(SupervisorTest, OldTasksGoAndTheNewestStays) {
  settings.keep_tasks = 2;
  settings.keep_days = 1;
  supervisor->change_settings(settings);
  for (TaskId id = 1; id <= 5; ++id) {
    submit();
    run_exits({id, 1}, 0);
    clock.advance(1s);
  }
  wait_for_store();
  EXPECT_FALSE(supervisor->find(3));
  EXPECT_TRUE(supervisor->find(4));
  EXPECT_EQ(supervisor->counts()[2], 2);
  advance(25h);
  EXPECT_FALSE(supervisor->find(4));
  EXPECT_TRUE(supervisor->find(5));
  begin();
  EXPECT_EQ(submit(), 6);
}

class SupervisorOutputTest : public SupervisorTest {
 protected:
  /// A task that has run once and written so much.
  void write_and_end(TaskId id, std::size_t bytes) {
    submit();
    run_started({id, 1});
    put({id, 1}, bytes);
    run_ends({id, 1}, {.kind = Outcome::Kind::exited, .usage = Usage{.output_bytes = bytes}});
    wait_for_store();
  }
  void put(RunId run, std::size_t bytes) const {
    const base::Fd file(openat(tasks.get(), output_name(run).c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    ASSERT_EQ(ftruncate(file.get(), static_cast<off_t>(bytes)), 0);
  }
  bool has_output(TaskId id) const { return faccessat(tasks.get(), output_name({id, 1}).c_str(), F_OK, 0) == 0; }
};

TEST_F(SupervisorOutputTest, TheOutputOfThoseThatEndedFirstGoesAndTheirRecordsSaySo) {
  settings.keep_output = 1000;
  begin();
  write_and_end(1, 400);
  write_and_end(2, 0);
  write_and_end(3, 600);
  EXPECT_TRUE(has_output(1) && has_output(3)) << "as much as may be";
  write_and_end(4, 1);
  EXPECT_FALSE(has_output(1));
  EXPECT_TRUE(has_output(3) && has_output(4));
  EXPECT_TRUE(task(1).output_gone);
  EXPECT_FALSE(task(2).output_gone);
  EXPECT_FALSE(task(3).output_gone);
  const auto gone = supervisor->output(1, 100, 50);
  ASSERT_TRUE(gone);
  EXPECT_EQ(gone->piece.bytes, "");
  EXPECT_EQ(gone->piece.offset, 400U);
  EXPECT_EQ(gone->piece.next, 400U);
  EXPECT_EQ(gone->piece.dropped->to, 400U);
  EXPECT_TRUE(gone->done);
}

TEST_F(SupervisorOutputTest, ARestartInPlaceGoesOnBehindWhatWasLetGo) {
  settings.keep_output = 10;
  begin();
  write_and_end(1, 400);
  ASSERT_TRUE(task(1).output_gone);
  output_wanted = true;
  supervisor->restart_in_place(1, [](const auto& restarted) { EXPECT_TRUE(restarted); });
  wait_for_store();
  put({1, 2}, 5);
  run_started({1, 2});
  run_ends({1, 2}, {.kind = Outcome::Kind::exited});
  wait_for_store();
  ASSERT_FALSE(told.empty());
  EXPECT_EQ(told.front().first, 400U);
  EXPECT_EQ(supervisor->output(1, 400, 50)->piece.next, 405U);
}

TEST_F(SupervisorOutputTest, ATaskThatWasRemovedTakesNoRoom) {
  settings.keep_output = 1000;
  begin();
  write_and_end(1, 400);
  supervisor->remove({1}, [](const auto& removal) { EXPECT_TRUE(removal); });
  wait_for_store();
  EXPECT_FALSE(has_output(1));
  write_and_end(2, 700);
  write_and_end(3, 200);
  EXPECT_TRUE(has_output(2) && has_output(3));
}

TEST_F(SupervisorOutputTest, RunningTasksKeepTheirs) {
  settings.keep_output = 10;
  begin();
  submit();
  run_started({1, 1});
  put({1, 1}, 5000);
  write_and_end(2, 5);
  EXPECT_TRUE(has_output(1) && has_output(2));
  run_ends({1, 1}, {.kind = Outcome::Kind::exited, .usage = Usage{.output_bytes = 5000}});
  EXPECT_FALSE(has_output(1)) << "more than may be by itself";
  EXPECT_FALSE(has_output(2)) << "it ended before";
}

TEST_F(SupervisorOutputTest, TheNextDaemonKnowsHowMuchThereIsAndEndsWhatWasBegun) {
  settings.keep_output = 1000;
  begin();
  write_and_end(1, 400);
  write_and_end(2, 600);
  begin();
  EXPECT_TRUE(has_output(1));
  write_and_end(3, 1);
  EXPECT_FALSE(has_output(1));
  put({1, 1}, 400);  // as if it had been killed before it removed the file
  begin();
  EXPECT_FALSE(has_output(1));
  EXPECT_TRUE(has_output(2) && has_output(3));
  settings.keep_output = 0;
  supervisor->change_settings(settings);
  wait_for_store();
  EXPECT_FALSE(has_output(2) || has_output(3));
  EXPECT_TRUE(supervisor->find(2) && supervisor->find(3));
}

TEST_F(SupervisorTest, OutputIsToldToThoseWhoWantIt) {
  output_wanted = true;
  submit();
  EXPECT_EQ(runner.followed, (std::vector<std::pair<RunId, std::uint64_t>>{{{1, 1}, 0}}));
  run_started({1, 1});
  run_exits({1, 1}, 0);
  EXPECT_EQ(told, (std::vector<std::pair<std::uint64_t, std::string>>{{0, ""}}));
}

TEST_F(SupervisorTest, ATaskThatComesAfterAFailedOneFailsThoughThatOneIsAboutToBeRemoved) {
  settings.keep_tasks = 1;
  begin();
  submit();
  submit();
  run_exits({1, 1}, 1);
  std::int64_t third = 0;
  on_event = [&](const Event& event) {
    if (event.kind != "taskCompleted") return;
    supervisor->submit({.prompt = "x", .after = {1}}, [&](const tl::expected<Accepted, rpc::Error>& accepted) {
      third = accepted ? static_cast<std::int64_t>(accepted->id) : accepted.error().code();
    });
  };
  run_exits({2, 1}, 0);
  EXPECT_EQ(supervisor->find(1).error().code(), -32000) << "it is removed";
  ASSERT_EQ(third, 3);
  EXPECT_EQ(reason(3), Reason::dependency);
  EXPECT_EQ(started(), (Strings{"1.1", "2.1"}));
}

TEST_F(SupervisorTest, WhatATaskOnItsWayComesAfterIsNotRemoved) {
  settings.keep_tasks = 1;
  begin();
  submit();
  submit();
  std::int64_t third = 0;
  supervisor->submit({.prompt = "x", .after = {1}},
                     [&](const tl::expected<Accepted, rpc::Error>& accepted) { third = accepted ? 3 : -1; });
  tell.ended({1, 1}, {.kind = Outcome::Kind::exited, .code = 1});
  tell.gone({1, 1});
  run_exits({2, 1}, 0);
  ASSERT_EQ(third, 3);
  EXPECT_EQ(reason(3), Reason::dependency);
  EXPECT_EQ(started(), (Strings{"1.1", "2.1"}));
}

TEST_F(SupervisorTest, NoTaskIsRemovedInThePlaceOfOneThatEndedBeforeIt) {
  settings.keep_tasks = 2;
  begin();
  for (int i = 0; i < 3; ++i) submit();
  tell.ended({1, 1}, {.kind = Outcome::Kind::exited, .code = 0});
  for (const TaskId id : {2U, 3U}) run_exits({id, 1}, 0);
  EXPECT_TRUE(supervisor->find(1)) << "its processes are not gone yet";
  EXPECT_TRUE(supervisor->find(2));
}

TEST_F(SupervisorTest, AtTheStartNoneIsRemovedBeforeTheRunsThatWereFoundAreLookedAt) {
  for (int i = 0; i < 3; ++i) submit();
  for (const TaskId id : {1U, 2U, 3U}) run_exits({id, 1}, 0);
  settings.keep_tasks = 1;
  begin({{1, 1}});
  EXPECT_TRUE(supervisor->find(1) && supervisor->find(2));
  tell.gone({1, 1});
  wait_for_store();
  EXPECT_FALSE(supervisor->find(1) || supervisor->find(2));
  EXPECT_TRUE(supervisor->find(3));
}

TEST_F(SupervisorTest, APauseIsNeverLongerThanItWasMeantToBeWhateverTheClockOnTheWallDoes) {
  submit({.prompt = "x", .retries = 1});
  clock.set_utc(clock.utc() + 240h);
  run_exits({1, 1}, 1);
  clock.set_utc(clock.utc() - 240h);
  begin();
  advance(2s);
  EXPECT_EQ(started(), (Strings{"1.2"}));
}

TEST_F(SupervisorTest, AClockThatJumpsAheadRemovesNothing) {
  submit();
  submit();
  run_exits({1, 1}, 0);
  const base::UtcTime before = clock.utc();
  clock.set_utc(before + 960h);
  run_exits({2, 1}, 0);
  clock.set_utc(before);
  advance(61min);
  EXPECT_EQ(state(1), State::completed);
  clock.set_utc(before + 960h);
  advance(61min);
  EXPECT_EQ(state(1), State::completed) << "the hour was not steady";
  advance(61min);
  EXPECT_FALSE(supervisor->find(1));
}

TEST_F(SupervisorTest, OutputsOfTasksThatAreNoMoreAreRemovedAtTheStart) {
  submit();
  for (const char* name : {"task-1.1.out", "task-7.1.out", "task-7.2.out", "unknown"}) {
    base::Fd(openat(tasks.get(), name, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
  }
  begin();
  EXPECT_EQ(recorded_outputs(tasks.get()), (std::vector<RunId>{{1, 1}}));
}

TEST_F(SupervisorTest, WhatComesAfterAFailedTaskHasFailedWhenItIsAnswered) {
  submit();
  run_exits({1, 1}, 1);
  take_events();
  std::optional<State> answered;
  std::optional<State> on_disk;
  supervisor->submit({.prompt = "x", .after = {1}}, [&](const tl::expected<Accepted, rpc::Error>& accepted) {
    answered = accepted->state;
    on_disk = state(2);
  });
  wait_for_store();
  EXPECT_EQ(answered, State::failed);
  EXPECT_EQ(on_disk, State::failed);
  EXPECT_EQ(reason(2), Reason::dependency);
  EXPECT_EQ(take_events(), (Strings{"taskQueued task-2", "taskFailed task-2"}));
  EXPECT_EQ(supervisor->counts(), (StateCounts{0, 0, 0, 2, 0}));
}

TEST_F(SupervisorTest, OfTooManyTasksThoseGoThatEndedFirstWhateverTheClockSays) {
  settings.keep_tasks = 2;
  begin();
  for (TaskId id = 1; id <= 4; ++id) {
    submit();
    if (id == 3) clock.set_utc(clock.utc() - std::chrono::hours(240));
    run_exits({id, 1}, 0);
  }
  EXPECT_FALSE(supervisor->find(1));
  EXPECT_FALSE(supervisor->find(2));
  EXPECT_TRUE(supervisor->find(3));
  EXPECT_TRUE(supervisor->find(4));
}

TEST_F(SupervisorTest, WhatEndedByAClockThatWasBehindIsNotOld) {
  submit();
  run_exits({1, 1}, 0);
  submit();
  clock.set_utc(clock.utc() - std::chrono::hours(24 * 365));
  run_exits({2, 1}, 0);
  clock.set_utc(clock.utc() + std::chrono::hours(24 * 365));
  submit();
  run_exits({3, 1}, 0);
  for (int hour = 0; hour < 3; ++hour) advance(std::chrono::hours(1));
  EXPECT_TRUE(supervisor->find(2));
}

/// Changes what the store holds, behind its back.
class DamagedStore : public SupervisorTest {
 protected:
  void damage(const char* sql) {
    supervisor.reset();
    journal.reset();
    store.reset();
    const StoreVfs vfs;
    Database((folder.path() / "tasks.db").string(), SQLITE_OPEN_READWRITE, vfs.name()).run(sql);
  }
};

TEST_F(DamagedStore, ATaskWhoseRequestIsDamagedFails) {
  settings.max_running = 0;
  begin();
  submit();
  damage(R"(UPDATE task SET body='{"prompt":"x')");
  settings.max_running = 2;
  begin();
  EXPECT_EQ(reason(1), Reason::spawn);
  EXPECT_EQ(submit(), 2);
  EXPECT_EQ(started(), Strings{"2.1"});
}

TEST_F(DamagedStore, ARecordThatIsDamagedIsRefusedByValue) {
  submit();
  damage(R"(UPDATE task SET metadata='{"a')");
  begin({{1, 1}});
  EXPECT_EQ(supervisor->find(1).error().code(), -32003);
}

TEST_F(DamagedStore, WithoutTheQueueNothingBegins) {
  submit({.prompt = "x"});
  submit({.prompt = "x", .after = {1}});
  damage("UPDATE task SET after='rubbish' WHERE id=2");
  EXPECT_THROW(begin({{1, 1}}), rpc::Error);
  EXPECT_TRUE(runner.adopted.empty());
  EXPECT_TRUE(runner.acknowledged.empty());
}

}  // namespace
}  // namespace duet::task
