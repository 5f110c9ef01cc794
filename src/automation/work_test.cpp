#include "automation/work.h"

#include <gtest/gtest.h>

#include "duet/rpc/value.h"

namespace duet::automation {
namespace {

const Event saved{
    .source = "watch", .type = "file.modify", .payload = {{"path", "a.c"}}, .depth = 2, .cause = "task-7"};

TEST(Work, ATaskKnowsItsEventAndCarriesItsOrigin) {
  const Rule rule{.id = "r", .trigger = {}, .action = {.agent = "shell", .prompt = "make", .priority = -1}};
  const Work work = std::get<Work>(work_of(rule, saved, "firing-3", 5));
  ASSERT_TRUE(work.submission);
  EXPECT_EQ(work.submission->agent, "shell");
  EXPECT_EQ(work.submission->priority, -1);
  EXPECT_EQ(work.submission->env, (process::Environment{{"DUET_SOURCE", "watch"},
                                                        {"DUET_TYPE", "file.modify"},
                                                        {"DUET_PATH", "a.c"},
                                                        {"DUET_RULE", "r"},
                                                        {"DUET_COUNT", "5"}}));
  EXPECT_EQ(rpc::to_text(work.submission->metadata),
            R"({"automation":{"ruleId":"r","firingId":"firing-3","depth":3,"cause":"task-7"}})");
  const std::optional<Origin> origin = origin_of(task::Task{.metadata = work.submission->metadata});
  ASSERT_TRUE(origin);
  EXPECT_EQ(origin->rule_id, "r");
  EXPECT_EQ(origin->depth, 3U);
  EXPECT_FALSE(origin_of(task::Task{.metadata = {{"key", "x"}}}));
}

TEST(Work, ComesBackAsItWasSaved) {
  const Rule rule{.id = "r", .trigger = {}, .action = {.prompt = "Fix {{payload.path}}"}};
  const Work work = std::get<Work>(work_of(rule, saved, "firing-3", 1));
  const Work back = load_work(save_work(work));
  EXPECT_EQ(task::to_body(*back.submission), task::to_body(*work.submission));
  EXPECT_EQ(back.submission->prompt, "Fix a.c");
  EXPECT_EQ(load_work(save_work({.notice = "hello"})).notice, "hello");
}

}  // namespace
}  // namespace duet::automation
