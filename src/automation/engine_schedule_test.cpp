#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "automation/engine.h"
#include "automation/engine_fixture_test.h"
#include "automation/scarcity_test.h"
#include "duet/base/few_descriptors_test.h"
#include "duet/base/sanitizer_test.h"

namespace duet::automation {
namespace {

using Names = std::vector<std::string>;

Rule at(const std::string& cron) {
  return {.id = "cron", .trigger = {.source = "schedule", .cron = cron}, .action = {.prompt = "{{payload.time}}"}};
}

struct EngineSchedule : testing::Test {
  Zone zone{"Europe/Berlin"};
  EngineSetting s{utc("2026-03-28T12:00:30Z")};

  /// The times of the tasks so far.
  Names times() {
    Names found;
    for (const task::Submission& submission : s.submitted()) found.push_back(submission.prompt);
    return found;
  }
  /// Time goes by in steps, as it does for a daemon that has nothing else to do.
  void pass(base::Duration time, base::Duration step = 1min) {
    for (; time > 0s; time -= step) s.advance(step);
  }
};

TEST_F(EngineSchedule, RulesFireWhenTheirTimeComes) {
  s.configure({at("*/30 * * * *")});
  pass(90min);
  EXPECT_EQ(times(), (Names{"2026-03-28T12:30:00.000Z", "2026-03-28T13:00:00.000Z", "2026-03-28T13:30:00.000Z"}));
  EXPECT_EQ(s.submitted()[0].env.at("DUET_TIME"), "2026-03-28T12:30:00.000Z");
  EXPECT_EQ(s.submitted()[0].env.at("DUET_TYPE"), "schedule.due");
}

TEST_F(EngineSchedule, ATimeInTheGapComesAfterIt) {
  s.configure({at("30 2 * * *")});
  pass(48h);
  EXPECT_EQ(times(), (Names{"2026-03-29T01:00:00.000Z", "2026-03-30T00:30:00.000Z"}));
}

TEST_F(EngineSchedule, WhatWasMissedWhileDownIsListedAndNotMadeUp) {
  s.configure({at("0 * * * *")});
  pass(1h);
  ASSERT_EQ(s.submitted().size(), 1U);
  s.stop();
  s.clock.advance(3h);
  s.restart();
  EXPECT_EQ(s.recent(), (Names{"cron held missed", "cron fired"}));
  EXPECT_EQ(s.newest().at("reason").as_string(), "missed: the daemon was not running");
  EXPECT_EQ(s.newest().at("count").to_number<int>(), 3);
  pass(1h);
  EXPECT_EQ(s.submitted().size(), 2U);
  s.restart();
  EXPECT_EQ(s.recent().size(), 3U) << "it is listed once";
}

TEST_F(EngineSchedule, WhatWasMissedIsMadeUpOnceWhereTheRuleSaysSo) {
  Rule rule = at("0 * * * *");
  rule.missed = Missed::once;
  s.configure({rule});
  s.stop();
  s.clock.advance(3h);
  s.start();
  s.configure({rule});
  EXPECT_EQ(s.recent(), Names{"cron fired"});
  EXPECT_EQ(s.newest().at("count").to_number<int>(), 3);
  EXPECT_EQ(times(), Names{"2026-03-28T15:00:00.000Z"}) << "the last of them";
  EXPECT_EQ(s.submitted()[0].env.at("DUET_COUNT"), "3");
  s.restart();
  s.clock.advance(2h + 20min);  // asleep
  s.turn();
  EXPECT_EQ(s.newest().at("count").to_number<int>(), 2);
  EXPECT_EQ(s.submitted().size(), 2U);
}

TEST_F(EngineSchedule, ATimeThatWasDealtWithIsNotDealtWithAgainAfterAKill) {
  s.configure({at("0 * * * *")});
  pass(1h);
  s.kill_and_restart();
  EXPECT_EQ(s.recent(), Names{"cron fired"});
  pass(59min);
  s.clock.advance(1min);
  s.write_fault = SQLITE_IOERR;  // killed before it could write that it fired
  s.turn();
  s.kill_and_restart();
  EXPECT_EQ(s.recent(), (Names{"cron held missed", "cron fired"}));
  EXPECT_EQ(s.submitted().size(), 1U);
}

TEST_F(EngineSchedule, NothingIsMissedByARuleThatIsOffOrNew) {
  Rule off = at("0 * * * *");
  off.enabled = false;
  s.configure({off});
  s.stop();
  s.clock.advance(3h);
  s.restart();
  s.configure({at("5 * * * *")});
  EXPECT_EQ(s.recent(), Names{});
}

TEST_F(EngineSchedule, NothingIsMissedByARuleThatWasAway) {
  s.configure({at("0 * * * *")});
  s.configure({});
  pass(3h);
  s.configure({at("0 * * * *")});
  EXPECT_EQ(s.recent(), Names{});
}

TEST_F(EngineSchedule, WhatWasMissedInSleepIsListed) {
  s.configure({at("0 * * * *")});
  s.clock.advance(3h + 20min);  // at once: no timer has run
  s.turn();
  EXPECT_EQ(s.recent(), Names{"cron held missed"});
  EXPECT_EQ(s.newest().at("count").to_number<int>(), 3);
}

TEST_F(EngineSchedule, TheLastOneOfThoseCountsIfItIsNotLate) {
  s.configure({at("0 * * * *")});
  s.clock.advance(3h);
  s.turn();
  EXPECT_EQ(s.recent(), (Names{"cron fired", "cron held missed"}));
  EXPECT_EQ(times(), Names{"2026-03-28T15:00:00.000Z"});
}

TEST_F(EngineSchedule, AWrongClockAtTheStartMakesUpNothingTwice) {
  Rule rule = at("0 * * * *");
  rule.missed = Missed::once;
  s.configure({rule});
  pass(1h);
  ASSERT_EQ(s.submitted().size(), 1U);
  const base::UtcTime before = s.clock.utc();
  s.stop();
  s.clock.set_utc(utc("1970-01-01T00:00:10Z"));
  s.start();
  s.configure({rule});
  pass(2h, 30min);
  EXPECT_EQ(s.submitted().size(), 3U) << "nobody knows that it is wrong";
  s.restart();
  s.clock.set_utc(before + 5min);
  pass(1min);
  EXPECT_EQ(s.submitted().size(), 3U);
  pass(1h);
  EXPECT_EQ(times().back(), "2026-03-28T14:00:00.000Z");
  EXPECT_EQ(s.newest().at("count").to_number<int>(), 1);
}

TEST_F(EngineSchedule, AnotherTimeZoneOfTheSystemIsNoticed) {
  s.configure({at("0 23 * * *")});
  setenv("TZ", "Asia/Tokyo", 1);  // as if /etc/localtime were another file: nobody is told
  pass(3h);
  EXPECT_EQ(times(), Names{"2026-03-28T14:00:00.000Z"});
}

TEST_F(EngineSchedule, AClockThatNobodyTellsOfIsLookedAtAllTheSame) {
  if (base::under_sanitizer) GTEST_SKIP() << "the sanitizer needs the descriptors that this test takes away";
  const auto timers = [] { return descriptors_of("anon_inode:[timerfd]").size(); };
  const std::size_t before = timers();
  const auto prepare = [&] { return Engine::prepare({at("0 * * * *")}, {}).value(); };
  Engine::Plan first = prepare();
  Engine::Plan second = prepare();
  {
    const base::FewDescriptors none;
    EXPECT_NO_THROW(s.engine->configure(std::move(first)));
  }
  EXPECT_EQ(timers(), before);
  {
    const BlindLoops blind;
    EXPECT_NO_THROW(s.engine->configure(std::move(second)));
  }
  EXPECT_EQ(timers(), before);
  s.engine->begin({});
  s.clock.set_utc(utc("2026-03-28T13:00:00Z"));
  pass(1min);
  EXPECT_EQ(s.recent().at(0), "cron fired");
  EXPECT_EQ(timers(), before + 1) << "from now on the kernel tells";
}

TEST_F(EngineSchedule, ConditionsAndTheOffSwitchHoldForSchedulesToo) {
  Rule rule = at("* * * * *");
  rule.conditions = {{"payload.time", Operator::matches, "T12:03"}};
  s.configure({rule});
  pass(5min);
  EXPECT_EQ(s.submitted().size(), 1U);
  s.engine->enable(std::nullopt, false, [](const std::optional<rpc::Error>&) {});
  s.configure({at("* * * * *")});
  pass(5min);
  EXPECT_EQ(s.submitted().size(), 1U);
}

TEST_F(EngineSchedule, NoTimerRunsWithoutASchedule) {
  s.configure({at("* * * * *")});
  s.configure({});
  pass(5min);
  EXPECT_EQ(s.submitted().size(), 0U);
}

}  // namespace
}  // namespace duet::automation
