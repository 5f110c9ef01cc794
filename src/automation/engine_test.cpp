#include "automation/engine.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "automation/engine_fixture_test.h"

namespace duet::automation {
namespace {

using Names = std::vector<std::string>;

TEST(Engine, AChangedFileBecomesATask) {
  EngineSetting s;
  Rule rule = on_save("fix", "*.cpp");
  rule.action.priority = 3;
  s.configure({rule});
  s.save_file("a.cpp");
  ASSERT_EQ(s.submitted().size(), 1U);
  const task::Submission submission = s.submitted()[0];
  EXPECT_EQ(submission.prompt, "Fix a.cpp");
  EXPECT_EQ(submission.agent, "claude");
  EXPECT_EQ(submission.priority, 3);
  EXPECT_EQ(submission.env.at("DUET_PATH"), "a.cpp");
  EXPECT_EQ(submission.env.at("DUET_TYPE"), "file.create");
  EXPECT_EQ(submission.env.at("DUET_RULE"), "fix");
  EXPECT_EQ(submission.env.at("DUET_COUNT"), "1");
  EXPECT_EQ(rpc::to_text(submission.metadata), R"({"automation":{"ruleId":"fix","firingId":"firing-1","depth":1}})");
  EXPECT_EQ(s.told, Names{R"(automationFired {"ruleId":"fix","id":"firing-1","count":1,"taskId":"task-1"})"});
  EXPECT_EQ(rpc::to_text(s.newest()),
            R"({"id":"firing-1","ruleId":"fix","at":"2026-06-01T12:00:00.200Z","outcome":"fired","count":1,)"
            R"("taskId":"task-1","cause":"file.create a.cpp"})");
  s.save_file("a.h");
  EXPECT_EQ(s.submitted().size(), 1U);
}

TEST(Engine, ABurstIsOneFiringWithItsCount) {
  EngineSetting s;
  s.configure({on_save("all"), on_save("some", "*1")});
  for (int i = 0; i < 30; ++i) s.write("file" + std::to_string(i));
  s.wait_for_store();
  ASSERT_EQ(s.submitted().size(), 2U);
  EXPECT_EQ(s.submitted()[0].env.at("DUET_COUNT"), "30");
  EXPECT_EQ(s.submitted()[1].env.at("DUET_COUNT"), "3");
}

TEST(Engine, ANoticeIsBroadcast) {
  EngineSetting s;
  Rule rule = on_save("note");
  rule.action = {.type = Action::Type::notify, .message = "{{type}}: {{payload.path}}"};
  s.configure({rule});
  s.save_file("a");
  EXPECT_EQ(s.told, (Names{R"(notice {"ruleId":"note","id":"firing-1","message":"file.create: a"})",
                           R"(automationFired {"ruleId":"note","id":"firing-1","count":1})"}));
}

TEST(Engine, TasksAndTheDaemonAreSourcesToo) {
  EngineSetting s;
  s.configure({{.id = "again",
                .trigger = {.type = "task.failed"},
                .conditions = {{"payload.exitCode", Operator::gt, 1}},
                .action = {.prompt = "{{payload.taskId}} {{payload.agent}} {{payload.exitCode}} {{payload.signal}}"}},
               {.id = "hello", .trigger = {.source = "daemon"}, .action = {.prompt = "started"}}});
  s.submit();
  s.submit();
  s.run_task(2, "", 1);
  s.run_task(3, "", 7);
  ASSERT_EQ(s.submitted().size(), 4U);
  EXPECT_EQ(s.submitted()[0].prompt, "started");
  EXPECT_EQ(s.submitted()[3].prompt, "task-3 shell 7 ");
  EXPECT_EQ(s.submitted()[3].agent, "claude") << "the default one";
}

TEST(Engine, ACooldownHoldsBack) {
  EngineSetting s;
  Rule rule = on_save("slow");
  rule.cooldown = 30s;
  rule.trailing = false;
  s.configure({rule});
  s.save_file("a");
  s.save_file("a");
  s.advance(30s);
  s.save_file("a");
  EXPECT_EQ(s.recent(), (Names{"slow fired", "slow held cooldown", "slow fired"}));
}

TEST(Engine, TenFiringsAMinuteAndNoMore) {
  EngineSetting s;
  s.configure({on_save("busy")});
  for (int i = 0; i < 12; ++i) s.save_file("a");
  EXPECT_EQ(s.submitted().size(), 10U);
  EXPECT_EQ(s.recent()[0], "busy held rate limit");
  EXPECT_EQ(s.recent()[1], "busy fired") << "one waits, and takes in what comes";
  s.advance(1min);
  EXPECT_EQ(s.submitted().size(), 11U) << "the last save is dealt with";
  EXPECT_EQ(s.recent()[0], "busy fired");
  s.advance(1min);
  EXPECT_EQ(s.submitted().size(), 11U);
}

TEST(Engine, WhatTheMinuteHoldsBackIsGoneWithoutTrailing) {
  EngineSetting s;
  Rule rule = on_save("busy");
  rule.trailing = false;
  s.configure({rule});
  for (int i = 0; i < 12; ++i) s.save_file("a");
  EXPECT_EQ(s.recent()[0], "busy held rate limit");
  EXPECT_EQ(s.recent()[1], "busy held rate limit");
  s.advance(1min);
  EXPECT_EQ(s.submitted().size(), 10U);
  s.save_file("a");
  EXPECT_EQ(s.submitted().size(), 11U);
}

TEST(Engine, WhatWasDoneBeforeARestartCountsForThePace) {
  EngineSetting s;
  Rule rule = on_save("slow");
  rule.cooldown = 30s;
  s.configure({rule});
  s.save_file("a");
  s.restart();
  s.save_file("a");
  EXPECT_EQ(s.recent(), (Names{"slow held cooldown", "slow fired"}));
}

TEST(Engine, ARuleThatTriggersItselfSettles) {
  EngineSetting s;
  s.configure({on_save("loop")});
  s.save_file("a");
  for (task::TaskId id = 1; id <= s.submitted().size() && id < 20; ++id) {
    s.run_task(id, "a");
    s.wait_for_store();
  }
  EXPECT_EQ(s.submitted().size(), 8U);
  EXPECT_EQ(s.recent()[0], "loop held chain limit");
  EXPECT_EQ(s.submitted()[4].metadata.at("automation").at("depth").to_number<int>(), 5);
  EXPECT_EQ(s.submitted()[4].metadata.at("automation").at("cause").as_string(), "task-4");
  s.advance(1min);
  s.save_file("a");
  EXPECT_EQ(s.submitted().size(), 9U) << "somebody else's change starts anew";
}

TEST(Engine, AQuickTaskCausesWhatItDidBeforeWeHeardOfItsStart) {
  EngineSetting s;
  s.configure({on_save("quick")});
  s.save_file("a");
  const base::UtcTime started = s.clock.utc();
  s.clock.advance(1ms);
  s.write("a");
  s.turn();
  s.clock.advance(1ms);
  s.supervisor->keeper_events().started({1, 1}, {.pid = 100, .at = started});
  s.turn();
  s.end_task(1);
  s.wait_for_store();
  ASSERT_EQ(s.submitted().size(), 2U);
  EXPECT_EQ(s.submitted()[1].metadata.at("automation").at("depth").to_number<int>(), 2);
}

TEST(Engine, AChangeWithinTheSettleTimeAfterATaskIsItsDoing) {
  EngineSetting s;
  s.configure({on_save("r")});
  s.save_file("a");
  s.run_task(1);
  s.advance(150ms);
  s.save_file("a");
  s.run_task(2);
  s.advance(250ms);
  s.save_file("a");
  ASSERT_EQ(s.submitted().size(), 3U);
  EXPECT_EQ(s.submitted()[1].metadata.at("automation").at("depth").to_number<int>(), 2);
  EXPECT_EQ(s.submitted()[2].metadata.at("automation").at("depth").to_number<int>(), 1);
}

TEST(Engine, RulesThatLeadToEachOtherThroughTasksSettle) {
  EngineSetting s;
  s.configure({{.id = "again", .trigger = {.type = "task.completed"}, .action = {.prompt = "again"}}});
  s.submit();
  for (task::TaskId id = 1; id <= s.submitted().size() && id < 20; ++id) s.run_task(id);
  EXPECT_EQ(s.submitted().size(), 9U) << "the first one is nobody's rule's";
  EXPECT_EQ(s.recent()[0], "again held chain limit");
}

TEST(Engine, ATaskThatRunsAcrossARestartIsStillACause) {
  EngineSetting s;
  s.configure({on_save("r")});
  s.save_file("a");
  s.start_task(1);
  s.restart();
  s.advance(10s);
  s.save_file("a");
  EXPECT_EQ(s.submitted().at(1).metadata.at("automation").at("depth").to_number<int>(), 2);
}

TEST(Engine, WhatTheQueueRefusesIsHeld) {
  EngineSetting s;
  s.configure({on_save("r")});
  s.set_room(false);
  s.save_file("a");
  EXPECT_EQ(s.recent(), Names{"r held Queue full"});
  EXPECT_EQ(s.told, Names{});
  s.restart();
  EXPECT_EQ(s.recent(), Names{"r held Queue full"});
}

TEST(Engine, WhatIsRefusedCountsForNeitherTheCooldownNorTheRate) {
  EngineSetting s;
  Rule slow = on_save("slow");
  slow.cooldown = 1h;
  slow.trailing = false;
  Rule typo = on_save("typo");
  typo.action.prompt = "{{payload.paht}}";
  typo.cooldown = 1h;
  typo.trailing = false;
  Rule nobody = on_save("nobody");
  nobody.action.agent.clear();
  nobody.cooldown = 1h;
  nobody.trailing = false;
  s.tasks.default_agent.clear();
  s.supervisor->change_settings(s.tasks);
  s.configure({slow, typo, nobody});
  s.set_room(false);
  for (int i = 0; i < 2; ++i) s.save_file("a");
  const Names all{"nobody held Subsystem unavailable", "typo held template", "slow held Queue full"};
  Names twice = all;
  twice.insert(twice.end(), all.begin(), all.end());
  EXPECT_EQ(s.recent(), twice);
  s.kill_and_restart();
  s.set_room(true);
  s.save_file("a");
  s.save_file("a");
  EXPECT_EQ(s.recent().at(2), "slow held cooldown");
  EXPECT_EQ(s.recent().at(5), "slow fired");
}

TEST(Engine, WithoutAnAgentAFiringIsHeldAlsoAtTheStart) {
  EngineSetting s;
  s.tasks.default_agent.clear();
  s.supervisor->change_settings(s.tasks);
  s.configure({{.id = "hello", .trigger = {.source = "daemon"}, .action = {.prompt = "started"}}});
  EXPECT_EQ(s.recent(), Names{"hello held Subsystem unavailable"});
  EXPECT_EQ(s.newest().at("reason").as_string(),
            "Subsystem unavailable: no agent is configured, and `claude` is not on the PATH");
}

TEST(Engine, ATemplateThatTheEventCannotFillIsHeld) {
  EngineSetting s;
  Rule rule = on_save("typo");
  rule.action.prompt = "{{payload.paht}}";
  s.configure({rule});
  s.save_file("a");
  EXPECT_EQ(s.newest().at("reason").as_string(), "template: the event has no payload.paht");
  EXPECT_TRUE(s.submitted().empty());
}

// ---- a disk that cannot be written ----

TEST(Engine, WhatIsHeldBackWhileTheDiskIsFullTakesNoMoreAndMoreMemory) {
  EngineSetting s;
  Rule slow = on_save(std::string(100'000, 'r'));  // so that a thousand of its firings are more than may wait
  slow.cooldown = 24h;
  slow.trailing = false;
  s.configure({slow});
  s.save_file("a");
  s.write_fault = SQLITE_FULL;
  for (int i = 0; i < 1'500; ++i) s.save_file("a");
  EXPECT_TRUE(s.store->has_room());
  EXPECT_EQ(s.recent(), Names{}) << "what is not on disk is not shown";
  s.write_fault = SQLITE_OK;
  s.advance(2s);
  s.advance(2s);
  EXPECT_EQ(s.recent().size(), Firings::most_kept);
  EXPECT_EQ(s.newest().at("id").as_string(), "firing-1501");
  EXPECT_EQ(s.kept_firings(), Firings::most_kept);
  s.kill_and_restart();
  EXPECT_EQ(s.newest().at("id").as_string(), "firing-1501");
}

TEST(Engine, WhatWouldWaitForApprovalIsRefusedWhileTheStoreHasNoRoom) {
  EngineSetting s;
  Rule careful = on_save("careful");
  careful.requires_approval = true;
  Rule note = on_save("note");
  note.action = {.type = Action::Type::notify, .message = "x"};
  s.configure({careful, note});
  s.write_fault = SQLITE_FULL;
  s.store->write({.apply = [](task::StoreWriter& writer) { writer.remember("x", "y"); },
                  .kind = task::Change::Kind::fact,
                  .bytes = task::Store::most_waiting_bytes});
  s.turn();
  for (int i = 0; i < 2; ++i) s.save_file("a");
  s.write_fault = SQLITE_OK;
  s.advance(2s);
  s.advance(2s);
  EXPECT_EQ(s.recent(), (Names{"note held Subsystem unavailable", "careful held Subsystem unavailable",
                               "note held Subsystem unavailable", "careful held Subsystem unavailable"}));
  s.save_file("a");
  EXPECT_EQ(s.recent().at(0), "note fired");
  EXPECT_EQ(s.recent().at(1), "careful held approval");
}

// ---- approval ----

struct Approval : testing::Test {
  Approval() {
    careful.requires_approval = true;
    s.configure({careful});
    s.save_file("a");
  }
  std::optional<rpc::Error> approve(std::string_view id = "firing-1") {
    std::optional<rpc::Error> result = rpc::internal_error();
    s.engine->approve(id, [&](const std::optional<rpc::Error>& error) { result = error; });
    s.turn();
    return result;
  }
  std::string reason() const { return std::string(s.newest().at("reason").as_string()); }

  Rule careful = on_save("careful");
  EngineSetting s;
};

TEST_F(Approval, IsWaitedFor) {
  EXPECT_EQ(s.recent(), Names{"careful held approval"});
  EXPECT_TRUE(s.submitted().empty());
  EXPECT_FALSE(approve());
  EXPECT_EQ(s.recent(), Names{"careful fired"});
  EXPECT_EQ(s.submitted().at(0).prompt, "Fix a");
  EXPECT_EQ(s.newest().at("taskId").as_string(), "task-1");
  EXPECT_EQ(s.told, Names{R"(automationFired {"ruleId":"careful","id":"firing-1","count":1,"taskId":"task-1"})"});
}

TEST_F(Approval, IsGivenOnceAndOnlyToWhatWaits) {
  const std::optional<rpc::Error> refused = approve("firing-7");
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->code(), rpc::code::invalid_params);
  EXPECT_EQ(refused->data(), R"({"param":"id","expected":"a firing that waits for approval","received":"firing-7",)"
                             R"("accepted":["firing-1"]})");
  EXPECT_FALSE(approve());
  EXPECT_TRUE(approve());
  EXPECT_EQ(s.submitted().size(), 1U);
}

TEST_F(Approval, IsStillWaitedForAfterARestart) {
  s.restart();
  EXPECT_FALSE(approve());
  EXPECT_EQ(s.submitted().at(0).env.at("DUET_PATH"), "a");
}

TEST_F(Approval, IsAnsweredWhenItIsOnDiskAndNeverRunsTwice) {
  bool answered = false;
  s.engine->approve("firing-1", [&](const std::optional<rpc::Error>&) { answered = true; });
  EXPECT_FALSE(answered);
  s.kill_and_restart();
  EXPECT_FALSE(answered);
  EXPECT_EQ(s.recent(), Names{"careful held approval"}) << "nobody was told that it is approved";
  EXPECT_FALSE(approve());
  s.kill_and_restart();
  EXPECT_EQ(approve()->code(), rpc::code::invalid_params);
  EXPECT_EQ(s.submitted().size(), 1U);
}

TEST_F(Approval, IsRefusedWhenItCannotBeWritten) {
  s.write_fault = SQLITE_FULL;
  EXPECT_EQ(approve()->code(), -32003);
  EXPECT_EQ(s.recent(), Names{"careful held approval"});
  s.write_fault = SQLITE_OK;
  s.advance(2s);
  EXPECT_FALSE(approve());
  EXPECT_EQ(s.submitted().size(), 1U);
}

TEST_F(Approval, OfWhatTheQueueRefusesIsKeptAndTriedAgain) {
  s.set_room(false);
  EXPECT_FALSE(approve());
  EXPECT_EQ(reason(), "approved: Queue full");
  EXPECT_EQ(approve()->code(), rpc::code::invalid_params) << "it is approved already";
  s.kill_and_restart();
  EXPECT_EQ(reason(), "approved: Queue full");
  s.set_room(true);
  s.advance(30s);
  EXPECT_EQ(s.recent(), Names{"careful fired"});
  EXPECT_EQ(s.submitted().size(), 1U);
  s.advance(60s);
  EXPECT_EQ(s.submitted().size(), 1U);
}

TEST_F(Approval, OfWhatTheQueueRefusedIsDoneWhenThereIsRoomAgain) {
  s.submit();
  s.start_task(1);
  s.set_room(false);
  EXPECT_FALSE(approve());
  s.set_room(true);
  s.end_task(1);
  EXPECT_EQ(s.recent(), Names{"careful fired"}) << "a task has ended";
  s.save_file("b");
  s.set_room(false);
  EXPECT_FALSE(approve("firing-2"));
  s.set_room(true);
  s.configure({careful});
  EXPECT_EQ(s.recent()[0], "careful fired") << "the settings were read again";
}

TEST_F(Approval, IsRefusedWhileTheRuleOrAllOfItIsOff) {
  const auto enable = [&](const std::optional<std::string>& rule, bool on) {
    s.engine->enable(rule, on, [](const std::optional<rpc::Error>&) {});
    s.turn();
  };
  enable("careful", false);
  EXPECT_EQ(approve()->message(),
            "Subsystem unavailable: rule careful is off: `duet-rpc automation enable careful`, and approve again");
  enable("careful", true);
  enable(std::nullopt, false);
  EXPECT_EQ(approve()->message(),
            "Subsystem unavailable: automation is off: `duet-rpc automation enable`, and approve again");
  EXPECT_TRUE(s.submitted().empty());
  enable(std::nullopt, true);
  EXPECT_FALSE(approve());
}

TEST_F(Approval, IsOfTheAgentThatWasTheDefaultWhenTheRuleFired) {
  careful.action.agent.clear();
  s.configure({careful});
  s.save_file("$(touch pwned)");
  s.tasks.default_agent = "shell";
  s.supervisor->change_settings(s.tasks);
  EXPECT_FALSE(approve("firing-2"));
  EXPECT_EQ(s.submitted().at(0).agent, "claude");
}

// ---- switches ----

std::optional<rpc::Error> enable(EngineSetting& s, const std::optional<std::string>& rule, bool enabled) {
  std::optional<rpc::Error> result = rpc::internal_error();
  s.engine->enable(rule, enabled, [&](const std::optional<rpc::Error>& error) { result = error; });
  s.turn();
  return result;
}

TEST(EngineSwitch, ARuleStaysOffAcrossARestartAndAReload) {
  EngineSetting s;
  s.configure({on_save("a"), on_save("b")});
  EXPECT_FALSE(enable(s, "a", false));
  s.restart();
  s.save_file("x");
  EXPECT_EQ(s.recent(), Names{"b fired"});
  s.configure({on_save("b")});
  s.restart();
  s.configure({on_save("a"), on_save("b")});
  s.save_file("x");
  EXPECT_EQ(s.recent(), (Names{"b fired", "b fired"})) << "also when it was away for a while";
  EXPECT_FALSE(enable(s, "a", true));
  s.save_file("x");
  EXPECT_EQ(s.submitted().size(), 4U);
}

TEST(EngineSwitch, TheWholeEngineStaysOffAcrossARestart) {
  EngineSetting s;
  s.configure({on_save("a")});
  EXPECT_FALSE(enable(s, std::nullopt, false));
  s.restart();
  EXPECT_FALSE(s.engine->enabled());
  s.save_file("x");
  EXPECT_EQ(s.recent(), Names{});
  EXPECT_FALSE(enable(s, std::nullopt, true));
  s.save_file("x");
  EXPECT_EQ(s.recent(), Names{"a fired"});
}

TEST(EngineSwitch, AClientOverrulesTheSettings) {
  EngineSetting s;
  Rule rule = on_save("a");
  rule.enabled = false;
  s.configure({rule});
  s.save_file("x");
  EXPECT_TRUE(s.submitted().empty());
  EXPECT_FALSE(enable(s, "a", true));
  s.restart();
  s.save_file("x");
  EXPECT_EQ(s.submitted().size(), 1U);
}

TEST(EngineSwitch, AnUnknownRuleIsRefusedWithTheKnownOnes) {
  EngineSetting s;
  s.configure({on_save("a"), on_save("b")});
  const std::optional<rpc::Error> error = enable(s, "c", false);
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), rpc::code::invalid_params);
  EXPECT_EQ(error->data(), R"({"param":"ruleId","expected":"the id of a rule","received":"c","accepted":["a","b"]})");
  EXPECT_TRUE(enable(s, "", false));
}

TEST(EngineSwitch, WorksWhenItCannotBeKeptAndIsKeptWhenItCan) {
  EngineSetting s;
  s.configure({on_save("a")});
  s.write_fault = SQLITE_FULL;
  EXPECT_EQ(enable(s, "a", false)->code(), -32003);
  s.save_file("x");
  EXPECT_TRUE(s.submitted().empty());
  s.write_fault = SQLITE_OK;
  s.advance(2s);
  EXPECT_TRUE(s.store->is_healthy());
  EXPECT_EQ(s.engine->problems(), Names{});
  s.kill_and_restart();
  s.save_file("x");
  EXPECT_TRUE(s.submitted().empty());
}

TEST(EngineSwitch, WhatCannotBeKeptTakesNoMoreAndMoreMemory) {
  EngineSetting s;
  const std::string id(100'000, 'r');  // so that a thousand states of it are more than may wait
  s.configure({on_save(id)});
  s.write_fault = SQLITE_FULL;
  for (int i = 0; i < 1'001; ++i) {
    EXPECT_TRUE(enable(s, std::nullopt, i % 2 != 0));
    EXPECT_TRUE(enable(s, id, i % 2 != 0));
  }
  EXPECT_TRUE(s.store->has_room());
  s.write_fault = SQLITE_OK;
  s.advance(2s);
  s.kill_and_restart();
  EXPECT_FALSE(s.engine->enabled());
  EXPECT_EQ(s.engine->status().at("rules").at(0).at("enabled"), false);
}

TEST(EngineSwitch, AMemoryThatCannotBeReadMeansOff) {
  EngineSetting s;
  s.remember("automation", R"({"enabled":true})");
  s.restart();
  EXPECT_FALSE(s.engine->enabled());
  ASSERT_EQ(s.engine->problems().size(), 1U);
  EXPECT_FALSE(enable(s, std::nullopt, true));
  EXPECT_EQ(s.engine->problems(), Names{});
  s.restart();
  EXPECT_TRUE(s.engine->enabled());
}

TEST(EngineSwitch, OfARuleWhoseStateCannotBeReadTheStateBeginsAnew) {
  EngineSetting s;
  s.configure({on_save("a"), on_save("b")});
  EXPECT_FALSE(enable(s, "b", false));
  s.remember("rule/a", R"({"enabled":3})");
  s.restart();
  EXPECT_EQ(s.engine->problems(), Names{"what was known of rule a cannot be read: it begins anew"});
  s.save_file("x");
  EXPECT_EQ(s.recent(), Names{"a fired"});
  s.restart();
  EXPECT_EQ(s.engine->problems(), Names{});
}

// ---- reload and status ----

TEST(Engine, AReloadKeepsWhatIsKnownOfRulesThatStay) {
  EngineSetting s;
  Rule rule = on_save("slow");
  rule.cooldown = 30s;
  s.configure({rule});
  s.save_file("a");
  s.configure({rule, on_save("new")});
  s.save_file("a");
  EXPECT_EQ(s.recent(), (Names{"new fired", "slow held cooldown", "slow fired"}));
}

TEST(Engine, AChangeThatHasNotSettledIsNotLostInAReload) {
  EngineSetting s;
  s.configure({on_save("r")});
  s.write("a");
  s.configure({on_save("r")});
  s.wait_for_store();
  EXPECT_EQ(s.recent(), Names{"r fired"});
}

TEST(Engine, SettingsThatCannotBeUsedAreNoPlan) {
  EXPECT_EQ(Engine::prepare({on_save("good"), on_save("bad", "a{")}, {}).error(), "rule bad: a { in a glob has no }");
  EXPECT_EQ(Engine::prepare({}, {.ignore = {"["}}).error(), "[watch] ignore: a [ in a glob has no ]");
  EXPECT_TRUE(Engine::prepare({on_save("good")}, {}));
}

TEST(Engine, TellsItsRules) {
  EngineSetting s;
  const Zone zone("UTC");
  s.configure({on_save("save", "*.c"),
               {.id = "nightly",
                .trigger = {.source = "schedule", .cron = "0 3 * * *"},
                .action = {.prompt = "x"},
                .requires_approval = true,
                .enabled = false}});
  s.save_file("a.c");
  const boost::json::object status = s.engine->status();
  EXPECT_EQ(status.at("enabled"), true);
  EXPECT_EQ(status.at("ruleCount").to_number<int>(), 2);
  EXPECT_EQ(rpc::to_text(status.at("rules")),
            R"([{"id":"save","enabled":true,"action":"agent","requiresApproval":false,"source":"watch",)"
            R"("pattern":"*.c","agent":"claude","lastFiredAt":"2026-06-01T12:00:00.200Z"},)"
            R"({"id":"nightly","enabled":false,"action":"agent","requiresApproval":true,"source":"schedule",)"
            R"("cron":"0 3 * * *"}])")
      << "one that is off has no next time";
  s.engine->enable("nightly", true, [](const std::optional<rpc::Error>&) {});
  EXPECT_EQ(s.engine->status().at("rules").at(1).at("nextAt").as_string(), "2026-06-02T03:00:00.000Z");
}

}  // namespace
}  // namespace duet::automation
