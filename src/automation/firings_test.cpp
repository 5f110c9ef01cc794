#include "automation/firings.h"

#include <string>

#include <gtest/gtest.h>

#include "duet/rpc/value.h"

namespace duet::automation {
namespace {

Firing firing(Firings& firings, const std::string& rule, const std::string& reason = {}) {
  return {.number = firings.next_number(), .turn = firings.next_turn(), .rule_id = rule, .reason = reason};
}

base::UtcTime second(int n) { return base::UtcTime(std::chrono::seconds(n)); }

Firing waiting(Firings& firings, const std::string& rule) {
  Firing made = firing(firings, rule, "approval");
  made.awaiting = Work{.notice = "text"};
  return made;
}

TEST(Firings, AreShownNewestFirst) {
  Firings firings;
  Firing fired = firing(firings, "a");
  fired.task_id = "task-1";
  fired.count = 3;
  firings.put(fired);
  firings.put(firing(firings, "b", "cooldown"));
  EXPECT_EQ(rpc::to_text(firings.shown()),
            R"([{"id":"firing-2","ruleId":"b","at":"1970-01-01T00:00:00.000Z","outcome":"held","count":1,)"
            R"("reason":"cooldown"},{"id":"firing-1","ruleId":"a","at":"1970-01-01T00:00:00.000Z",)"
            R"("outcome":"fired","count":3,"taskId":"task-1"}])");
}

TEST(Firings, TheLastOneIsNotFoundByTheClockWhichMayBeSetBack) {
  Firings firings;
  for (const int at : {100, 50}) {
    Firing fired = firing(firings, "a");
    fired.at = second(at);
    firings.put(fired);
  }
  EXPECT_EQ(firings.last_fired("a"), second(50));
  Firings next;
  std::vector<Firing> kept;
  for (const Firing& one : firings.all()) kept.push_back(load_firing(name_of(one), save_firing(one)).value());
  next.load(std::move(kept), 0);
  EXPECT_EQ(next.last_fired("a"), second(50)) << "after a restart";
}

TEST(Firings, OneThatWaitedIsLaterThanItsNumberTells) {
  Firings firings;
  Firing waited = firing(firings, "a");
  Firing quick = firing(firings, "a");
  quick.at = second(2);
  firings.put(quick);
  waited.at = second(1);  // the clock was set back meanwhile
  waited.turn = firings.next_turn();
  firings.put(waited);
  EXPECT_EQ(firings.last_fired("a"), second(1));
  Firings next;
  next.load({*load_firing(name_of(waited), save_firing(waited)), *load_firing(name_of(quick), save_firing(quick))}, 2);
  EXPECT_EQ(next.last_fired("a"), second(1)) << "after a restart";
  EXPECT_EQ(next.next_turn(), 4U);
}

TEST(Firings, ABusyRulePushesOutOnlyItsOwn) {
  Firings firings;
  firings.put(firing(firings, "quiet"));
  firings.put(waiting(firings, "busy"));
  for (int i = 0; i < 500; ++i) firings.put(firing(firings, "busy", "cooldown"));
  EXPECT_EQ(firings.all().size(), Firings::most_kept);
  EXPECT_EQ(firings.all().back().rule_id, "quiet");
  EXPECT_NE(firings.find("firing-2"), nullptr) << "it can still be approved";
  EXPECT_EQ(firings.find("firing-3"), nullptr);
  EXPECT_EQ(id_of(firings.all().front()), "firing-502");
  const std::vector<Firings::Dropped> dropped = firings.take_dropped();
  EXPECT_EQ(dropped.size(), 402U);
  EXPECT_EQ(dropped.front().name, "firing/3");
  EXPECT_TRUE(firings.take_dropped().empty());
}

TEST(Firings, WhatWaitsForApprovalIsNotPushedOutByAnotherRule) {
  Firings firings;
  for (int i = 0; i < 60; ++i) firings.put(waiting(firings, "a"));
  for (int i = 0; i < 60; ++i) firings.put(firing(firings, "b", "cooldown"));
  for (std::uint64_t number = 1; number <= 60; ++number) EXPECT_NE(firings.find(number), nullptr) << number;
  EXPECT_EQ(firings.all().size(), Firings::most_kept);
  for (int i = 0; i < 40; ++i) firings.put(waiting(firings, "a"));
  EXPECT_EQ(firings.awaiting().size(), 100U);
  for (int i = 0; i < 3; ++i) {
    firings.put(firing(firings, "b", "cooldown"));
    EXPECT_EQ(firings.awaiting().size(), 100U);
    EXPECT_NE(firings.find(firings.last_number()), nullptr) << "the newest is listed";
    EXPECT_EQ(firings.all().size(), 101U);
  }
  firings.put(waiting(firings, "c"));
  EXPECT_EQ(firings.all().size(), Firings::most_kept);
  EXPECT_EQ(firings.find(1), nullptr) << "only others that wait push out one that waits";
}

TEST(Firings, FarTooManyAreLoadedInNoTime) {
  Firings firings;
  std::vector<Firing> many;
  for (int i = 0; i < 100'000; ++i) many.push_back(firing(firings, i % 3 == 0 ? "a" : "b", "cooldown"));
  many.front().awaiting = Work{.notice = "text"};
  Firings next;
  next.load(many, 0);
  EXPECT_EQ(next.all().size(), Firings::most_kept);
  EXPECT_EQ(next.take_dropped().size(), many.size() - Firings::most_kept);
  EXPECT_NE(next.find(1), nullptr);
  EXPECT_NE(next.find(100'000), nullptr);
}

TEST(Firings, EvenThoseThatWaitAreBoundedButNotWhatWasApproved) {
  Firings firings;
  Firing approved = waiting(firings, "busy");
  approved.approved = true;
  firings.put(approved);
  for (int i = 0; i < 500; ++i) firings.put(waiting(firings, "busy"));
  EXPECT_EQ(firings.all().size(), Firings::most_kept);
  EXPECT_EQ(firings.all().front().number, 501U);
  EXPECT_EQ(firings.all().back().number, 1U);
}

TEST(Firings, ComeBackAsTheyWereSaved) {
  Firings firings;
  Firing made = waiting(firings, "a");
  made.at = base::UtcTime(std::chrono::milliseconds(1'700'000'000'123));
  made.awaiting = Work{.submission = task::Submission{.prompt = "do", .agent = "shell", .env = {{"X", "\xFF"}}}};
  made.approved = true;
  const std::optional<Firing> back = load_firing(name_of(made), save_firing(made));
  ASSERT_TRUE(back);
  EXPECT_EQ(save_firing(*back), save_firing(made));
  EXPECT_EQ(back->number, 1U);
  EXPECT_EQ(back->awaiting->submission->env.at("X"), "\xFF");
  EXPECT_TRUE(back->approved);
  EXPECT_EQ(load_firing("firing/2", save_firing(waiting(firings, "b")))->awaiting->notice, "text");
  Firings next;
  next.load({*load_firing("firing/2", save_firing(firing(firings, "b"))), *back}, 7);
  EXPECT_EQ(next.all().front().number, 2U);
  EXPECT_EQ(next.next_number(), 8U);
}

TEST(Firings, WhatIsNoneIsNotTakenForOne) {
  const std::string good = save_firing({.number = 1, .rule_id = "a"});
  EXPECT_TRUE(load_firing("firing/1", good));
  for (const char* name : {"firing/", "firing/0", "firing/01", "firing/x", "other/1"}) {
    EXPECT_FALSE(load_firing(name, good)) << name;
  }
  for (const char* text : {"", "{", "[]", "{}", R"({"ruleId":3,"at":1,"count":1,"reason":"","taskId":""})"}) {
    EXPECT_FALSE(load_firing("firing/1", text)) << text;
  }
}

TEST(Firings, OneWhoseTaskWasAskedForIsAskedForAgainUnderItsKey) {
  Firings firings;
  Firing made = firing(firings, "a", "its task is asked for");
  made.approved = made.asked = true;
  made.awaiting = Work{.submission = task::Submission{.prompt = "p", .key = "rule a task.completed task-1.1"}};
  const Firing back = load_firing(name_of(made), save_firing(made)).value();
  EXPECT_TRUE(back.asked);
  EXPECT_EQ(back.awaiting->submission->key, "rule a task.completed task-1.1");
  EXPECT_TRUE(back.awaiting->submission->key_decides);
}

}  // namespace
}  // namespace duet::automation
