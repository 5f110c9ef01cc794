#include "duet/peer/dispatcher.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "duet/peer/connection_fixture_test.h"
#include "duet/peer/memory_use_test.h"

namespace duet::peer {
namespace {

using namespace std::chrono_literals;

TEST(Dispatcher, AnswersInTheOrderOfTheRequests) {
  TestConnection c;
  c.open();
  EXPECT_EQ(c.say({request("1", "echo", "[1]"), request("2", "missing"), request("3", "refuse"), request("4", "crash"),
                   request("5", "crash_oddly"), request("6", "drop"), request("7", "echo")}),
            (Strings{result("1", "[1]"), error("2", -32601, "Method not found"),
                     error("3", -32001, "No", R"({"why":"because"})"), internal("4"), internal("5"), internal("6"),
                     result("7", "null")}));
}

TEST(Dispatcher, WhatGoesWrongInsideStaysInTheLog) {
  TestConnection c;
  c.open();
  for (const std::string& answer : c.say({request("1", "crash"), request("2", "drop")})) {
    EXPECT_EQ(answer.find("secret"), std::string::npos);
  }
  EXPECT_EQ(c.tape.lines(), (Strings{R"(error Handler failed method="crash" id=1 what="the secret of the inside")",
                                     R"(error Handler let go of its reply method="drop" id=2)"}));
}

TEST(Dispatcher, NotificationsAreNeverAnsweredAndTheirFailuresAreLogged) {
  TestConnection c;
  c.open();
  EXPECT_EQ(c.say({notification("echo"), notification("missing"), notification("refuse"), notification("crash"),
                   notification("crash_oddly"), notification("drop")}),
            Strings{});
  EXPECT_EQ(c.tape.lines(), (Strings{R"(warn  Method not found method="missing")", R"(error No method="refuse")",
                                     R"(error Handler failed method="crash" what="the secret of the inside")",
                                     R"(error Handler failed method="crash_oddly")",
                                     R"(error Handler let go of its reply method="drop")"}));
}

TEST(Dispatcher, NotificationsOfUnknownMethodsGoToWhoeverWantsThem) {
  TestConnection c;
  Strings heard;
  c.events.conversation.on_notification = [&](std::string_view method, std::string_view params) {
    heard.push_back(std::string(method) + std::string(params));
  };
  c.open();
  EXPECT_EQ(c.say({notification("first", "[1]"), notification("second"), request("1", "missing")}),
            Strings{error("1", -32601, "Method not found")});
  EXPECT_EQ(heard, (Strings{"first[1]", "second"}));
}

TEST(Dispatcher, WhatAListenerToUnknownNotificationsThrowsHurtsNobody) {
  TestConnection c;
  c.events.conversation.on_notification = [](std::string_view, std::string_view) { throw std::runtime_error("oops"); };
  c.open();
  EXPECT_EQ(c.say({notification("unknown"), request("1", "echo")}), Strings{result("1", "null")});
  EXPECT_EQ(c.tape.lines(), Strings{R"(error Handler failed method="unknown" what="oops")"});
}

TEST(Dispatcher, EveryMessageIsADebugLine) {
  TestConnection c;
  c.tape.log().set_level(base::Level::debug);
  c.open();
  c.say({request("1", "echo"), notification("note")});
  EXPECT_EQ(c.tape.lines(), (Strings{R"(debug Request method="echo" id=1)", R"(debug Notification method="note")"}));
}

TEST(Dispatcher, ALateAnswerHoldsBackWhatCameAfterIt) {
  TestConnection c;
  Strings put_off;
  c.events.conversation.on_waiting = [&](std::string_view method) { put_off.emplace_back(method); };
  c.open();
  EXPECT_EQ(c.say({request("1", "late"), request("2", "echo", "[2]"), notification("note", "[3]"), "nonsense", "[]",
                   request("4", "late"), request("5", "echo")}),
            Strings{});
  EXPECT_EQ(put_off, (Strings{"echo", "note", "late", "echo"}));
  EXPECT_EQ(c.notes, Strings{});
  EXPECT_TRUE(c.connection->conversation().owes_answer());
  EXPECT_GT(c.connection->load(), 0U);
  c.answer_late(R"("first")");
  c.turn();
  EXPECT_EQ(
      c.heard(),
      (Strings{result("1", R"("first")"), result("2", "[2]"),
               error("null", -32700, "Parse error", R"({"reason":"invalid-json"})"),
               error("null", -32600, "Invalid Request", R"({"reason":"malformed-envelope","detail":"empty batch"})")}));
  EXPECT_EQ(c.notes, Strings{"[3]"});
  EXPECT_EQ(c.begun, (Strings{"1", "4"}));
  c.answer_late("4");
  c.turn();
  EXPECT_EQ(c.heard(), (Strings{result("4", "4"), result("5", "null")}));
  EXPECT_EQ(c.connection->load(), 0U);
}

TEST(Dispatcher, ALateHandlerMayAnswerAtOnce) {
  TestConnection c;
  c.add_late("prompt", [](const Request&, Reply<> reply) { reply.ok(true); });
  c.add_late("unwilling", [](const Request&, Reply<> reply) { reply.fail({-32005, "Not today"}); });
  c.open();
  EXPECT_EQ(c.say({request("1", "prompt"), request("2", "unwilling"), request("3", "echo")}),
            (Strings{result("1", "true"), error("2", -32005, "Not today"), result("3", "null")}));
}

TEST(Dispatcher, ALateNotificationHoldsBackToo) {
  TestConnection c;
  c.open();
  EXPECT_EQ(c.say({notification("late"), request("1", "echo")}), Strings{});
  c.replies.front().fail({-32005, "Not today"});
  c.turn();
  EXPECT_EQ(c.heard(), Strings{result("1", "null")});
  EXPECT_EQ(c.tape.lines(), Strings{R"(error Not today method="late")"});
}

TEST(Dispatcher, ALateHandlerThatThrowsAfterItGaveItsReplyAwayAnswersOnce) {
  TestConnection c;
  c.add_late("keep_and_throw", [&](const Request&, Reply<> reply) {
    c.replies.push_back(std::move(reply));
    throw rpc::Error(-32005, "Not today");
  });
  c.open();
  EXPECT_EQ(c.say({request("1", "keep_and_throw"), request("2", "echo")}),
            (Strings{error("1", -32005, "Not today"), result("2", "null")}));
  EXPECT_TRUE(c.replies.front().abandoned());
  c.answer_late("1");
  c.turn();
  EXPECT_EQ(c.heard(), Strings{});
}

TEST(Dispatcher, ALateHandlerThatThrowsAfterItAnsweredHasAnswered) {
  TestConnection c;
  c.add_late("answer_and_throw", [&](const Request&, Reply<> reply) {
    reply.ok(1);
    throw std::runtime_error("too late");
  });
  c.add_late("answer_and_refuse", [&](const Request&, Reply<> reply) {
    reply.ok(2);
    throw rpc::Error(-32005, "Not today");
  });
  c.open();
  EXPECT_EQ(c.say({request("1", "answer_and_throw"), request("2", "answer_and_refuse"), request("3", "echo")}),
            (Strings{result("1", "1"), result("2", "2"), result("3", "null")}));
  EXPECT_EQ(c.tape.lines().size(), 2U);
}

TEST(Dispatcher, AResponseActsAtOnceWhileAnAnswerIsAwaited) {
  TestConnection c;
  c.open();
  c.say({request("1", "late"), request("2", "echo")});
  std::string came;
  c.connection->call("ask", {}, 30s, [&](const Outcome& outcome) { came = outcome.result; });
  c.turn();
  EXPECT_EQ(c.heard(), Strings{request("1", "ask")});
  c.say({result("1", "\"yes\"")});
  EXPECT_EQ(came, "\"yes\"");
  EXPECT_TRUE(c.connection->conversation().owes_answer());
}

TEST(Cancel, TheRequestThatRunsIsAnsweredAtOnceAndItsHandlerToldSo) {
  TestConnection c;
  c.open();
  c.say({request("1", "late"), request("2", "echo")});
  int told = 0;
  c.replies.front().on_abandoned([&] { ++told; });
  EXPECT_EQ(c.say({cancel("1")}), (Strings{cancelled("1"), result("2", "null")}));
  EXPECT_EQ(told, 1);
  EXPECT_TRUE(c.replies.front().abandoned());
  c.answer_late("1");
  c.turn();
  EXPECT_EQ(c.heard(), Strings{});
}

TEST(Cancel, ARequestThatWaitsIsAnsweredInItsPlaceAndNeverBegins) {
  TestConnection c;
  c.open();
  EXPECT_EQ(c.say({request("1", "late"), request("2", "late"), request(R"("b")", "echo"), request("4", "echo"),
                   cancel("2"), cancel(R"("b")"), cancel(R"("unknown")"), cancel("9")}),
            Strings{});
  c.answer_late("1");
  c.turn();
  EXPECT_EQ(c.heard(), (Strings{result("1", "1"), cancelled("2"), cancelled(R"("b")"), result("4", "null")}));
  EXPECT_EQ(c.begun, Strings{"1"});
}

TEST(Cancel, ConcernsOnlyWhatCameBeforeIt) {
  TestConnection c;
  c.open();
  EXPECT_EQ(c.say({request("1", "late"), cancel("2"), request("2", "echo", "[1]"), request("3", "echo"), cancel("3"),
                   request("3", "echo", "[2]")}),
            Strings{});
  c.answer_late("1");
  c.turn();
  EXPECT_EQ(c.heard(), (Strings{result("1", "1"), result("2", "[1]"), cancelled("3"), result("3", "[2]")}));
  EXPECT_EQ(c.say({request("3", "echo")}), Strings{result("3", "null")});
}

TEST(Cancel, OfNullIsForARequestWhoseIdIsNullAndForNothingElse) {
  TestConnection c;
  c.open();
  EXPECT_EQ(
      c.say({request("1", "late"), notification("note", "[1]"), "[" + request("2", "echo") + "]", cancel("null")}),
      Strings{});
  c.answer_late("1");
  c.turn();
  EXPECT_EQ(c.heard(), (Strings{result("1", "1"), "[" + result("2", "null") + "]"}));
  EXPECT_EQ(c.notes, Strings{"[1]"});
  EXPECT_EQ(c.say({request("null", "late"), cancel("null")}), Strings{cancelled("null")});
}

TEST(Cancel, OfNothingOrOfWhatIsAnsweredDoesNothing) {
  TestConnection c;
  c.open();
  EXPECT_EQ(
      c.say({request("1", "echo"), cancel("1"), notification("$/cancelRequest"), notification("$/cancelRequest", "[1]"),
             notification("$/cancelRequest", "{}"), request("2", "echo")}),
      (Strings{result("1", "null"), result("2", "null")}));
}

TEST(Cancel, ReachesTheMembersOfABatch) {
  TestConnection c;
  c.open();
  EXPECT_EQ(c.say({"[" + request("1", "late") + "," + request("2", "late") + "," + request("3", "echo") + "]",
                   "[" + request("4", "echo") + "," + request("5", "echo") + "]", cancel("2"), cancel("5")}),
            Strings{});
  EXPECT_EQ(c.say({cancel("1")}),
            (Strings{"[" + cancelled("1") + "," + cancelled("2") + "," + result("3", "null") + "]",
                     "[" + result("4", "null") + "," + cancelled("5") + "]"}));
  EXPECT_EQ(c.begun, Strings{"1"});
}

TEST(Cancel, InsideABatchActsAtOnceToo) {
  TestConnection c;
  c.open();
  EXPECT_EQ(c.say({"[" + request("1", "late") + "," + cancel("1") + "," + request("2", "echo") + "]"}),
            Strings{"[" + cancelled("1") + "," + result("2", "null") + "]"});
  EXPECT_EQ(c.say({request("3", "late"), "[" + request("4", "echo") + "," + cancel("3") + "]"}),
            (Strings{cancelled("3"), "[" + result("4", "null") + "]"}));
}

TEST(Cancel, WhatItsListenerThrowsHurtsNobody) {
  TestConnection c;
  c.open();
  c.say({request("1", "late"), request("2", "echo")});
  c.replies.front().on_abandoned([] { throw std::runtime_error("oops"); });
  EXPECT_EQ(c.say({cancel("1"), request("3", "echo")}),
            (Strings{cancelled("1"), result("2", "null"), result("3", "null")}));
  EXPECT_EQ(c.tape.lines().back(), R"(error Handler failed method="late" what="oops")");
}

TEST(Cancel, WhatWasCancelledIsStillCountedUntilItsTurn) {
  TestConnection c;
  c.open();
  c.say({request("1", "late")});
  const std::string large = request("2", "echo", "[\"" + std::string(1'000'000, 'x') + "\"]");
  for (int i = 0; i < 20; ++i) {
    c.send(large);
    c.send(cancel("2"));
    c.turn();
  }
  ASSERT_TRUE(c.turn_until([&] { return c.far->sent_all(); }));
  c.turn(100);
  const std::size_t before = allocated_bytes();
  const std::size_t load = c.connection->load();
  c.answer_late("1");
  ASSERT_TRUE(c.turn_until([&] { return c.heard().size() >= 21 || c.connection->load() == 0; }));
  c.turn(100);
  EXPECT_LE(before - std::min(before, allocated_bytes()), load + 1'000'000);
}

}  // namespace
}  // namespace duet::peer
