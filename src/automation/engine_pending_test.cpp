#include <signal.h>

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "automation/engine_fixture_test.h"

namespace duet::automation {
namespace {

using Names = std::vector<std::string>;

Rule slow_rule(base::Duration cooldown = 30s) {
  Rule rule = on_save("slow");
  rule.cooldown = std::chrono::duration_cast<std::chrono::milliseconds>(cooldown);
  return rule;
}

Rule busy_rule(WhenBusy when) {
  Rule rule = on_save("busy");
  rule.when_busy = when;
  return rule;
}

TEST(EnginePending, WhatACooldownHoldsBackHappensOnceAtItsEnd) {
  EngineSetting s;
  s.configure({slow_rule()});
  for (const char* name : {"a", "b", "c", "b"}) s.save_file(name);
  EXPECT_EQ(s.recent(), (Names{"slow held cooldown", "slow fired"}));
  s.advance(30s);
  EXPECT_EQ(s.recent(), (Names{"slow fired", "slow fired"}));
  ASSERT_EQ(s.submitted().size(), 2U);
  EXPECT_EQ(s.submitted()[1].prompt, "Fix b") << "the first of them";
  EXPECT_EQ(s.submitted()[1].env.at("DUET_PATHS"), "b\nc\n");
  EXPECT_EQ(s.submitted()[1].env.at("DUET_PATHS_0"), "b\\0000c\\0000");
  EXPECT_EQ(s.submitted()[1].env.at("DUET_COUNT"), "3");
  s.advance(1h);
  EXPECT_EQ(s.submitted().size(), 2U);
}

TEST(EnginePending, WhatWaitsSurvivesACrash) {
  EngineSetting s;
  s.configure({slow_rule()});
  s.save_file("a");
  s.save_file("b");
  s.wait_for_store();
  s.kill_and_restart();
  EXPECT_EQ(s.recent(), (Names{"slow held cooldown", "slow fired"}));
  s.advance(30s);
  ASSERT_EQ(s.submitted().size(), 2U);
  EXPECT_EQ(s.submitted()[1].prompt, "Fix b");
  s.kill_and_restart();
  s.advance(1h);
  EXPECT_EQ(s.submitted().size(), 2U) << "once";
}

TEST(EnginePending, ARuleThatIsSwitchedOffForgetsWhatWaited) {
  EngineSetting s;
  s.configure({slow_rule()});
  s.save_file("a");
  s.save_file("b");
  s.engine->enable("slow", false, [](const auto&) {});
  s.engine->enable("slow", true, [](const auto&) {});
  s.advance(1min);
  EXPECT_EQ(s.submitted().size(), 1U);
  EXPECT_EQ(s.recent(), (Names{"slow held off", "slow fired"}));
}

TEST(EnginePending, WhileATaskOfTheRuleRunsOneFiringWaits) {
  EngineSetting s;
  s.configure({busy_rule(WhenBusy::queue)});
  s.save_file("a");
  s.start_task(1);
  s.save_file("b");
  s.save_file("c");
  EXPECT_EQ(s.recent(), (Names{"busy held busy", "busy fired"}));
  EXPECT_EQ(s.submitted().size(), 1U);
  s.end_task(1, 1);
  ASSERT_EQ(s.submitted().size(), 2U);
  EXPECT_EQ(s.submitted()[1].env.at("DUET_PATHS"), "b\nc\n");
  EXPECT_EQ(s.recent(), (Names{"busy fired", "busy fired"}));
}

TEST(EnginePending, ATaskThatHasNotEndedKeepsTheRuleBusyAcrossARestart) {
  EngineSetting s;
  s.configure({busy_rule(WhenBusy::queue)});
  s.save_file("a");
  s.start_task(1);
  s.save_file("b");
  s.restart();
  s.save_file("c");
  EXPECT_EQ(s.submitted().size(), 1U);
  s.end_task(1);
  ASSERT_EQ(s.submitted().size(), 2U);
  EXPECT_EQ(s.submitted()[1].env.at("DUET_PATHS"), "b\nc\n");
}

TEST(EnginePending, ABusyRuleMaySkip) {
  EngineSetting s;
  s.configure({busy_rule(WhenBusy::skip)});
  s.save_file("a");
  s.save_file("b");
  s.run_task(1);
  s.advance(1s);
  EXPECT_EQ(s.submitted().size(), 1U);
  s.save_file("c");
  EXPECT_EQ(s.recent(), (Names{"busy fired", "busy held busy", "busy fired"}));
}

TEST(EnginePending, ABusyRuleMayStartOver) {
  EngineSetting s;
  s.configure({busy_rule(WhenBusy::restart)});
  s.save_file("a");
  s.start_task(1);
  s.save_file("b");
  EXPECT_EQ(s.submitted().size(), 1U) << "the task is told to end";
  s.end_task(1);
  EXPECT_EQ(s.supervisor->find(1).value().progress.state, task::State::cancelled);
  ASSERT_EQ(s.submitted().size(), 2U);
  EXPECT_EQ(s.submitted()[1].prompt, "Fix b");
}

TEST(EnginePending, RulesThatWakeEachOtherThroughFilesAreStoppedWithTheirLinks) {
  EngineSetting s;
  std::vector<std::string> stopped;
  s.on_event = [&](const task::Event& event) {
    if (event.kind == "chainStopped") stopped.push_back(event.params);
  };
  s.watch.max_chain = 4;
  s.configure({on_save("ping", "a"), on_save("pong", "b")});
  s.save_file("a");
  for (task::TaskId id = 1; id <= s.submitted().size() && id < 20; ++id) {
    s.run_task(id, id % 2 == 1 ? "b" : "a");
    s.wait_for_store();
  }
  EXPECT_EQ(s.submitted().size(), 4U);
  EXPECT_EQ(s.recent()[0], "ping held chain limit");
  EXPECT_EQ(rpc::to_text(s.newest().at("links")),
            R"([{"ruleId":"ping","taskId":"task-1"},{"ruleId":"pong","taskId":"task-2"},)"
            R"({"ruleId":"ping","taskId":"task-3"},{"ruleId":"pong","taskId":"task-4"}])");
  ASSERT_EQ(stopped.size(), 1U);
  ASSERT_EQ(s.engine->problems().size(), 1U);
  s.advance(1min);
  s.save_file("a");
  EXPECT_EQ(s.engine->problems().size(), 0U) << "somebody else's change starts anew";
}

// ---- questions ----

TEST(EngineQuestions, TellWhatARuleWouldDoAndDoNothing) {
  EngineSetting s;
  Rule rule = on_save("tests", "src/*.c");
  rule.conditions = {{"payload.path", Operator::matches, "_test"}};
  s.configure({rule});
  const boost::json::object yes = s.engine->test("tests", {.path = "src/a_test.c"});
  EXPECT_TRUE(yes.at("fires").as_bool());
  EXPECT_EQ(rpc::to_text(yes.at("would")), R"({"action":"agent","prompt":"Fix src/a_test.c","agent":"claude"})");
  const boost::json::object no = s.engine->test("tests", {.path = "src/a.c"});
  EXPECT_FALSE(no.at("fires").as_bool());
  EXPECT_EQ(rpc::to_text(no.at("conditions")),
            R"([{"asks":"trigger.source watch","holds":true},{"asks":"trigger.pattern src/*.c","holds":true},)"
            R"({"asks":"payload.path matches _test","holds":false}])");
  EXPECT_THROW(s.engine->test("tests", {.task = 1}), rpc::Error);
  EXPECT_THROW(s.engine->test("other", {}), rpc::Error);
  EXPECT_EQ(s.submitted().size(), 0U);
  s.engine->enable("tests", false, [](const auto&) {});
  EXPECT_EQ(s.engine->test("tests", {.path = "src/a_test.c"}).at("hindrance").as_string(), "the rule is off");
}

TEST(EngineQuestions, OfATaskKnowItsSignalAndItsChain) {
  EngineSetting s;
  s.watch.max_chain = 1;
  s.configure({{.id = "again", .trigger = {.type = "task.failed"}, .action = {.prompt = "again"}}});
  s.submit();
  s.start_task(1);
  task::Outcome killed{.kind = task::Outcome::Kind::signalled};
  killed.signal = SIGKILL;
  killed.started = task::Started{.pid = 100, .at = s.clock.utc()};
  killed.ended_at = s.clock.utc();
  s.supervisor->keeper_events().ended({1, 1}, killed);
  s.supervisor->keeper_events().gone({1, 1});
  s.turn();
  const boost::json::object first = s.engine->test("again", {.task = 1});
  EXPECT_EQ(first.at("event").at("payload").at("signal"), "SIGKILL");
  EXPECT_TRUE(first.at("fires").as_bool());
  ASSERT_EQ(s.submitted().size(), 2U);
  s.run_task(2, "", 1);
  const boost::json::object second = s.engine->test("again", {.task = 2});
  EXPECT_FALSE(second.at("fires").as_bool());
  EXPECT_TRUE(second.at("hindrance").as_string().starts_with("chain limit")) << second;
}

TEST(EngineQuestions, OfATimeAreAnsweredBySchedules) {
  EngineSetting s;
  s.configure({{.id = "noon", .trigger = {.cron = "0 12 * * *"}, .action = {.prompt = "x"}, .timezone = "Asia/Tokyo"}});
  EXPECT_TRUE(s.engine->test("noon", {.time = utc("2026-06-01T03:00:20Z")}).at("matches").as_bool());
  EXPECT_FALSE(s.engine->test("noon", {.time = utc("2026-06-01T12:00:00Z")}).at("matches").as_bool());
  EXPECT_EQ(s.engine->test("noon", {.time = utc("2026-06-01T12:00:00Z")}).at("nextAt").as_string(),
            "2026-06-02T03:00:00.000Z");
}

TEST(EngineQuestions, AFiringByHandIsAnsweredWhenItIsOnDisk) {
  EngineSetting s;
  Rule rule = slow_rule(1h);
  s.configure({rule});
  std::string answer;
  for (int i = 0; i < 2; ++i) {
    s.engine->fire_now("slow", {.path = "x"}, [&](const auto& result) { answer = rpc::to_text(result.value()); });
    s.turn();
  }
  EXPECT_EQ(answer, R"({"id":"firing-2","outcome":"fired","taskId":"task-2"})");
  EXPECT_EQ(s.submitted()[1].prompt, "Fix x");
  const boost::json::object history = s.engine->history("slow");
  EXPECT_EQ(history.at("firings").as_array().size(), 2U);
  EXPECT_EQ(history.at("firings").at(0).at("cause").as_string(), "by hand");
}

TEST(EngineQuestions, WhatIsDeniedIsNotDone) {
  EngineSetting s;
  Names told;
  s.on_event = [&](const task::Event& event) { told.push_back(event.kind); };
  Rule rule = on_save("careful");
  rule.requires_approval = true;
  s.configure({rule});
  s.save_file("a");
  EXPECT_EQ(rpc::to_text(s.newest().at("would")), R"({"action":"agent","prompt":"Fix a","agent":"claude"})");
  bool denied = false;
  s.engine->deny("firing-1", [&](const auto& error) { denied = !error; });
  s.turn();
  EXPECT_TRUE(denied);
  EXPECT_EQ(s.recent(), Names{"careful held denied"});
  s.engine->approve("firing-1", [&](const auto& error) { denied = error.has_value(); });
  EXPECT_TRUE(denied) << "it does not wait any more";
  EXPECT_EQ(told, (Names{"approvalNeeded", "approvalDenied"}));
  s.restart();
  EXPECT_EQ(s.recent(), Names{"careful held denied"});
}

}  // namespace
}  // namespace duet::automation
