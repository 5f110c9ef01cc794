#include "app/mcp/tail_cache.h"

#include <gtest/gtest.h>

namespace duet::app::mcp {
namespace {

using boost::json::object;

object record(std::string_view state, int attempts = 1) {
  return {{"id", "task-1"}, {"state", state}, {"completedAt", "now"}, {"attempts", attempts}, {"outputDropped", false}};
}

const OutputPart tail{.offset = 0, .bytes = "end", .next = 3, .done = true};

TEST(TailCache, KnowsTheOutputOfATaskThatHasEnded) {
  TailCache cache;
  cache.keep(record("completed"), 2000, tail);
  ASSERT_NE(cache.find(record("completed"), 2000), nullptr);
  EXPECT_EQ(cache.find(record("completed"), 2000)->bytes, "end");
  EXPECT_FALSE(cache.contains("task-1", 10));
}

TEST(TailCache, ATaskThatRanAgainIsAnother) {
  TailCache cache;
  cache.keep(record("completed"), 2000, tail);
  EXPECT_EQ(cache.find(record("completed", 2), 2000), nullptr);
  EXPECT_EQ(cache.find(record("queued"), 2000), nullptr);
  object dropped = record("completed");
  dropped["outputDropped"] = true;
  EXPECT_EQ(cache.find(dropped, 2000), nullptr);
}

TEST(TailCache, WhatMayStillGrowIsNotKept) {
  TailCache cache;
  cache.keep(record("running"), 2000, tail);
  cache.keep(record("completed"), 2000, {.offset = 0, .bytes = "", .next = 0, .done = false});
  EXPECT_FALSE(cache.contains("task-1", 2000));
}

TEST(TailCache, HoldsAFew) {
  TailCache cache;
  for (int i = 0; i < 100; ++i) {
    object each = record("completed");
    each["id"] = "task-" + std::to_string(i);
    cache.keep(each, 2000, tail);
  }
  EXPECT_FALSE(cache.contains("task-0", 2000));
  EXPECT_TRUE(cache.contains("task-99", 2000));
}

}  // namespace
}  // namespace duet::app::mcp
