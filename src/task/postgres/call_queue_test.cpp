#include "task/postgres/call_queue.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace duet::task::postgres {
namespace {

Call call(const std::string& text) { return {.statement = {text, {}}, .done = {}, .deadline = {}}; }

std::vector<std::string> all_of(CallQueue& queue) {
  std::vector<std::string> texts;
  while (!queue.empty()) texts.push_back(queue.pop().statement.sql);
  return texts;
}

TEST(CallQueue, GuestsWaitBehindThoseThatBelongHere) {
  CallQueue queue;
  Call guest = call("guest");
  guest.is_guest = true;
  queue.push_back(call("first"));
  queue.push_back(std::move(guest));
  queue.push_back(call("beat"));
  EXPECT_EQ(all_of(queue), (std::vector<std::string>{"first", "beat", "guest"}));
  EXPECT_EQ(queue.bytes(), 0U);
}

TEST(CallQueue, WhatMayMoveIsTakenInOrderAndTheRestStays) {
  CallQueue queue;
  for (const std::string text : {"read one", "submit", "read two"}) {
    Call one = call(text);
    one.may_move = text.starts_with("read");
    queue.push_back(std::move(one));
  }
  EXPECT_TRUE(queue.has_movable());
  const std::vector<Call> moved = queue.take_movable();
  ASSERT_EQ(moved.size(), 2U);
  EXPECT_EQ(moved.front().statement.sql, "read one");
  EXPECT_FALSE(queue.has_movable());
  EXPECT_EQ(all_of(queue), std::vector<std::string>{"submit"});
}

}  // namespace
}  // namespace duet::task::postgres
