#include "duet/peer/answer_queue.h"

#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "duet/peer/connection_fixture_test.h"

namespace duet::peer {
namespace {

/// A conversation with a method `durable`, whose answers are late and hold nobody up.
class AnswerQueueTest : public ::testing::Test {
 protected:
  AnswerQueueTest() {
    c.methods
        .add("durable", "", {"size"},
             [this](std::optional<std::int64_t>, Reply<> reply) { c.replies.push_back(std::move(reply)); })
        .pipelined();
    c.open();
  }

  void answer(std::size_t which, int value) { c.replies.at(which).ok(value); }

  TestConnection c;
};

TEST_F(AnswerQueueTest, LaterRequestsAreHandledButAnsweredInTheirTurn) {
  EXPECT_EQ(c.say({request("1", "echo", "[1]"), request("2", "durable"), request("3", "echo", "[3]"),
                   request("4", "durable"), request("5", "missing"), notification("note", "[6]")}),
            Strings{result("1", "[1]")});
  EXPECT_EQ(c.notes, Strings{"[6]"});
  answer(1, 40);
  c.turn();
  EXPECT_EQ(c.heard(), Strings{});
  answer(0, 20);
  c.turn();
  EXPECT_EQ(c.heard(), (Strings{result("2", "20"), result("3", "[3]"), result("4", "40"),
                                error("5", -32601, "Method not found")}));
  EXPECT_EQ(c.connection->load(), 0U);
}

TEST_F(AnswerQueueTest, AnAnswerThatIsAwaitedKeepsItsPlaceToo) {
  EXPECT_EQ(c.say({request("1", "durable"), request("2", "late"), request("3", "durable")}), Strings{});
  ASSERT_EQ(c.replies.size(), 2U);
  c.replies.at(1).ok(2);
  c.turn();
  EXPECT_EQ(c.replies.size(), 3U);  // 3 has begun
  EXPECT_EQ(c.heard(), Strings{});
  answer(0, 1);
  answer(2, 3);
  c.turn();
  EXPECT_EQ(c.heard(), (Strings{result("1", "1"), result("2", "2"), result("3", "3")}));
}

TEST_F(AnswerQueueTest, ABatchBeginsAllItsMembersAtOnce) {
  EXPECT_EQ(c.say({request("0", "durable"),
                   '[' + request("1", "durable") + ',' + request("2", "echo", "[2]") + ',' + notification("durable") +
                       ',' + request("3", "durable") + ']',
                   request("4", "echo")}),
            Strings{});
  ASSERT_EQ(c.replies.size(), 4U);
  answer(3, 3);
  answer(1, 1);
  c.turn();
  answer(2, 9);  // a notification's
  c.turn();
  EXPECT_EQ(c.heard(), Strings{});
  answer(0, 0);
  c.turn();
  EXPECT_EQ(c.heard(),
            (Strings{result("0", "0"), '[' + result("1", "1") + ',' + result("2", "[2]") + ',' + result("3", "3") + ']',
                     result("4", "null")}));
}

TEST_F(AnswerQueueTest, RefusalsAndForgottenRepliesAreAnswersToo) {
  c.say({request("1", "durable"), request("2", "durable"), request("3", "durable", "[true]"), request("4", "durable")});
  ASSERT_EQ(c.replies.size(), 3U);
  c.replies.erase(c.replies.begin() + 1);
  c.replies.at(1).fail({-32005, "Not today"});
  c.replies.at(0).ok(1);
  c.turn();
  EXPECT_EQ(
      c.heard(),
      (Strings{result("1", "1"), internal("2"),
               error("3", -32602, "Invalid params", R"({"param":"size","expected":"integer","received":"boolean"})"),
               error("4", -32005, "Not today")}));
}

TEST_F(AnswerQueueTest, ACallerThatGoesIsTold) {
  c.say({request("1", "durable"), '[' + request("2", "durable") + ']'});
  int told = 0;
  for (Reply<>& reply : c.replies) reply.on_abandoned([&] { ++told; });
  c.connection->close();
  EXPECT_EQ(told, 2);
  answer(0, 1);
  answer(1, 2);
}

TEST_F(AnswerQueueTest, WhatIsHeldCountsAsLoad) {
  const std::string large = '"' + std::string(10'000, 'x') + '"';
  c.say({request("1", "durable"), request("2", "echo", '[' + large + ']')});
  EXPECT_GT(c.connection->load(), 10'000U);
  answer(0, 1);
  c.turn();
  EXPECT_EQ(c.heard().size(), 2U);
  EXPECT_EQ(c.connection->load(), 0U);
}

}  // namespace
}  // namespace duet::peer
