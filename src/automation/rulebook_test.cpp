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

  /// What the next daemon has.
  Rulebook reborn() const {
    Rulebook next;
    next.load(rpc::parse_value(rpc::to_text(book.save())).as_object());
    return next;
  }
};

TEST_F(RulebookTest, WhatIsKnownOfARuleSurvivesAReloadAndARestart) {
  book.replace({rule("a", "0 * * * *"), rule("b")}, noon);
  book.find("a")->switched = false;
  book.find("a")->pace.fired(noon);
  book.replace({rule("b"), rule("a", "0 * * * *")}, noon + 5h);
  Rulebook next = reborn();
  next.replace({rule("a", "0 * * * *")}, noon + 9h);
  for (const Rulebook* each : {&book, &next}) {
    const ActiveRule& a = *each->find("a");
    EXPECT_FALSE(a.enabled());
    EXPECT_EQ(a.pace.refusal(noon + 1s, 30s), "cooldown");
    EXPECT_EQ(a.schedule->seen(), noon);
  }
}

TEST_F(RulebookTest, AnotherScheduleBeginsNow) {
  book.replace({rule("a", "0 * * * *")}, noon);
  book.replace({rule("a", "5 * * * *")}, noon + 3h);
  EXPECT_EQ(book.find("a")->schedule->seen(), noon + 3h);
}

TEST_F(RulebookTest, OfARuleThatIsGoneTheSwitchIsRemembered) {
  book.replace({rule("a", "0 * * * *")}, noon);
  book.find("a")->switched = false;
  book.replace({}, noon);
  book.replace({rule("b")}, noon);
  Rulebook next = reborn();
  next.replace({rule("a", "0 * * * *")}, noon + 3h);
  EXPECT_FALSE(next.find("a")->enabled());
  EXPECT_EQ(next.find("a")->schedule->seen(), noon + 3h) << "and nothing else";
}

TEST_F(RulebookTest, AFaultyRuleChangesNothing) {
  book.replace({rule("a")}, noon);
  EXPECT_THROW(book.replace({rule("b"), rule("c", "nonsense")}, noon), RuleFault);
  EXPECT_NE(book.find("a"), nullptr);
  EXPECT_EQ(book.find("b"), nullptr);
}

}  // namespace
}  // namespace duet::automation
