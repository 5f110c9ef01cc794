// Rules whose last task still runs, and rules that are away for a while.

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "automation/engine_fixture_test.h"

namespace duet::automation {
namespace {

using Names = std::vector<std::string>;

Rule rule_when_busy(WhenBusy when, std::chrono::milliseconds cooldown = 0s) {
  Rule rule = on_save("busy");
  rule.when_busy = when;
  rule.cooldown = cooldown;
  return rule;
}

bool is_told_to_end(EngineSetting& s, task::TaskId id) { return s.supervisor->find(id).value().progress.cancelling; }

std::optional<rpc::Error> approve(EngineSetting& s, std::string_view id) {
  std::optional<rpc::Error> result = rpc::internal_error();
  s.engine->approve(id, [&](const std::optional<rpc::Error>& error) { result = error; });
  s.turn();
  return result;
}

// ---- settings that are read again ----

struct EngineAway : testing::TestWithParam<bool> {
  /// As when a changed settings file waits until it is trusted. The daemon may be another by then.
  void be_away(const Rule& back) {
    s.configure({});
    if (GetParam()) s.restart();
    s.configure({back});
  }
  EngineSetting s;
};
INSTANTIATE_TEST_SUITE_P(AcrossARestart, EngineAway, testing::Bool());

TEST_P(EngineAway, ARuleThatComesBackUnchangedGoesOnWhereItWas) {
  const Rule rule = rule_when_busy(WhenBusy::each, 30s);
  s.configure({rule});
  s.save_file("a");
  s.save_file("b");
  be_away(rule);
  s.save_file("c");
  EXPECT_EQ(s.recent(), (Names{"busy held cooldown", "busy fired"}));
  s.advance(30s);
  ASSERT_EQ(s.submitted().size(), 2U);
  EXPECT_EQ(s.submitted()[1].env.at("DUET_PATHS"), "b\nc\n");
}

TEST_P(EngineAway, ItsTasksAreStillItsOwn) {
  s.configure({rule_when_busy(WhenBusy::skip)});
  s.save_file("a");
  s.start_task(1);
  be_away(rule_when_busy(WhenBusy::skip));
  s.save_file("b");
  EXPECT_EQ(s.recent(), (Names{"busy held busy", "busy fired"}));
  s.end_task(1);
  s.advance(1s);
  s.save_file("c");
  EXPECT_EQ(s.submitted().size(), 2U);
}

TEST_P(EngineAway, ARuleThatComesBackChangedHasItsPaceAndNothingThatWaits) {
  Rule rule = rule_when_busy(WhenBusy::each, 30s);
  s.configure({rule});
  s.save_file("a");
  s.save_file("b");
  rule.trigger.pattern = "c";
  be_away(rule);
  EXPECT_EQ(s.recent(), (Names{"busy held changed", "busy fired"}));
  s.save_file("c");
  EXPECT_EQ(s.recent(), (Names{"busy held cooldown", "busy held changed", "busy fired"}));
  s.advance(30s);
  ASSERT_EQ(s.submitted().size(), 2U);
  EXPECT_EQ(s.submitted()[1].env.at("DUET_PATHS"), "c\n");
}

TEST_P(EngineAway, WhatWaitedWhenAllWasSwitchedOffNeverHappens) {
  const Rule rule = rule_when_busy(WhenBusy::each, 30s);
  const auto nobody = [](const std::optional<rpc::Error>&) {};
  s.configure({rule});
  s.save_file("a");
  s.save_file("b");
  s.configure({});
  s.engine->enable(std::nullopt, false, nobody);
  s.turn();
  if (GetParam()) s.restart();
  s.configure({rule});
  s.engine->enable(std::nullopt, true, nobody);
  s.advance(60s);
  EXPECT_EQ(s.submitted().size(), 1U);
  EXPECT_EQ(s.recent(), (Names{"busy held off", "busy fired"}));
}

TEST(EngineBusy, AReloadKeepsAChainThatWasStopped) {
  EngineSetting s;
  s.watch.max_chain = 1;
  s.configure({on_save("loop")});
  s.save_file("a");
  s.run_task(1, "a");
  s.wait_for_store();
  ASSERT_EQ(s.engine->problems().size(), 1U);
  s.configure({on_save("loop"), on_save("new", "new")});
  EXPECT_EQ(s.engine->problems().size(), 1U);
  s.engine->fire_now("loop", {.path = "a"}, [](const auto&) {});
  EXPECT_EQ(s.engine->problems().size(), 0U) << "it fires for another reason";
}

// ---- tasks that are known after a restart ----

TEST(EngineBusy, AManyTimesHeldRuleKnowsItsTaskAfterARestart) {
  EngineSetting s;
  s.configure({rule_when_busy(WhenBusy::skip)});
  s.save_file("a");
  for (std::size_t i = 0; i <= Firings::most_kept; ++i) s.save_file("a");  // which push its firing out of the list
  s.restart();
  s.save_file("a");
  EXPECT_EQ(s.submitted().size(), 1U);
  s.run_task(1);
  s.advance(1s);
  s.save_file("a");
  EXPECT_EQ(s.submitted().size(), 2U);
}

void restart_in_place(EngineSetting& s, task::TaskId id) {
  s.supervisor->restart_in_place(id, [](const auto& accepted) { EXPECT_TRUE(accepted); });
  s.turn();
}

TEST(EngineBusy, ATaskThatIsRestartedInPlaceIsTheRulesAgain) {
  EngineSetting s;
  s.configure({rule_when_busy(WhenBusy::skip)});
  s.save_file("a");
  s.run_task(1, "", 1);
  s.advance(1s);
  restart_in_place(s, 1);
  s.save_file("b");
  EXPECT_EQ(s.recent(), (Names{"busy held busy", "busy fired"}));
}

TEST(EngineBusy, ATaskThatIsRestartedInPlaceCausesWhatItDoes) {
  EngineSetting s;
  s.configure({rule_when_busy(WhenBusy::each)});
  s.save_file("a");
  s.run_task(1, "", 1);
  s.advance(1s);
  restart_in_place(s, 1);
  s.supervisor->keeper_events().started({1, 2}, {.pid = 100, .at = s.clock.utc()});
  s.save_file("b");
  ASSERT_EQ(s.submitted().size(), 2U);
  EXPECT_EQ(s.submitted()[1].metadata.at("automation").at("cause").as_string(), "task-1");
}

TEST(EngineBusy, ATaskThatWaitsForItsNextAttemptChangesNoFiles) {
  EngineSetting s;
  s.tasks.agents["claude"].retries = 1;
  s.supervisor->change_settings(s.tasks);
  s.configure({rule_when_busy(WhenBusy::each)});
  s.save_file("a");
  s.run_task(1, "", 1);
  ASSERT_EQ(s.supervisor->find(1).value().progress.state, task::State::queued);
  s.advance(500ms);
  s.save_file("b");
  ASSERT_EQ(s.submitted().size(), 2U);
  EXPECT_EQ(s.submitted()[1].metadata.at("automation").at("depth").to_number<int>(), 1);
}

TEST(EngineBusy, ATaskThatEndedWhileThereWereNoRulesCausesNothingLater) {
  EngineSetting s;
  const Rule rule = rule_when_busy(WhenBusy::each);
  s.configure({rule});
  s.save_file("a");
  s.start_task(1);
  s.configure({});
  s.end_task(1);
  s.configure({rule});
  s.advance(1min);
  s.save_file("b");
  ASSERT_EQ(s.submitted().size(), 2U);
  EXPECT_EQ(s.submitted()[1].metadata.at("automation").at("depth").to_number<int>(), 1);
}

TEST(EngineBusy, ATaskThatOnlyClaimsToBeOfARuleHarmsNothing) {
  EngineSetting s;
  s.configure({rule_when_busy(WhenBusy::skip)});
  for (const boost::json::value& claim : {boost::json::value(1), boost::json::value(boost::json::object()),
                                          boost::json::value{{"ruleId", 3}, {"depth", -1}, {"cause", nullptr}}}) {
    s.supervisor->submit({.prompt = "x", .agent = "shell", .metadata = {{"automation", claim}}}, [](const auto&) {});
  }
  s.turn();
  s.run_task(1);
  s.run_task(2);
  s.start_task(3);
  s.restart();
  s.end_task(3);
  s.save_file("a");
  EXPECT_EQ(s.recent(), Names{"busy fired"});
}

// ---- starting over ----

TEST(EngineBusy, WhatMayNotFireEndsNoTask) {
  EngineSetting s;
  Rule often = rule_when_busy(WhenBusy::restart);
  often.trailing = false;
  s.configure({often});
  for (task::TaskId id = 1; id <= Pace::firings_a_minute; ++id) {
    s.save_file("a");
    id < Pace::firings_a_minute ? s.run_task(id) : s.start_task(id);
    s.advance(300ms);
  }
  s.save_file("a");
  EXPECT_EQ(s.recent()[0], "busy held rate limit");
  EXPECT_FALSE(is_told_to_end(s, Pace::firings_a_minute));

  Rule once = rule_when_busy(WhenBusy::restart, 1h);
  once.trailing = false;
  s.configure({once});
  s.save_file("a");
  EXPECT_EQ(s.recent()[0], "busy held cooldown");
  EXPECT_FALSE(is_told_to_end(s, Pace::firings_a_minute));
}

TEST(EngineBusy, ATaskIsEndedWhenTheCooldownIsOver) {
  EngineSetting s;
  s.configure({rule_when_busy(WhenBusy::restart, 30s)});
  s.save_file("a");
  s.start_task(1);
  s.save_file("b");
  EXPECT_EQ(s.recent(), (Names{"busy held cooldown", "busy fired"}));
  EXPECT_FALSE(is_told_to_end(s, 1));
  s.advance(30s);
  EXPECT_TRUE(is_told_to_end(s, 1));
  s.end_task(1);
  ASSERT_EQ(s.submitted().size(), 2U);
  EXPECT_EQ(s.submitted()[1].prompt, "Fix b");
}

TEST(EngineBusy, ATaskThatIsOnItsWayToTheQueueIsEndedToo) {
  EngineSetting s;
  Rule rule{.id = "busy",
            .trigger = {.source = "task", .type = "task.completed"},
            .conditions = {{"payload.agent", Operator::eq, "shell"}},
            .action = {.agent = "claude", .prompt = "about {{payload.taskId}}"},
            .when_busy = WhenBusy::restart};
  s.configure({rule});
  s.tasks.max_running = 2;
  s.supervisor->change_settings(s.tasks);
  s.submit();
  s.submit();
  s.start_task(1);
  s.start_task(2);
  s.tasks.max_running = 0;
  s.supervisor->change_settings(s.tasks);
  for (task::TaskId id = 1; id <= 2; ++id) {  // in one commit
    task::Outcome outcome{.kind = task::Outcome::Kind::exited};
    outcome.started = task::Started{.pid = 100, .at = s.clock.utc()};
    outcome.ended_at = s.clock.utc();
    s.supervisor->keeper_events().ended({id, 1}, outcome);
  }
  s.turn();
  s.turn();
  ASSERT_EQ(s.submitted().size(), 4U);
  EXPECT_EQ(s.supervisor->find(3).value().progress.state, task::State::cancelled);
  EXPECT_EQ(s.submitted()[3].prompt, "about task-2");
}

// ---- approval ----

struct BusyApproval : testing::Test {
  /// Two firings wait for approval; the task of the first is let go, and runs.
  void begin(WhenBusy when) {
    Rule careful = rule_when_busy(when);
    careful.requires_approval = true;
    s.configure({careful});
    s.save_file("a");
    s.save_file("b");
    EXPECT_FALSE(approve(s, "firing-1"));
    s.start_task(1);
  }
  EngineSetting s;
};

TEST_F(BusyApproval, WaitsForTheTask) {
  begin(WhenBusy::queue);
  EXPECT_FALSE(approve(s, "firing-2"));
  EXPECT_EQ(s.submitted().size(), 1U);
  EXPECT_EQ(s.newest().at("reason").as_string(), "approved: busy: a task of the rule has not ended; it happens then");
  s.restart();
  s.advance(30s);
  EXPECT_EQ(s.submitted().size(), 1U);
  s.end_task(1);
  EXPECT_EQ(s.submitted().size(), 2U);
  EXPECT_EQ(s.recent(), (Names{"busy fired", "busy fired"}));
}

TEST_F(BusyApproval, IsRefusedToARuleThatSkips) {
  begin(WhenBusy::skip);
  const std::optional<rpc::Error> refused = approve(s, "firing-2");
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->message(),
            "Subsystem unavailable: a task of rule busy has not ended: approve again when it has, or deny");
  EXPECT_EQ(s.recent(), (Names{"busy held approval", "busy fired"}));
  s.end_task(1);
  EXPECT_FALSE(approve(s, "firing-2"));
  EXPECT_EQ(s.submitted().size(), 2U);
}

TEST_F(BusyApproval, EndsTheTaskOfARuleThatStartsOver) {
  begin(WhenBusy::restart);
  s.save_file("c");
  EXPECT_EQ(s.recent()[0], "busy held approval") << "it is asked for at once";
  EXPECT_FALSE(is_told_to_end(s, 1));
  EXPECT_FALSE(approve(s, "firing-3"));
  EXPECT_TRUE(is_told_to_end(s, 1));
  EXPECT_EQ(s.submitted().size(), 1U);
  s.end_task(1);
  ASSERT_EQ(s.submitted().size(), 2U);
  EXPECT_EQ(s.submitted()[1].prompt, "Fix c");
}

// ---- names ----

TEST(EnginePending, ANameThatIsNotUtf8IsNotDamagedWhileItWaits) {
  EngineSetting s;
  s.configure({rule_when_busy(WhenBusy::queue)});
  s.save_file("a");
  s.save_file("b\xff\xc3");
  s.save_file("c");
  s.restart();
  s.run_task(1);
  ASSERT_EQ(s.submitted().size(), 2U);
  EXPECT_EQ(s.submitted()[1].env.at("DUET_PATH"), "b\xff\xc3");
  EXPECT_EQ(s.submitted()[1].env.at("DUET_PATHS"), "b\xff\xc3\nc\n");
}

}  // namespace
}  // namespace duet::automation
