#include <string>

#include <gtest/gtest.h>

#include "duet/peer/connection_fixture_test.h"
#include "duet/peer/conversation_fixture_test.h"

namespace duet::peer {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view not_an_object = R"({"reason":"malformed-envelope","detail":"not an object"})";

TEST(Batch, IsAnsweredByOneArrayInOrder) {
  TestConnection c;
  c.open();
  EXPECT_EQ(
      c.say({"[" + request("1", "echo") + ", " + notification("note", "[1]") + ",7, [] , " + request("2", "missing") +
             R"(,{"jsonrpc":"2.0","id":3})" + "]"}),
      Strings{"[" + result("1", "null") + "," + error("null", -32600, "Invalid Request", not_an_object) + "," +
              error("null", -32600, "Invalid Request", not_an_object) + "," + error("2", -32601, "Method not found") +
              "," +
              error("3", -32600, "Invalid Request", R"({"reason":"malformed-envelope","detail":"method is missing"})") +
              "]"});
  EXPECT_EQ(c.notes, Strings{"[1]"});
}

TEST(Batch, OfNotificationsOnlyIsNotAnswered) {
  TestConnection c;
  c.open();
  EXPECT_EQ(
      c.say({"[" + notification("note", "[1]") + "," + notification("late") + "," + notification("note", "[2]") + "]"}),
      Strings{});
  EXPECT_EQ(c.notes, Strings{"[1]"});
  c.answer_late("0");
  c.turn();
  EXPECT_EQ(c.heard(), Strings{});
  EXPECT_EQ(c.notes, (Strings{"[1]", "[2]"}));
}

TEST(Batch, WaitsForItsLateMembersAndHoldsBackWhatFollows) {
  TestConnection c;
  c.open();
  EXPECT_EQ(c.say({"[" + request("1", "late") + "," + request("2", "echo") + "," + request("3", "late") + "]",
                   request("4", "echo")}),
            Strings{});
  c.answer_late("1");
  c.turn();
  EXPECT_EQ(c.heard(), Strings{});
  c.replies.clear();  // let go of
  c.turn();
  EXPECT_EQ(c.heard(), (Strings{"[" + result("1", "1") + "," + result("2", "null") + "," + internal("3") + "]",
                                result("4", "null")}));
}

std::string batch_of(std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) text += (i == 0 ? "[" : ",") + request(std::to_string(i), "echo");
  return text + "]";
}

TEST(Batch, HasAtMostAThousandMembers) {
  TestConnection c;
  c.open();
  std::string expected;
  for (int i = 0; i < 1000; ++i) expected += (i == 0 ? "[" : ",") + result(std::to_string(i), "null");
  EXPECT_EQ(c.say({batch_of(1000)}), Strings{expected + "]"});
  EXPECT_EQ(c.say({batch_of(1001)}),
            Strings{error("null", -32600, "Invalid Request", R"({"reason":"batch-too-large"})")});
}

TEST(Batch, ItsOwnBracketsAreNoLevelOfNesting) {
  TestConnection c;
  c.open();
  const auto nested = [](std::size_t depth) {
    return request("1", "echo", std::string(depth, '[') + std::string(depth, ']'));
  };
  EXPECT_EQ(c.say({"[" + nested(511) + "]"}),
            Strings{"[" + result("1", std::string(511, '[') + std::string(511, ']')) + "]"});
  EXPECT_EQ(c.say({"[" + nested(512) + "]"}),
            Strings{"[" + error("1", -32600, "Invalid Request", R"({"reason":"too-deep"})") + "]"});
}

TEST(Batch, WithResponsesSettlesOurCalls) {
  TestConnection c;
  c.open();
  Strings came;
  for (int i = 0; i < 2; ++i) {
    c.connection->call("ask", {}, 30s, [&](const Outcome& outcome) { came.push_back(outcome.result); });
  }
  c.turn();
  c.heard();
  EXPECT_EQ(c.say({"[" + result("2", "22") + "," + result("7", "0") + "," + result("1", "11") + "]"}), Strings{});
  EXPECT_EQ(came, (Strings{"22", "11"}));
  EXPECT_EQ(c.tape.lines(), Strings{"warn  Stray response id=7"});
}

TEST(Batch, ResponsesInOneThatWaitsActAtOnce) {
  TestConnection c;
  c.open();
  c.say({request("1", "late")});
  std::string came;
  c.connection->call("ask", {}, 30s, [&](const Outcome& outcome) { came = outcome.result; });
  c.turn();
  c.heard();
  EXPECT_EQ(c.say({"[" + request("2", "echo") + "," + result("1", "11") + "]"}), Strings{});
  EXPECT_EQ(came, "11");
  c.answer_late("1");
  c.turn();
  EXPECT_EQ(c.heard(), (Strings{result("1", "1"), "[" + result("2", "null") + "]"}));
  EXPECT_EQ(c.tape.lines(), Strings{});
}

TEST(Batch, WhoseAnswersGrowTooLargeIsNotContinued) {
  Protocol limits = Protocol::json_lines();
  limits.max_waiting = 100'000;
  TestConnection c(limits);
  int served = 0;
  c.methods.add("long", [&](const Request&) {
    ++served;
    return rpc::Json::trusted('"' + std::string(30'000, 'x') + '"');
  });
  c.open();
  std::string batch;
  for (int i = 0; i < 10; ++i) batch += (i == 0 ? "[" : ",") + request(std::to_string(i), "long");
  c.send(batch + "," + notification("note", "[1]") + "]");
  Strings heard;
  ASSERT_TRUE(c.turn_until([&] {
    heard = c.heard();
    return !heard.empty();
  }));
  EXPECT_EQ(served, 4);
  EXPECT_EQ(c.notes, Strings{"[1]"});
  EXPECT_LT(heard.front().size(), 150'000U);
  for (int i = 4; i < 10; ++i) {
    const std::string refusal =
        error(std::to_string(i), -32600, "Invalid Request", R"({"reason":"answers-too-large"})");
    EXPECT_NE(heard.front().find(refusal), std::string::npos) << i;
  }
}

TEST(Batch, ItsAnswersCanBeReadByAClientOfOurs) {
  Talk t;
  constexpr std::size_t mebibyte = 1024UL * 1024;
  int served = 0;
  t.methods.add("long", [&] {
    ++served;
    return rpc::Json::trusted('"' + std::string(16 * mebibyte, 'x') + '"');
  });
  t.receive('[' + request("1", "long") + ',' + request("2", "long") + ',' + request("3", "long") + ',' +
            request("4", "echo") + ']');
  EXPECT_EQ(served, 2);
  const std::string answer = t.output();
  EXPECT_GT(answer.size(), 32 * mebibyte);
  EXPECT_LT(answer.size(), 33 * mebibyte);
  EXPECT_LT(answer.size(), Protocol::json_lines_client().max_message);
  const std::string_view reason = R"({"reason":"answers-too-large"})";
  EXPECT_TRUE(answer.ends_with(error("3", -32600, "Invalid Request", reason) + ',' +
                               error("4", -32600, "Invalid Request", reason) + "]\n"));
}

Protocol in_small_portions() {
  Protocol protocol = Protocol::json_lines();
  protocol.read_at_once = 200;
  return protocol;
}

std::string answer_to_batch_of(std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) text += (i == 0 ? "[" : ",") + result(std::to_string(i), "null");
  return text + "]\n";
}

TEST(Batch, IsHandledInPortionsSoThatOthersGetTheirTurn) {
  Talk t(in_small_portions());
  int handled = 0;
  t.methods.add("count", [&] { ++handled; });
  t.receive('[' + request("1", "count", quoted_text(300)) + ',' + request("2", "count", quoted_text(300)) + ',' +
            request("3", "count") + ']');
  EXPECT_EQ(handled, 1);
  t.receive(request("4", "count"));
  EXPECT_EQ(handled, 1) << "it came behind the batch";
  EXPECT_LE(t.talk->deadline().value_or(start + 1h), start);
  t.talk->tick(start);
  EXPECT_EQ(handled, 2);
  EXPECT_EQ(t.output(), "");
  for (int i = 0; i < 3; ++i) t.talk->resume();
  EXPECT_EQ(handled, 4);
  EXPECT_EQ(t.output(), '[' + result("1", "null") + ',' + result("2", "null") + ',' + result("3", "null") + "]\n" +
                            result("4", "null") + '\n');
  EXPECT_EQ(t.talk->load(), 0U);
}

TEST(Batch, InPortionsIsAnsweredByOneArrayWhetherItHadToWaitOrNot) {
  for (const bool waits : {false, true}) {
    Talk t(in_small_portions());
    if (waits) t.receive(request("9", "late"));
    t.receive(batch_of(50));
    if (waits) t.replies[0].ok(true);
    int resumed = 0;
    while (t.talk->has_more_to_do() && resumed < 100) {
      t.talk->resume();
      ++resumed;
    }
    EXPECT_GE(resumed, 9);
    EXPECT_EQ(t.output(), (waits ? result("9", "true") + '\n' : "") + answer_to_batch_of(50));
    EXPECT_FALSE(t.talk->deadline());
  }
}

TEST(Batch, WhatIsUrgentInOneThatIsHandledInPortionsActsAtOnce) {
  Talk t(in_small_portions());
  std::string came;
  t.talk->call("ask", {}, 30s, [&](const Outcome& outcome) { came = outcome.result; });
  t.output();
  t.receive('[' + request("1", "echo", quoted_text(300)) + ',' + request("2", "echo") + ',' + request("3", "echo") +
            ',' + result("1", "11") + ',' + cancel("3") + ']');
  EXPECT_EQ(came, "11");
  t.receive(cancel("2"));
  t.talk->resume();
  EXPECT_EQ(t.output(), '[' + result("1", quoted_text(300)) + ',' + cancelled("2") + ',' + cancelled("3") + "]\n");
}

TEST(Batch, OfWhichOnlyAPortionHasBegunWhenItIsStoppedIsAnsweredForThat) {
  Talk t(in_small_portions());
  t.receive('[' + request("1", "echo", quoted_text(300)) + ',' + request("2", "echo") + ']');
  t.talk->stop();
  EXPECT_FALSE(t.talk->is_over());
  t.talk->resume();
  EXPECT_EQ(t.output(), '[' + result("1", quoted_text(300)) + "]\n");
  EXPECT_TRUE(t.talk->is_over());
}

TEST(Batch, CountsAsLoadWhileItWaits) {
  TestConnection c;
  c.open();
  c.say({"[" + request("1", "echo", "[\"" + std::string(10'000, 'x') + "\"]") + "," + request("2", "late") + "]"});
  EXPECT_GT(c.connection->load(), 20'000U);
  c.answer_late("2");
  c.turn();
  EXPECT_EQ(c.connection->load(), 0U);
}

}  // namespace
}  // namespace duet::peer
