#include "automation/rulebook.h"

#include <gtest/gtest.h>

#include "automation/zone_test.h"
#include "duet/rpc/value.h"

namespace duet::automation {
namespace {

using namespace std::chrono_literals;

Rule rule(const std::string& id, const std::string& cron = {}) {
  return {.id = id, .trigger = {.source = cron.empty() ? "watch" : "schedule", .cron = cron}, .action = {}};
}

struct RulebookTest : testing::Test {
  Zone zone{"UTC"};
  base::UtcTime noon = utc("2026-06-01T12:00:00Z");
  Rulebook book;

  static void replace(Rulebook& in, const std::vector<Rule>& rules, base::UtcTime now, std::uint64_t seq = 0) {
    in.replace(Rulebook::compile(rules).value(), now, seq);
  }
  void replace(const std::vector<Rule>& rules, base::UtcTime now, std::uint64_t seq = 0) {
    replace(book, rules, now, seq);
  }

  /// What the next daemon has.
  Rulebook reborn() const {
    Rulebook next;
    for (const auto& [id, saved] : book.saved()) {
      if (!saved.empty()) next.load(id, saved);
    }
    return next;
  }
};

TEST_F(RulebookTest, WhatIsKnownOfARuleSurvivesAReloadAndARestart) {
  replace({rule("a", "0 * * * *"), rule("b")}, noon);
  book.find("a")->switched = false;
  book.find("a")->pace.fired(noon);
  replace({rule("b"), rule("a", "0 * * * *")}, noon + 5h);
  Rulebook next = reborn();
  replace(next, {rule("a", "0 * * * *")}, noon + 9h);
  for (const Rulebook* each : {&book, &next}) {
    const ActiveRule& a = *each->find("a");
    EXPECT_FALSE(a.enabled());
    EXPECT_EQ(a.pace.refusal(noon + 1s, 30s), "cooldown");
    EXPECT_EQ(a.schedule->seen(), noon);
  }
}

TEST_F(RulebookTest, AnotherScheduleBeginsNow) {
  replace({rule("a", "0 * * * *")}, noon);
  replace({rule("a", "5 * * * *")}, noon + 3h);
  EXPECT_EQ(book.find("a")->schedule->seen(), noon + 3h);
}

TEST_F(RulebookTest, ARuleThatWasAwayMissesNothing) {
  replace({rule("a", "0 * * * *")}, noon, 10);
  book.find("a")->switched = false;
  book.find("a")->pace.fired(noon);
  replace({}, noon, 10);
  replace({rule("b")}, noon, 10);
  Rulebook next = reborn();
  for (Rulebook* each : {&book, &next}) {
    replace(*each, {rule("a", "0 * * * *")}, noon + 3h, 20);
    const ActiveRule& a = *each->find("a");
    EXPECT_FALSE(a.enabled());
    EXPECT_EQ(a.pace.firings().size(), 1U);
    EXPECT_EQ(a.schedule->seen(), noon + 3h) << "of what happened meanwhile";
    EXPECT_EQ(a.since, 20U);
  }
  replace({rule("a", "0 * * * *")}, noon + 9h, 30);
  EXPECT_EQ(book.find("a")->since, 20U) << "it is there now";
}

TEST_F(RulebookTest, ARuleBeginsWithWhatComesAfterItInTheJournal) {
  replace({rule("a")}, noon, 10);
  replace({rule("a"), rule("b")}, noon, 20);
  EXPECT_EQ(book.find("a")->since, 10U);
  EXPECT_EQ(book.find("b")->since, 20U);
  Rulebook next = reborn();
  replace(next, {rule("b"), rule("c")}, noon, 30);
  EXPECT_EQ(next.find("b")->since, 20U);
  EXPECT_EQ(next.find("c")->since, 30U);
}

TEST_F(RulebookTest, ARuleThatAsksForSomethingElseBeginsAnewInTheJournal) {
  const Rule before = rule("a");
  Rule other_source = before;
  other_source.trigger.source = "task";
  Rule conditional = before;
  conditional.conditions = {{"payload.path", Operator::eq, "x"}};
  Rule off = before;
  off.enabled = false;
  for (const Rule& after : {other_source, conditional, off}) {
    for (const bool there_and_back : {false, true}) {
      Rulebook first;
      replace(first, {there_and_back ? after : before}, noon, 10);
      first.find("a")->burst.count = 1;
      replace(first, {there_and_back ? before : after}, noon, 20);
      EXPECT_EQ(first.find("a")->since, 20U);
      EXPECT_EQ(first.find("a")->burst.count, 0U) << "files that had not come to rest";
    }
  }
  Rule otherwise_done = before;
  otherwise_done.action.prompt = "other";
  otherwise_done.cooldown = 1s;
  replace({before}, noon, 10);
  book.find("a")->burst.count = 1;
  replace({otherwise_done}, noon, 20);
  EXPECT_EQ(book.find("a")->since, 10U);
  EXPECT_EQ(book.find("a")->burst.count, 1U);
  book.find("a")->switched = true;
  replace({off}, noon, 30);
  EXPECT_EQ(book.find("a")->since, 10U) << "a client has it on all the time";
}

TEST_F(RulebookTest, AClockThatIsWrongIsRemembered) {
  replace({rule("a", "0 * * * *")}, noon);
  book.find("a")->schedule->advance(noon + 5h);
  book.find("a")->schedule->advance(noon);
  Rulebook next = reborn();
  replace(next, {rule("a", "0 * * * *")}, noon + 9h);
  EXPECT_EQ(next.find("a")->schedule->seen(), noon);
  EXPECT_EQ(next.find("a")->schedule->advance(noon + 6h).count, 1U);
}

TEST_F(RulebookTest, OfARuleThatIsAwayForAWeekNothingButTheSwitchIsKept) {
  replace({rule("a"), rule("b")}, noon);
  book.find("b")->switched = false;
  for (const char* id : {"a", "b"}) book.find(id)->pace.fired(noon);
  replace({rule("c")}, noon + 1h);
  replace({rule("c")}, noon + 1h + Rulebook::longest_absence);
  Rulebook next = reborn();
  replace(next, {rule("a")}, noon + 160h);
  EXPECT_EQ(next.find("a")->pace.firings().size(), 1U);
  replace({rule("a")}, noon + 2h + Rulebook::longest_absence);
  EXPECT_EQ(book.find("a")->pace.firings().size(), 0U);
  replace({}, noon + 2h + Rulebook::longest_absence);
  EXPECT_EQ(book.saved().at("b"), R"({"enabled":false})");
}

TEST_F(RulebookTest, WhatCannotBeReadBeginsAnewAndIsNamed) {
  for (const char* saved : {"", "x", "[]", R"({"enabled":3})", R"({"fired":[null]})", R"({"cron":"0 * * * *"})"}) {
    Rulebook next;
    next.load("a", saved);
    next.load("b", R"({"enabled":false})");
    replace(next, {rule("a", "0 * * * *"), rule("b")}, noon, 5);
    EXPECT_TRUE(next.find("a")->enabled()) << saved;
    EXPECT_EQ(next.find("a")->since, 5U) << saved;
    EXPECT_FALSE(next.find("b")->enabled()) << saved;
    EXPECT_EQ(next.faults().empty(), std::string(saved).empty()) << saved;
  }
}

TEST_F(RulebookTest, AFaultyRuleIsNamed) {
  EXPECT_TRUE(Rulebook::compile({rule("b"), rule("c", "nonsense")}).error().starts_with("rule c: "));
}

}  // namespace
}  // namespace duet::automation
