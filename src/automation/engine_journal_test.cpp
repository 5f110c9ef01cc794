// The rules and the journal: each event of a task sets a rule off once, whenever the daemon is killed.

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "automation/engine.h"
#include "automation/engine_fixture_test.h"

namespace duet::automation {
namespace {

using Names = std::vector<std::string>;

Rule on_end(const std::string& id) {
  return {.id = id, .trigger = {.source = "task", .type = "task.completed"}, .action = {.prompt = "about it"}};
}

struct EngineJournal : testing::Test {
  EngineSetting s;
};

TEST_F(EngineJournal, ARuleFiresOnceThoughTheDaemonIsKilledWhenTheEventIsTold) {
  s.configure({on_end("a"), on_end("b")});
  s.submit();
  s.start_task(1);
  s.on_event = [&](const task::Event& event) {
    if (event.kind == "taskCompleted") s.write_fault = SQLITE_IOERR;
  };
  s.end_task(1);
  s.on_event = {};
  s.kill_and_restart();
  EXPECT_EQ(s.recent(), (Names{"b fired", "a fired"}));
  EXPECT_EQ(s.submitted().size(), 3U);
  EXPECT_EQ(s.told.size(), 2U);
  for (int i = 0; i < 3; ++i) s.kill_and_restart();
  EXPECT_EQ(s.submitted().size(), 3U);
  EXPECT_EQ(s.recent().size(), 2U);
}

TEST_F(EngineJournal, WhatEndedWhileNoDaemonTookItIsTakenByTheNextOne) {
  s.configure({on_end("a")});
  s.submit();
  s.start_task(1);
  s.engine->close();
  s.end_task(1);
  EXPECT_EQ(s.recent(), Names{}) << "this one is about to stop";
  s.restart();
  EXPECT_EQ(s.recent(), Names{"a fired"});
}

TEST_F(EngineJournal, AFullDiskDelaysAFiringAndLosesNothing) {
  s.configure({on_end("a")});
  s.submit();
  s.start_task(1);
  s.on_event = [&](const task::Event& event) {
    if (event.kind == "taskCompleted") s.write_fault = SQLITE_FULL;
  };
  s.end_task(1);
  s.on_event = {};
  EXPECT_EQ(s.recent(), Names{}) << "it is not on disk";
  s.write_fault = SQLITE_OK;
  s.advance(2s);
  EXPECT_EQ(s.recent(), Names{"a fired"});
  EXPECT_TRUE(s.store->is_healthy());
  s.kill_and_restart();
  EXPECT_EQ(s.submitted().size(), 2U);
}

TEST_F(EngineJournal, WhatIsHeldBackWhileTheDiskIsFullIsListedOnceWheneverTheDaemonIsKilled) {
  Rule slow = on_end("slow");
  slow.cooldown = 1h;
  slow.trailing = false;
  s.configure({slow});
  s.engine->close();
  std::size_t events = 0;
  s.on_event = [&](const task::Event&) { ++events; };
  for (task::TaskId id = 1; id <= 95; ++id) {
    s.submit();
    s.run_task(id);
  }
  ASSERT_GT(events, 256U) << "more than is read at once";
  s.stop();
  s.start();
  s.write_fault = SQLITE_FULL;
  s.configure({slow});
  EXPECT_EQ(s.recent(), Names{});
  s.on_event = [&](const task::Event& event) {  // the first commit, but not the second
    if (event.kind == "automationFired") s.write_fault = SQLITE_IOERR;
  };
  s.write_fault = SQLITE_OK;
  s.advance(2s);
  EXPECT_NE(s.write_fault, SQLITE_OK);
  s.on_event = {};
  for (int i = 0; i < 2; ++i) {
    s.kill_and_restart();
    EXPECT_EQ(s.recent().size(), 95U);
    EXPECT_EQ(s.recent().back(), "slow fired");
    EXPECT_EQ(s.kept_firings(), 95U);
  }
}

TEST_F(EngineJournal, WhatWasHeldBackIsHeldBackOnce) {
  Rule slow = on_end("slow");
  slow.cooldown = 1h;
  slow.trailing = false;
  s.configure({slow});
  for (task::TaskId id = 1; id <= 2; ++id) {
    s.supervisor->submit({.prompt = "x", .agent = "shell"}, [](const auto& /*accepted*/) {});
    s.turn();
  }
  s.run_task(1);
  s.run_task(2);
  s.kill_and_restart();
  EXPECT_EQ(s.recent(), (Names{"slow held cooldown", "slow fired"}));
  s.kill_and_restart();
  EXPECT_EQ(s.recent(), (Names{"slow held cooldown", "slow fired"}));
}

TEST_F(EngineJournal, WhatWasBeforeARuleDoesNotSetItOff) {
  s.configure({on_end("a")});
  s.submit();
  s.run_task(1);
  s.configure({on_end("a"), on_end("late")});
  s.kill_and_restart();
  EXPECT_EQ(s.recent(), Names{"a fired"});
  s.stop();
  s.start();
  s.configure({on_end("later"), on_end("late")});
  EXPECT_EQ(s.recent(), Names{"a fired"});
  s.run_task(2);
  EXPECT_EQ(s.recent(), (Names{"late fired", "later fired", "a fired"}));
}

TEST_F(EngineJournal, HowFarItWasReadGoesWithWhateverIsWritten) {
  Rule careful = on_end("careful");
  careful.enabled = false;
  s.configure({careful});
  s.submit();
  s.run_task(1);
  s.engine->enable("careful", true, [](const std::optional<rpc::Error>&) {});
  s.turn();
  s.kill_and_restart();
  EXPECT_EQ(s.recent(), Names{}) << "it was off when the task ended";
}

TEST_F(EngineJournal, WhatHappenedWhileARuleWasOffDoesNotSetItOffWhenTheSettingsTurnItOn) {
  Rule off = on_end("a");
  off.enabled = false;
  s.configure({off});
  s.submit();
  s.run_task(1);
  s.settings = {on_end("a")};
  s.kill_and_restart();
  EXPECT_EQ(s.recent(), Names{});
  s.submit();
  s.run_task(2);
  EXPECT_EQ(s.recent(), Names{"a fired"});
}

TEST_F(EngineJournal, WhatHappenedBeforeARuleAskedForItDoesNotSetItOff) {
  Rule before = on_end("a");
  before.trigger.type = "task.failed";
  Rule conditional = on_end("b");
  conditional.conditions = {{"payload.exitCode", Operator::eq, 7}};
  s.configure({before, conditional, on_end("c")});
  s.submit();
  s.start_task(1);
  s.on_event = [&](const task::Event& event) {
    if (event.kind == "taskCompleted") s.write_fault = SQLITE_IOERR;
  };
  s.end_task(1);
  s.on_event = {};
  Rule same = on_end("c");
  same.cooldown = 1s;
  same.action.prompt = "about something else";
  s.settings = {on_end("a"), on_end("b"), same};
  s.kill_and_restart();
  EXPECT_EQ(s.recent(), Names{"c fired"}) << "which has asked for it all the time";
}

TEST_F(EngineJournal, WhatHappenedWhileItWasOffDoesNotSetItOffWhenAClientTurnsItOnWhileTheJournalIsRead) {
  const auto enable = [this](const std::optional<std::string>& rule, bool on) {
    s.engine->enable(rule, on, [](const std::optional<rpc::Error>&) {});
  };
  for (const std::optional<std::string>& rule : {std::optional<std::string>("a"), std::optional<std::string>()}) {
    s.configure({on_end("a")});
    enable(rule, false);
    s.turn();
    for (int i = 0; i < 200; ++i) {  // a portion has 256 events
      s.submit();
      s.run_task(s.submitted().size());
    }
    s.write_fault = SQLITE_IOERR;
    s.stop();
    s.write_fault = SQLITE_OK;
    s.start();
    s.engine->configure(Engine::prepare(s.settings, {}).value());
    s.engine->begin({});
    enable(rule, true);
    s.begun = true;
    s.turn();
    EXPECT_EQ(s.recent(), Names{});
  }
}

TEST_F(EngineJournal, AStateOfVersionZeroOneIsTakenOverOnce) {
  s.remember("automation",
             R"({"enabled":true,"rules":{"a":{"enabled":false,"fired":[]},"b":{"fired":[1780315100000]}},"firings":)"
             R"({"lastId":9,"list":[)"
             R"({"id":"firing-9","ruleId":"b","at":1780315100000,"count":2,"reason":"","taskId":"task-4"},)"
             R"({"id":"firing-7","ruleId":"b","at":1780315000000,"count":1,"reason":"approval","taskId":"",)"
             R"("awaiting":{"submission":"{\"prompt\":\"do it\",\"priority\":0}"}}]}})");
  s.stop();
  s.start();
  s.configure({on_end("a"), on_end("b")});
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(s.recall("automation"), std::nullopt);
    EXPECT_EQ(s.recent(), (Names{"b fired", "b held approval"}));
    EXPECT_EQ(s.engine->status().at("rules").at(0).at("enabled"), false);
    s.kill_and_restart();
  }
  std::optional<rpc::Error> refusal = rpc::internal_error();
  s.engine->approve("firing-7", [&](const std::optional<rpc::Error>& error) { refusal = error; });
  s.turn();
  EXPECT_FALSE(refusal);
  EXPECT_EQ(s.submitted().at(0).agent, "claude");
  s.run_task(1);
  EXPECT_EQ(s.newest().at("id").as_string(), "firing-10");
}

TEST_F(EngineJournal, OldWorkWithoutAnAgentGoesToTheShellOnlyIfItStandsInTheSettings) {
  const auto firing = [](int number, const std::string& prompt) {
    return R"({"id":"firing-)" + std::to_string(number) +
           R"(","ruleId":"a","at":1,"count":1,"reason":"approval","taskId":"","awaiting":{"submission":"{\"prompt\":\")" +
           prompt + R"(\",\"priority\":0}"}})";
  };
  s.remember("automation", R"({"enabled":true,"rules":{},"firings":{"lastId":2,"list":[)" + firing(2, "about it") +
                               "," + firing(1, "$(touch pwned)") + "]}}");
  s.stop();
  s.tasks.default_agent = "shell";
  s.start();
  s.configure({on_end("a")});
  for (const char* id : {"firing-1", "firing-2"}) {
    s.engine->approve(id, [](const std::optional<rpc::Error>&) {});
    s.turn();
  }
  EXPECT_EQ(s.submitted().at(0).agent, "claude");
  EXPECT_EQ(s.submitted().at(1).agent, "shell");
}

TEST_F(EngineJournal, TheListIsBoundedInTheStoreToo) {
  Rule slow = on_end("slow");
  slow.cooldown = 1h;
  slow.trailing = false;
  s.configure({slow});
  for (task::TaskId id = 1; id <= 111; ++id) {
    s.submit();
    s.run_task(id == 1 ? 1 : id + 1);  // the second one is the rule's
  }
  EXPECT_EQ(s.kept_firings(), Firings::most_kept);
}

TEST_F(EngineJournal, TheListIsBoundedInTheStoreTooWhenTheQueueTakesNothing) {
  s.configure({on_end("r")});
  for (task::TaskId id = 1; id <= 111; ++id) {
    s.set_room(true);
    s.submit();
    s.set_room(false);
    s.run_task(id);
    s.clock.advance(1min);
  }
  EXPECT_EQ(s.recent().at(0), "r held Queue full");
  EXPECT_EQ(s.kept_firings(), Firings::most_kept);
}

TEST_F(EngineJournal, TheListIsBoundedInTheStoreTooWhenTheDiskRefusesASwitch) {
  Rule slow = on_end("slow");
  slow.cooldown = 1h;
  slow.trailing = false;
  s.configure({slow});
  for (task::TaskId id = 1; id <= 100; ++id) {
    s.submit();
    s.run_task(id == 1 ? 1 : id + 1);
  }
  s.write_fault = SQLITE_FULL;
  s.engine->enable("slow", true, [](const std::optional<rpc::Error>&) {});
  s.turn();
  s.write_fault = SQLITE_OK;
  s.advance(2s);
  s.submit();
  s.run_task(102);
  EXPECT_EQ(s.kept_firings(), Firings::most_kept);
}

}  // namespace
}  // namespace duet::automation
