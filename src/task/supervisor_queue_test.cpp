#include <algorithm>
#include <chrono>

#include "task/supervisor_fixture_test.h"

namespace duet::task {
namespace {

using namespace std::chrono_literals;

/// A supervisor with groups, and answers that are waited for.
class QueueControlTest : public SupervisorTest {
 protected:
  QueueControlTest() {
    settings.groups["a"] = {.max_running = 1};
    settings.groups["b"] = {};
    settings.agents["model"] = {.command = {"model", "{prompt}"}, .hold = UsageHold{.exit_codes = {75}}};
  }

  /// What was answered: whether it changed anything, or the code of the refusal.
  template <typename Ask>
  int changed(Ask ask) {
    std::optional<int> answer;
    ask([&answer](const tl::expected<bool, rpc::Error>& result) {
      answer = result ? static_cast<int>(*result) : result.error().code();
    });
    EXPECT_TRUE(turn_until([&] { return answer.has_value(); }));
    wait_for_store();
    return answer.value_or(-1);
  }
  int pause(const std::optional<std::string>& group, bool paused) {
    return changed([&](const QueueGate::Changed& done) { supervisor->gate().set_paused(group, paused, done); });
  }
  int hold(TaskId id, bool held) {
    return changed([&](const QueueGate::Changed& done) { supervisor->set_held(id, held, done); });
  }
  int release_agent(const std::string& agent) {
    return changed([&](const QueueGate::Changed& done) { supervisor->gate().release(agent, done); });
  }
  /// 1, or the code of the refusal.
  int edit(TaskId id, const Supervisor::Edit& edit) {
    return changed([&](const QueueGate::Changed& done) {
      supervisor->edit(id, edit, [done](const tl::expected<Task, rpc::Error>& task) {
        task ? done(true) : done(tl::unexpected(task.error()));
      });
    });
  }
  std::int64_t restart(TaskId id, bool in_place) {
    std::int64_t answer = 0;
    const auto submitted = [&answer](const tl::expected<Accepted, rpc::Error>& accepted) {
      answer = accepted ? static_cast<std::int64_t>(accepted->id) : accepted.error().code();
    };
    in_place ? supervisor->restart_in_place(id, submitted) : supervisor->restart(id, submitted);
    EXPECT_TRUE(turn_until([&] { return answer != 0; }));
    wait_for_store();
    return answer;
  }
  /// Those that went, and why others did not.
  Strings remove(std::vector<TaskId> ids) {
    std::optional<Strings> answer;
    supervisor->remove(std::move(ids), [&answer](const tl::expected<Supervisor::Removal, rpc::Error>& removal) {
      answer.emplace();
      for (const TaskId id : removal->removed) answer->push_back(to_text(id));
      for (const auto& kept : removal->kept) answer->push_back(to_text(kept.id) + ' ' + kept.reason);
    });
    EXPECT_TRUE(turn_until([&] { return answer.has_value(); }));
    wait_for_store();
    return answer.value_or(Strings());
  }
  std::vector<Why> why(TaskId id) {
    std::vector<Why> reasons;
    const auto explanation = supervisor->explain(id);
    for (const WaitReason& reason : explanation->reasons) reasons.push_back(reason.why);
    return reasons;
  }
  void fail_writes(bool fail) { write_fault = fail ? SQLITE_FULL : SQLITE_OK; }
};

using Reasons = std::vector<Why>;

TEST_F(QueueControlTest, AGroupAndAnAgentRunNoMoreThanTheyMay) {
  settings.agents["cat"].max_running = 1;
  settings.max_running = 9;
  supervisor->change_settings(settings);
  for (int i = 0; i < 2; ++i) submit({.prompt = "x", .group = "a"});
  for (int i = 0; i < 2; ++i) submit({.prompt = "x", .agent = "cat"});
  EXPECT_EQ(started(), (Strings{"1.1", "3.1"}));
  EXPECT_EQ(why(2), Reasons{Why::group_slot});
  EXPECT_EQ(why(4), Reasons{Why::agent_slot});
  run_exits({1, 1}, 0, false);
  EXPECT_EQ(started().size(), 2U) << "its tree is still there";
  tell.gone({1, 1});
  run_exits({3, 1}, 0);
  EXPECT_EQ(started(), (Strings{"1.1", "3.1", "2.1", "4.1"}));
}

TEST_F(QueueControlTest, APauseHoldsOverARestartAndEndsWhenSomebodySaysSo) {
  EXPECT_EQ(pause(std::nullopt, true), 1);
  EXPECT_EQ(pause(std::nullopt, true), 0);
  submit();
  begin();
  EXPECT_EQ(started(), Strings());
  EXPECT_EQ(why(1), Reasons{Why::paused});
  EXPECT_EQ(pause(std::nullopt, false), 1);
  EXPECT_EQ(started(), Strings{"1.1"});
}

TEST_F(QueueControlTest, APauseThatCannotBeWrittenIsNone) {
  fail_writes(true);
  EXPECT_EQ(pause("b", true), -32003);
  fail_writes(false);
  EXPECT_TRUE(turn_until([&] {
    clock.advance(1s);
    return store->is_healthy();
  }));
  EXPECT_FALSE(supervisor->gate().is_paused("b"));
}

TEST_F(QueueControlTest, WhatWasSaidOfAGroupCountsUntilItsSettingChanges) {
  EXPECT_EQ(pause("b", true), 1);
  supervisor->change_settings(settings);
  EXPECT_TRUE(supervisor->gate().is_paused("b"));
  settings.groups["b"].paused = true;
  supervisor->change_settings(settings);
  settings.groups["b"].paused = false;
  take_events();
  supervisor->change_settings(settings);
  wait_for_store();
  EXPECT_FALSE(supervisor->gate().is_paused("b"));
  EXPECT_EQ(take_events(), Strings{"queueResumed task-0"});
}

TEST_F(QueueControlTest, WhatWasSaidBeforeTheSettingChangedDoesNotComeBack) {
  EXPECT_EQ(pause("b", true), 1);
  settings.groups["b"].paused = true;
  begin();
  settings.groups["b"].paused = false;
  begin();
  EXPECT_FALSE(supervisor->gate().is_paused("b"));
}

TEST_F(QueueControlTest, AHeldTaskNeverStarts) {
  pause(std::nullopt, true);
  submit();
  submit();
  EXPECT_EQ(hold(1, true), 1);
  EXPECT_EQ(hold(1, true), 0);
  begin();
  pause(std::nullopt, false);
  EXPECT_EQ(started(), Strings{"2.1"});
  EXPECT_TRUE(task(1).held);
  EXPECT_EQ(hold(2, true), -32001);
  EXPECT_EQ(hold(9, true), -32000);
  EXPECT_EQ(hold(1, false), 1);
  EXPECT_EQ(started(), (Strings{"2.1", "1.1"}));
}

// After a power cut the record of a run that never began may be back, though it was removed.
TEST_F(QueueControlTest, ARecordThatIsBackEndsNoHoldAndNoDelay) {
  pause(std::nullopt, true);
  submit();
  submit({.prompt = "true", .delay = 60s});
  submit();
  hold(1, true);
  pause(std::nullopt, false);
  EXPECT_EQ(started(), Strings{"3.1"});
  begin({{1, 1}, {2, 1}});
  tell.never_began({1, 1}, "");
  tell.never_began({2, 1}, "");
  wait_for_store();
  EXPECT_EQ(started(), Strings{"3.1"});
  EXPECT_EQ(why(1), Reasons{Why::held});
  EXPECT_EQ(why(2), Reasons{Why::not_before});
  hold(1, false);
  EXPECT_EQ(started(), (Strings{"3.1", "1.1"}));
  run_exits({1, 1}, 0);
  advance(60s);
  EXPECT_EQ(started(), (Strings{"3.1", "1.1", "2.1"}));
}

TEST_F(QueueControlTest, ADelayIsCountedByTheClockThatDoesNotJump) {
  submit({.prompt = "x", .delay = 60s});
  submit({.prompt = "x", .not_before = clock.utc() + 60s});
  EXPECT_EQ(why(1), Reasons{Why::not_before});
  clock.set_utc(clock.utc() + 1h);
  advance(WakeTimes::between_looks);
  EXPECT_EQ(started(), Strings{"2.1"});
  advance(51s);
  EXPECT_EQ(started(), (Strings{"2.1", "1.1"}));
}

TEST_F(QueueControlTest, ADelayIsNotLongerAfterARestart) {
  submit({.prompt = "x", .delay = 60s});
  clock.set_utc(clock.utc() - 24h);
  begin();
  advance(59s);
  EXPECT_EQ(started(), Strings());
  advance(1s);
  EXPECT_EQ(started(), Strings{"1.1"});
}

TEST_F(QueueControlTest, AnEditCountsAtOnceAndAfterARestart) {
  pause(std::nullopt, true);
  submit({.prompt = "one", .key = "k"});
  submit({.prompt = "two"});
  EXPECT_EQ(edit(2, {.prompt = "zwei", .priority = 5, .group = "a", .labels = Labels{{"l", "1"}}}), 1);
  EXPECT_EQ(edit(1, {.delay = 5s, .after = std::vector<TaskId>{2}}), 1);
  EXPECT_EQ(edit(2, {.after = std::vector<TaskId>{1}}), -32602) << "a cycle";
  begin();
  EXPECT_EQ(task(2).prompt, "zwei");
  EXPECT_EQ(task(2).group, "a");
  EXPECT_EQ(why(1), (Reasons{Why::after, Why::not_before, Why::paused}));
  EXPECT_EQ(submit({.prompt = "one", .key = "k"}), 1) << "the key stands for what was asked for";
  EXPECT_EQ(edit(1, {.delay = 0s, .after = std::vector<TaskId>{}}), 1);
  pause(std::nullopt, false);
  EXPECT_EQ(started(), (Strings{"2.1", "1.1"}));
  EXPECT_EQ(runner.started.at(0).arguments.back(), "zwei");
  EXPECT_EQ(edit(1, {.priority = 1}), -32001);
}

TEST_F(QueueControlTest, TwoEditsAtOnceMakeNoCycle) {
  pause(std::nullopt, true);
  submit();
  submit();
  std::vector<int> answers;
  const auto note = [&](const tl::expected<Task, rpc::Error>& task) {
    answers.push_back(task ? 1 : task.error().code());
  };
  supervisor->edit(1, {.after = std::vector<TaskId>{2}}, note);
  supervisor->edit(2, {.after = std::vector<TaskId>{1}}, note);
  EXPECT_TRUE(turn_until([&] { return answers.size() == 2; }));
  EXPECT_EQ(answers, (std::vector<int>{1, -32602}));
}

TEST_F(QueueControlTest, ATaskMayComeAfterOneThatIsOnItsWayToTheDisk) {
  pause(std::nullopt, true);
  std::vector<std::int64_t> answers;
  const auto note = [&](const tl::expected<Accepted, rpc::Error>& accepted) {
    answers.push_back(accepted ? static_cast<std::int64_t>(accepted->id) : accepted.error().code());
  };
  supervisor->submit({.prompt = "x"}, note);
  supervisor->submit({.prompt = "x", .after = {1}}, note);
  supervisor->submit({.prompt = "x", .after = {2}}, note);
  supervisor->submit({.prompt = "x"}, note);
  supervisor->submit({.prompt = "x", .after = {9}}, note);
  EXPECT_TRUE(turn_until([&] { return answers.size() == 5; }));
  wait_for_store();
  std::ranges::sort(answers);
  EXPECT_EQ(answers, (std::vector<std::int64_t>{-32000, 1, 2, 3, 4}));
  EXPECT_EQ(why(3), (Reasons{Why::after, Why::paused}));
  const Reasons last = why(4);
  EXPECT_EQ(std::ranges::count(last, Why::after), 0);
}

TEST_F(QueueControlTest, ATaskThatComesAfterOneThatWasNotKeptIsRefused) {
  std::vector<int> answers;
  const auto note = [&](const tl::expected<Accepted, rpc::Error>& accepted) {
    answers.push_back(accepted ? 0 : accepted.error().code());
  };
  write_fault = SQLITE_FULL;
  supervisor->submit({.prompt = "x"}, note);
  supervisor->submit({.prompt = "x", .after = {1}}, note);
  EXPECT_TRUE(turn_until([&] { return answers.size() == 2; }));
  EXPECT_EQ(answers, (std::vector<int>{-32003, -32000}));
  write_fault = SQLITE_OK;
}

TEST_F(QueueControlTest, ARestartIsANewTaskWithTheSameParameters) {
  submit({.prompt = "x", .agent = "cat", .priority = 3, .key = "k", .group = "a", .delay = 1s});
  EXPECT_EQ(restart(1, false), 2);
  EXPECT_EQ(task(2).metadata.at("restartOf"), "task-1");
  EXPECT_EQ(task(2).group, "a");
  EXPECT_EQ(task(2).priority, 3);
  EXPECT_EQ(started(), Strings{"2.1"});
  EXPECT_EQ(restart(9, false), -32000);
}

TEST_F(QueueControlTest, ATaskThatIsRestartedInPlaceHasAllItsRetriesAgain) {
  submit({.prompt = "x", .retries = 1});
  run_exits({1, 1}, 1);
  advance(2s);
  EXPECT_EQ(restart(1, true), -32001);
  run_exits({1, 2}, 1);
  EXPECT_EQ(state(1), State::failed);
  EXPECT_EQ(restart(1, true), 1);
  EXPECT_EQ(started(), (Strings{"1.1", "1.2", "1.3"}));
  EXPECT_FALSE(task(1).result);
  run_exits({1, 3}, 1);
  EXPECT_EQ(state(1), State::queued);
  advance(2s);
  run_exits({1, 4}, 0);
  EXPECT_EQ(state(1), State::completed);
  EXPECT_EQ(supervisor->counts(), (StateCounts{0, 0, 1, 0, 0}));
}

TEST_F(QueueControlTest, ACancelOfATaskThatWasRestartedInPlaceWaitsForWhatIsLeftOfIt) {
  submit();
  run_exits({1, 1}, 0, false);
  EXPECT_EQ(restart(1, true), 1);
  EXPECT_EQ(why(1), Reasons{Why::leftovers});
  const auto answer = cancel(1);
  EXPECT_EQ(*answer, 1);
  EXPECT_EQ(state(1), State::queued);
  tell.gone({1, 1});
  wait_for_store();
  EXPECT_EQ(state(1), State::cancelled);
}

TEST_F(QueueControlTest, ATaskIsNotRestartedInPlaceIfNobodyKnowsWhatBecameOfAnotherBeforeIt) {
  submit();
  submit({.prompt = "x", .after = {1}});
  run_exits({1, 1}, 1);
  EXPECT_EQ(reason(2), Reason::dependency);
  EXPECT_EQ(restart(2, true), 2);
  EXPECT_EQ(reason(2), Reason::dependency) << "the other one has failed still";
  EXPECT_EQ(remove({1}), Strings{"task-1"});
  EXPECT_EQ(restart(2, true), -32000);
}

TEST_F(QueueControlTest, ATaskThatHasBegunIsPastWhatItComesAfter) {
  submit();
  submit({.prompt = "x", .retries = 1, .after = {1}});
  run_exits({1, 1}, 0);
  run_exits({2, 1}, 1);
  EXPECT_EQ(restart(1, true), 1);
  run_exits({1, 2}, 1);
  EXPECT_EQ(state(1), State::failed);
  begin();
  EXPECT_EQ(state(2), State::queued);
}

TEST_F(QueueControlTest, WhatHasNotBegunWaitsAgainForATaskThatIsRestarted) {
  submit();
  submit({.prompt = "x", .after = {1}});
  hold(2, true);
  run_exits({1, 1}, 0);
  EXPECT_EQ(why(2), Reasons{Why::held});
  EXPECT_EQ(restart(1, true), 1);
  EXPECT_EQ(why(2), (Reasons{Why::held, Why::after}));
  EXPECT_EQ(edit(1, {.after = std::vector<TaskId>{2}}), -32001) << "it has been started";
  begin({{1, 2}});
  EXPECT_EQ(why(2), (Reasons{Why::held, Why::after}));
  run_exits({1, 2}, 1);
  EXPECT_EQ(reason(2), Reason::dependency);
}

TEST_F(QueueControlTest, WhatComesWhileATaskIsBeingRestartedWaitsForIt) {
  submit();
  run_exits({1, 1}, 0);
  supervisor->restart_in_place(1, [](const tl::expected<Accepted, rpc::Error>& again) { EXPECT_TRUE(again); });
  store->after_changes([this] {
    EXPECT_EQ(state(1), State::completed) << "the restart is on its way to the disk";
    supervisor->submit({.prompt = "x", .after = {1}},
                       [](const tl::expected<Accepted, rpc::Error>& accepted) { EXPECT_TRUE(accepted); });
  });
  wait_for_store();
  EXPECT_EQ(started(), (Strings{"1.1", "1.2"}));
  EXPECT_EQ(why(2), Reasons{Why::after});
  run_exits({1, 2}, 0);
  EXPECT_EQ(started(), (Strings{"1.1", "1.2", "2.1"}));
}

TEST_F(QueueControlTest, TasksThatWereRestartedMakeNoCycleWithAnEdit) {
  submit();
  submit({.prompt = "x", .after = {1}});
  run_exits({1, 1}, 0);
  run_exits({2, 1}, 0);
  pause(std::nullopt, true);
  EXPECT_EQ(restart(1, true), 1);
  EXPECT_EQ(edit(1, {.after = std::vector<TaskId>{2}}), 1) << "the other one has ended";
  EXPECT_EQ(restart(2, true), 2);
  pause(std::nullopt, false);
  EXPECT_EQ(started().back(), "2.2") << "it had begun, and was past the other one";
  begin({{2, 2}});
  run_exits({2, 2}, 0);
  EXPECT_EQ(started(), Strings{"1.2"});
}

TEST_F(QueueControlTest, EditsAndARestartAtOnceMakeNoCycle) {
  for (int i = 0; i < 3; ++i) submit({.prompt = "x", .delay = 1h});
  submit({.prompt = "x", .after = {1}});
  *cancel(4);
  std::vector<int> answers;
  const auto note = [&](const tl::expected<Task, rpc::Error>& task) {
    answers.push_back(task ? 1 : task.error().code());
  };
  supervisor->edit(2, {.priority = 1}, note);
  supervisor->edit(3, {.priority = 1}, note);
  supervisor->edit(1, {.after = std::vector<TaskId>{4}}, note);
  supervisor->restart_in_place(4, [](const tl::expected<Accepted, rpc::Error>&) {});
  EXPECT_TRUE(turn_until([&] { return answers.size() == 3; }));
  wait_for_store();
  EXPECT_LT(answers.back(), 0);
  EXPECT_EQ(why(4), Reasons{Why::after});
  EXPECT_EQ(why(1), Reasons{Why::not_before});
}

TEST_F(QueueControlTest, WhatWaitsTwiceForATaskNeedsNotWaitForItAtAll) {
  submit();
  run_exits({1, 1}, 0);
  pause(std::nullopt, true);
  submit();
  submit();
  const auto nobody = [](const tl::expected<Task, rpc::Error>&) {};
  supervisor->edit(2, {.priority = 1}, nobody);
  supervisor->restart_in_place(1, [](const tl::expected<Accepted, rpc::Error>&) {});
  supervisor->edit(3, {.after = std::vector<TaskId>{1}}, nobody);
  wait_for_store();
  EXPECT_EQ(edit(3, {.after = std::vector<TaskId>{}}), 1);
  EXPECT_EQ(why(3), (Reasons{Why::paused, Why::turn}));
}

TEST_F(QueueControlTest, AnEditCountsThoughWhatTheTaskCameAfterIsCancelledAtOnce) {
  pause(std::nullopt, true);
  for (int i = 0; i < 2; ++i) submit();
  for (int i = 0; i < 2; ++i) submit({.prompt = "x", .after = {1, 2}});
  int edits = 0;
  const auto note = [&](const tl::expected<Task, rpc::Error>& task) { edits += task ? 1 : 100; };
  supervisor->cancel(1, [](const tl::expected<void, rpc::Error>&) {});
  supervisor->edit(3, {.after = std::vector<TaskId>{2}}, note);
  wait_for_store();
  EXPECT_EQ(edits, 1);
  EXPECT_EQ(state(3), State::queued);
  EXPECT_EQ(why(3), (Reasons{Why::after, Why::paused}));
  EXPECT_EQ(reason(4), Reason::dependency);
  supervisor->cancel(2, [](const tl::expected<void, rpc::Error>&) {});
  supervisor->edit(3, {.priority = 7}, note);
  wait_for_store();
  EXPECT_EQ(edits, 2);
  EXPECT_EQ(reason(3), Reason::dependency) << "it comes after no other task by that";
}

TEST_F(QueueControlTest, ACancelThatWasAnsweredIsOneThoughAnotherTaskFails) {
  settings.max_running = 3;
  supervisor->change_settings(settings);
  submit({.prompt = "x", .retries = 1});
  submit();
  run_started({2, 1});
  run_exits({1, 1}, 1, false);
  EXPECT_EQ(edit(1, {.after = std::vector<TaskId>{2}}), 1);
  EXPECT_EQ(*cancel(1), 1);
  run_exits({2, 1}, 1);
  begin({{1, 1}});
  tell.gone({1, 1});
  wait_for_store();
  EXPECT_EQ(state(1), State::cancelled);
}

TEST_F(QueueControlTest, ARestartNeedsToKnowWhatBecameOfOthersBeforeIt) {
  submit();
  submit({.prompt = "x", .after = {1}});
  run_exits({1, 1}, 1);
  EXPECT_EQ(remove({1}), Strings{"task-1"});
  EXPECT_EQ(restart(2, false), -32000);
}

TEST_F(QueueControlTest, ATaskThatHasEndedIsNotHeld) {
  submit();
  for (const TaskId id : {2U, 3U}) {
    submit({.prompt = "x", .after = {1}});
    EXPECT_EQ(hold(id, true), 1);
  }
  EXPECT_TRUE(task(2).held);
  EXPECT_EQ(*cancel(2), 1);
  run_exits({1, 1}, 1);
  EXPECT_EQ(state(2), State::cancelled);
  EXPECT_EQ(state(3), State::failed);
  for (const TaskId id : {2U, 3U}) EXPECT_FALSE(task(id).held) << id;
}

TEST_F(QueueControlTest, AnEditOfSomethingElseLeavesADelayAlone) {
  submit({.prompt = "x", .delay = 60s});
  clock.set_utc(clock.utc() - 30s);
  EXPECT_EQ(edit(1, {.priority = 3}), 1);
  advance(60s);
  EXPECT_EQ(started(), Strings{"1.1"});
}

TEST_F(QueueControlTest, AnEditShowsTheRetriesThatTheTaskWasAcceptedWith) {
  settings.agents["model"].retries = 2;
  supervisor->change_settings(settings);
  pause(std::nullopt, true);
  submit({.prompt = "x", .agent = "model"});
  settings.agents["model"].retries = 7;
  supervisor->change_settings(settings);
  EXPECT_EQ(edit(1, {.priority = 3}), 1);
  EXPECT_EQ(task(1).metadata.at("retries"), 2);
}

TEST_F(QueueControlTest, ATaskShowsTheTimeLimitOfItsSubmitOnlySinceThatOfItsAgentMayChange) {
  settings.agents["model"].time_limit = 10min;
  supervisor->change_settings(settings);
  pause(std::nullopt, true);
  submit({.prompt = "x", .agent = "model"});
  submit({.prompt = "x", .agent = "model", .time_limit = 2s});
  settings.agents["model"].time_limit = 60min;
  supervisor->change_settings(settings);
  for (const TaskId id : {1U, 2U}) EXPECT_EQ(edit(id, {.priority = 3}), 1);
  pause(std::nullopt, false);
  EXPECT_FALSE(task(1).metadata.contains("timeoutSeconds"));
  EXPECT_EQ(runner.started.at(0).time_limit, 60min);
  EXPECT_EQ(task(2).metadata.at("timeoutSeconds").to_number<double>(), 2);
  EXPECT_EQ(runner.started.at(1).time_limit, 2s);
}

TEST_F(QueueControlTest, EndedTasksAreRemovedUnlessOthersComeAfterThem) {
  for (int i = 0; i < 2; ++i) submit();
  run_exits({1, 1}, 0);
  run_exits({2, 1}, 0);
  submit();
  submit({.prompt = "x", .after = {1, 3}});
  EXPECT_EQ(remove({1, 2, 3, 9}), (Strings{"task-2", "task-1 needed", "task-3 not-ended", "task-9 unknown"}));
  run_exits({3, 1}, 0);
  run_exits({4, 1}, 0);
  EXPECT_EQ(remove({1, 3, 4}), (Strings{"task-1", "task-3", "task-4"}));
  EXPECT_EQ(supervisor->counts(), (StateCounts{0, 0, 0, 0, 0}));
  begin();
  EXPECT_EQ(submit(), 5) << "an id is never used again";
}

TEST_F(QueueControlTest, AUsageLimitHoldsTheAgentAndCountsAgainstNoRetries) {
  for (int i = 0; i < 3; ++i) submit({.prompt = "x", .agent = "model"});
  take_events();
  run_exits({1, 1}, 75);
  EXPECT_EQ(take_events(), (Strings{"agentHeld task-0", "taskQueued task-1"}));
  EXPECT_EQ(why(1), Reasons{Why::agent_held});
  run_exits({2, 1}, 75);
  submit();
  EXPECT_EQ(started(), (Strings{"1.1", "2.1", "4.1"}));
  run_exits({4, 1}, 0);
  begin();
  EXPECT_EQ(started(), Strings());
  EXPECT_EQ(state(1), State::queued);
  advance(15min);
  EXPECT_EQ(started(), (Strings{"1.2", "2.2"}));
  EXPECT_EQ(take_events().back(), "agentReleased task-0");
  run_exits({1, 2}, 1);
  EXPECT_EQ(state(1), State::failed) << "it had no retries";
  EXPECT_EQ(task(1).progress.attempts, 2U);
  EXPECT_EQ(task(1).progress.spared, 1U);
}

TEST_F(QueueControlTest, AnAgentIsReleasedByHand) {
  submit({.prompt = "x", .agent = "model"});
  run_exits({1, 1}, 75);
  EXPECT_EQ(release_agent("model"), 1);
  EXPECT_EQ(started(), (Strings{"1.1", "1.2"}));
  EXPECT_EQ(release_agent("model"), 0);
  EXPECT_EQ(std::ranges::count(events, "agentReleased task-0"), 1);
  begin({{1, 2}});
  EXPECT_FALSE(supervisor->gate().is_held("model"));
}

TEST_F(QueueControlTest, TwoWhoReleaseAnAgentAtOnceReleaseItOnce) {
  submit({.prompt = "x", .agent = "model"});
  run_exits({1, 1}, 75);
  std::vector<bool> answers;
  const auto note = [&](const tl::expected<bool, rpc::Error>& changed) { answers.push_back(changed.value()); };
  supervisor->gate().release("model", note);
  supervisor->gate().release("model", note);
  advance(15min);  // its time is over as well
  EXPECT_EQ(answers, (std::vector<bool>{true, false}));
  EXPECT_EQ(std::ranges::count(events, "agentReleased task-0"), 1);
}

TEST_F(QueueControlTest, ALimitThatWasMetWhileNoDaemonRanIsCountedFromThen) {
  submit({.prompt = "x", .agent = "model"});
  run_started({1, 1});
  const base::UtcTime ended_at = clock.utc();
  begin({{1, 1}});
  clock.advance(10min);
  tell.ended({1, 1}, {.kind = Outcome::Kind::exited, .code = 75, .ended_at = ended_at});
  tell.gone({1, 1});
  wait_for_store();
  EXPECT_EQ(why(1), Reasons{Why::agent_held});
  advance(5min);
  EXPECT_EQ(started(), Strings{"1.2"});
}

TEST_F(QueueControlTest, ASettingThatChangesWhileAPauseIsWrittenHasTheLastWord) {
  settings.groups["b"].paused = true;
  supervisor->change_settings(settings);
  wait_for_store();
  int answer = -1;
  supervisor->gate().set_paused(
      "b", false, [&](const tl::expected<bool, rpc::Error>& changed) { answer = static_cast<int>(changed.value()); });
  supervisor->gate().set_paused("b", true, [](const tl::expected<bool, rpc::Error>&) {});
  settings.groups["b"].paused = false;
  supervisor->change_settings(settings);
  wait_for_store();
  EXPECT_EQ(answer, 1);
  EXPECT_FALSE(supervisor->gate().is_paused("b"));
  begin();
  EXPECT_FALSE(supervisor->gate().is_paused("b"));
}

TEST_F(QueueControlTest, APauseByTheSettingsCanBeEndedThoughTheDiskWasFull) {
  fail_writes(true);
  settings.groups["b"].paused = true;
  supervisor->change_settings(settings);
  EXPECT_EQ(pause("b", false), -32003);
  EXPECT_TRUE(supervisor->gate().is_paused("b"));
  fail_writes(false);
  EXPECT_TRUE(turn_until([&] {
    clock.advance(1s);
    return store->is_healthy();
  }));
  wait_for_store();
  EXPECT_EQ(pause("b", false), 1);
  EXPECT_FALSE(supervisor->gate().is_paused("b"));
}

TEST_F(QueueControlTest, ALimitThatIsMetWhileTheAgentIsReleasedHoldsItAgain) {
  for (int i = 0; i < 2; ++i) submit({.prompt = "x", .agent = "model"});
  run_exits({1, 1}, 75);
  supervisor->gate().release("model", [](const tl::expected<bool, rpc::Error>&) {});
  run_exits({2, 1}, 75);
  EXPECT_TRUE(supervisor->gate().is_held("model"));
  begin();
  EXPECT_TRUE(supervisor->gate().is_held("model"));
}

TEST_F(QueueControlTest, AClockThatWasSetBackHoldsNoAgentLonger) {
  submit({.prompt = "x", .agent = "model"});
  run_exits({1, 1}, 75);
  clock.set_utc(clock.utc() - 48h);
  begin();
  advance(15min);
  EXPECT_EQ(started(), Strings{"1.2"});
}

TEST_F(QueueControlTest, ADrainWaitsForWhatRuns) {
  submit();
  bool stopped = false;
  supervisor->stop(
      false, [&] { stopped = true; }, std::nullopt);
  advance(24h);
  EXPECT_FALSE(stopped);
  EXPECT_TRUE(runner.cancelled.empty());
  supervisor->stop(false, [&] { stopped = true; });
  advance(15s);
  EXPECT_EQ(runner.cancelled.size(), 1U);
  run_exits({1, 1}, 0);
  EXPECT_TRUE(stopped);
}

}  // namespace
}  // namespace duet::task
