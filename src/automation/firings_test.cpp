#include "automation/firings.h"

#include <string>

#include <gtest/gtest.h>

#include "duet/rpc/value.h"

namespace duet::automation {
namespace {

Firing firing(Firings& firings, const std::string& rule, const std::string& reason = {}) {
  return {.id = firings.next_id(), .rule_id = rule, .reason = reason};
}

TEST(Firings, AreShownNewestFirst) {
  Firings firings;
  Firing fired = firing(firings, "a");
  fired.task_id = "task-1";
  fired.count = 3;
  firings.add(fired);
  firings.add(firing(firings, "b", "cooldown"));
  EXPECT_EQ(rpc::to_text(firings.shown()),
            R"([{"id":"firing-2","ruleId":"b","at":"1970-01-01T00:00:00.000Z","outcome":"held","count":1,)"
            R"("reason":"cooldown"},{"id":"firing-1","ruleId":"a","at":"1970-01-01T00:00:00.000Z",)"
            R"("outcome":"fired","count":3,"taskId":"task-1"}])");
}

TEST(Firings, ABusyRulePushesOutOnlyItsOwn) {
  Firings firings;
  firings.add(firing(firings, "quiet"));
  Firing waiting = firing(firings, "busy", "approval");
  waiting.awaiting = Work{.notice = "text"};
  firings.add(waiting);
  for (int i = 0; i < 500; ++i) firings.add(firing(firings, "busy", "cooldown"));
  EXPECT_EQ(firings.all().size(), Firings::most_kept);
  EXPECT_EQ(firings.all().back().rule_id, "quiet");
  EXPECT_NE(firings.find("firing-2"), nullptr) << "it can still be approved";
  EXPECT_EQ(firings.find("firing-3"), nullptr);
  EXPECT_EQ(firings.all().front().id, "firing-502");
}

TEST(Firings, EvenThoseThatWaitAreBounded) {
  Firings firings;
  for (int i = 0; i < 500; ++i) {
    Firing waiting = firing(firings, "busy", "approval");
    waiting.awaiting = Work{.notice = "text"};
    firings.add(waiting);
  }
  EXPECT_EQ(firings.all().size(), Firings::most_kept);
  EXPECT_EQ(firings.all().front().id, "firing-500");
}

TEST(Firings, ComeBackAsTheyWereSaved) {
  Firings firings;
  Firing waiting = firing(firings, "a", "approval");
  waiting.at = base::UtcTime(std::chrono::milliseconds(1'700'000'000'123));
  waiting.awaiting = Work{.submission = task::Submission{.prompt = "do", .agent = "shell", .env = {{"X", "y"}}}};
  firings.add(waiting);
  Firing notice = firing(firings, "b", "approval");
  notice.awaiting = Work{.notice = "hello"};
  firings.add(notice);

  Firings back;
  back.load(rpc::parse_value(rpc::to_text(firings.save())).as_object());
  EXPECT_EQ(rpc::to_text(back.save()), rpc::to_text(firings.save()));
  EXPECT_EQ(back.find("firing-1")->awaiting->submission->env.at("X"), "y");
  EXPECT_EQ(back.find("firing-2")->awaiting->notice, "hello");
  EXPECT_EQ(back.next_id(), "firing-3");
}

}  // namespace
}  // namespace duet::automation
