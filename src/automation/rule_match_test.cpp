#include "automation/rule_match.h"

#include <string>

#include <gtest/gtest.h>

namespace duet::automation {
namespace {

namespace json = boost::json;

const Event saved{.source = "watch", .type = "file.modify", .payload = {{"path", "src/a_test.cpp"}}};
const Event failed{
    .source = "task", .type = "task.failed", .payload = {{"taskId", "task-3"}, {"exitCode", 7}, {"signal", nullptr}}};

bool accepts(const Trigger& trigger, const Event& event, std::vector<Condition> conditions = {}) {
  return RuleMatch::of({.id = "r", .trigger = trigger, .conditions = std::move(conditions), .action = {}})
      .value()
      .accepts(event);
}

bool holds(const std::string& field, Operator op, const json::value& value = nullptr) {
  return accepts({}, failed, {{field, op, value}});
}

std::string fault(const Trigger& trigger, std::vector<Condition> conditions = {}) {
  const auto match = RuleMatch::of({.id = "r", .trigger = trigger, .conditions = std::move(conditions), .action = {}});
  return match ? "accepted" : match.error();
}

TEST(RuleMatch, EverythingThatATriggerNamesMustHold) {
  EXPECT_TRUE(accepts({}, saved));
  EXPECT_TRUE(accepts({.source = "watch"}, saved));
  EXPECT_TRUE(accepts({.source = "watch", .type = "file.modify", .pattern = "src/**/*.cpp"}, saved));
  EXPECT_FALSE(accepts({.source = "task"}, saved));
  EXPECT_FALSE(accepts({.type = "file.create"}, saved));
  EXPECT_FALSE(accepts({.pattern = "*.cpp"}, saved));
  EXPECT_FALSE(accepts({.pattern = "**"}, failed)) << "it has no path";
  EXPECT_FALSE(accepts({.cron = "* * * * *"}, saved)) << "a schedule is given, so it waits for that only";
}

TEST(RuleMatch, EveryConditionMustHold) {
  EXPECT_TRUE(
      accepts({}, saved, {{"payload.path", Operator::matches, "_test"}, {"type", Operator::eq, "file.modify"}}));
  EXPECT_FALSE(accepts({}, saved, {{"payload.path", Operator::matches, "_test"}, {"type", Operator::eq, "other"}}));
}

TEST(RuleMatch, ComparesNumbersAsNumbersAndTextsAsTexts) {
  EXPECT_TRUE(holds("payload.exitCode", Operator::eq, 7));
  EXPECT_TRUE(holds("payload.exitCode", Operator::eq, 7.0));
  EXPECT_FALSE(holds("payload.exitCode", Operator::eq, "7"));
  EXPECT_TRUE(holds("payload.exitCode", Operator::neq, "7"));
  EXPECT_TRUE(holds("payload.exitCode", Operator::gt, 6.5));
  EXPECT_FALSE(holds("payload.exitCode", Operator::gt, 7));
  EXPECT_TRUE(holds("payload.exitCode", Operator::gte, 7));
  EXPECT_TRUE(holds("payload.exitCode", Operator::lte, 7));
  EXPECT_FALSE(holds("payload.exitCode", Operator::lt, 7));
  EXPECT_FALSE(holds("payload.taskId", Operator::lt, 4)) << "different things";
  EXPECT_TRUE(holds("payload.exitCode", Operator::matches, "^7$"));
}

TEST(RuleMatch, ContainsIsForPartsOfTexts) {
  EXPECT_TRUE(holds("payload.taskId", Operator::contains, "sk-"));
  EXPECT_FALSE(holds("payload.taskId", Operator::contains, "x"));
  EXPECT_FALSE(holds("payload.exitCode", Operator::contains, 7));
}

TEST(RuleMatch, WhatIsNotThereIsOnlyDifferentOrAbsent) {
  for (const char* field : {"payload.signal", "payload.other", "other", "payload."}) {
    EXPECT_TRUE(holds(field, Operator::not_exists)) << field;
    EXPECT_TRUE(holds(field, Operator::neq, 1)) << field;
    for (const Operator op : {Operator::eq, Operator::contains, Operator::gt, Operator::lt, Operator::gte,
                              Operator::lte, Operator::exists}) {
      EXPECT_FALSE(holds(field, op)) << field;
    }
    EXPECT_FALSE(holds(field, Operator::matches, ".*")) << field;
  }
  EXPECT_TRUE(holds("payload.exitCode", Operator::exists));
}

TEST(RuleMatch, KnowsWhichFilesAreWorthWatching) {
  const auto wants = [](const Trigger& trigger, std::string_view path) {
    return RuleMatch::of({.id = "r", .trigger = trigger, .action = {}}).value().wants_file(path);
  };
  EXPECT_TRUE(wants({}, "a"));
  EXPECT_TRUE(wants({.type = "file.delete", .pattern = "*.c"}, "a.c"));
  EXPECT_FALSE(wants({.type = "file.delete", .pattern = "*.c"}, "a.h"));
  EXPECT_FALSE(wants({.type = "task.failed"}, "a"));
  EXPECT_FALSE(wants({.cron = "* * * * *"}, "a"));
}

TEST(RuleMatch, SaysWhatCannotBeRead) {
  EXPECT_EQ(fault({.pattern = "a{"}), "rule r: a { in a glob has no }");
  EXPECT_EQ(fault({.cron = "61 * * * *"}), "rule r: the minute is 0 to 59, not \"61\"");
  EXPECT_EQ(fault({}, {{"type", Operator::matches, "("}}), "rule r: missing ) at '('");
}

}  // namespace
}  // namespace duet::automation
