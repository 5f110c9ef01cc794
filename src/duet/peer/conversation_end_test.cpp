#include <chrono>
#include <ctime>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "duet/peer/conversation.h"
#include "duet/peer/conversation_fixture_test.h"

namespace duet::peer {
namespace {

using namespace std::chrono_literals;

std::string ids_of(const std::string& lines) {
  std::string ids;
  for (std::size_t at = lines.find("\"id\":"); at != std::string::npos; at = lines.find("\"id\":", at + 1)) {
    ids += lines.substr(at + 5, lines.find_first_of(",}", at) - at - 5) + ' ';
  }
  return ids;
}

TEST(ConversationBound, AnswersBehindOneThatIsAwaitedAreBounded) {
  Protocol protocol = Protocol::json_lines();
  protocol.max_waiting = 10'000;
  Talk t(protocol);
  t.receive(request("1", "late"));
  t.receive(request("2", "pipelined"));
  int handled = 0;
  t.methods.add("long", [&] {
    ++handled;
    return std::string(1000, 'x');
  });
  for (int i = 0; i < 9; ++i) t.receive(request("3", "long"));
  t.talk->limit_waiting(3000);
  t.replies[0].ok(true);
  t.talk->resume();
  EXPECT_EQ(ids_of(t.output()), "1 ");
  EXPECT_GE(handled, 2);
  EXPECT_LE(handled, 3) << "more than 3,000 bytes of answers wait";
  EXPECT_FALSE(t.talk->can_handle_more());
  t.replies[1].ok(true);
  std::string heard;
  for (int i = 0; i < 20; ++i) {
    heard += t.output();
    t.talk->resume();
  }
  EXPECT_EQ(ids_of(heard), "2 3 3 3 3 3 3 3 3 3 ");
  EXPECT_EQ(handled, 9);
  EXPECT_EQ(t.talk->load(), 0U);
}

TEST(ConversationBound, ABatchCountsTheAnswersThatWaitForAnEarlierOne) {
  Protocol protocol = Protocol::json_lines();
  protocol.max_waiting = 3000;
  Talk t(protocol);
  const std::string kilobyte = "[\"" + std::string(1000, 'x') + "\"]";
  std::string batch = '[' + request("1", "pipelined");
  for (int i = 2; i < 8; ++i) batch += ',' + request(std::to_string(i), "echo", kilobyte);
  t.receive(batch + ']');
  t.replies[0].ok(true);
  t.talk->resume();
  const std::string answer = t.output();
  EXPECT_EQ(ids_of(answer), "1 2 3 4 5 6 7 ");
  EXPECT_NE(answer.find("answers-too-large"), std::string::npos);
  EXPECT_LT(answer.size(), 6000U);
}

TEST(ConversationBound, CountsTheIdsOfWhatIsAwaited) {
  const std::string id = '"' + std::string(5000, 'i') + '"';
  for (const char* method : {"late", "pipelined"}) {
    Talk t;
    t.receive(request(id, method));
    EXPECT_GE(t.talk->load(), 5000U) << method;
    t.replies[0].ok(true);
    t.output();
    EXPECT_EQ(t.talk->load(), 0U) << method;
  }
}

TEST(ConversationBound, OneThatHoldsALargeIdStillReadsItsCancel) {
  Talk t;
  t.talk->limit_waiting(1);
  const std::string id = '"' + std::string(5000, 'i') + '"';
  t.receive(request(id, "late"));
  EXPECT_TRUE(t.talk->wants_input());
}

TEST(ConversationBound, ACallOnAnIdleConversationIsSentHoweverLittleMayWait) {
  Talk t;
  t.talk->limit_waiting(1);
  t.talk->call("ask", rpc::Json(), 1h, [](const Outcome&) {});
  EXPECT_NE(t.output(), "");
}

class EndedConversation : public testing::TestWithParam<bool> {
 protected:
  static void end(Talk& t) { GetParam() ? t.talk->stop() : t.talk->end_of_input(start); }
};
INSTANTIATE_TEST_SUITE_P(BothWays, EndedConversation, testing::Bool());

TEST_P(EndedConversation, ACallWhoseAnswerCannotComeAnyMoreEnds) {
  Talk t;
  std::vector<Outcome> outcomes;
  t.receive(request("1", "late"));
  t.talk->call("sent", rpc::Json(), base::Duration::max(), [&](const Outcome& came) {
    outcomes.push_back(came);
    t.replies[0].ok("no answer");
  });
  t.output();
  t.talk->call("unsent", rpc::Json(), base::Duration::max(), [&](const Outcome& came) { outcomes.push_back(came); });
  end(t);
  EXPECT_TRUE(outcomes.empty());
  t.talk->resume();
  ASSERT_EQ(outcomes.size(), 2U);
  EXPECT_EQ(outcomes[0].cause, Outcome::Cause::disconnected);
  EXPECT_TRUE(outcomes[0].was_sent);
  EXPECT_FALSE(outcomes[1].was_sent);
  EXPECT_EQ(t.output(), result("1", "\"no answer\"") + '\n');
  EXPECT_TRUE(t.talk->is_over());
}

TEST_P(EndedConversation, WhatIsAskedThenWasNeverSent) {
  Talk t;
  end(t);
  const CallId call = t.talk->call("ask", rpc::Json(), 1h, [](const Outcome&) { ADD_FAILURE(); });
  EXPECT_TRUE(t.talk->cancel(call));
  EXPECT_EQ(t.output(), "");
  bool told = false;
  t.talk->call("ask", rpc::Json(), 0s, [&](const Outcome& came) {
    EXPECT_EQ(came.cause, Outcome::Cause::disconnected);
    EXPECT_FALSE(came.was_sent);
    told = true;
  });
  t.talk->tick(start);
  EXPECT_TRUE(told);
}

TEST(ConversationEnd, ACallThatWasRefusedForWantOfRoomWasNotSent) {
  Protocol protocol = Protocol::json_lines();
  protocol.max_waiting = 1;
  Talk t(protocol);
  std::vector<bool> sent;
  const auto note = [&](const Outcome& came) { sent.push_back(came.was_sent); };
  t.talk->call("first", rpc::Json(), 1h, note);
  t.output();
  t.talk->call("second", rpc::Json(), 1h, note);
  t.talk->close();
  EXPECT_EQ(sent, (std::vector{true, false}));
}

// Counted in processor time: what is quadratic would take hundreds of times as long.
TEST(ConversationEnd, ManyCallsEndInAboutTheTimeThatTheyWereMadeIn) {
  Talk t;
  constexpr int count = 100'000;
  int ended = 0;
  const std::clock_t began = std::clock();
  for (int i = 0; i < count; ++i) {
    t.talk->call("ask", rpc::Json(), 1h, [&](const Outcome&) { ++ended; });
    if (i == count / 4) t.output();
    if (i == count / 2) t.talk->stop();  // the rest is never sent
  }
  const std::clock_t made = std::clock();
  t.talk->resume();
  const std::clock_t done = std::clock();
  EXPECT_EQ(ended, count);
  EXPECT_LT(done - made, 20 * (made - began + CLOCKS_PER_SEC / 1000));
}

TEST(ConversationEnd, OneThatTimesOutMayCancelTheNext) {
  Protocol protocol = Protocol::json_lines();
  protocol.cancels_late_calls = true;
  Talk t(protocol);
  CallId second = 0;
  t.talk->call("first", rpc::Json(), 1s, [&](const Outcome&) { t.talk->cancel(second); });
  second = t.talk->call("second", rpc::Json(), 1s, [](const Outcome&) { ADD_FAILURE(); });
  t.output();
  t.talk->tick(start);
  t.talk->tick(start + 2s);
  const auto told = [](const char* id) {
    return std::string(R"({"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":)") + id + "}}\n";
  };
  EXPECT_EQ(t.output(), told("1") + told("2"));
}

TEST(ConversationEnd, NothingIsAskedAnyMoreWhileItIsDestroyed) {
  Talk t;
  Conversation* const talk = &*t.talk;
  int outcomes = 0;
  std::vector<CallId> calls;
  std::function<void(const Outcome&)> ask_again = [&](const Outcome&) {
    ++outcomes;
    calls.push_back(talk->call("again", rpc::Json(), 1h, ask_again));
  };
  t.talk->call("first", rpc::Json(), 1h, ask_again);
  t.talk->close();  // the first call has ended, and the second has begun
  EXPECT_EQ(outcomes, 1);
  t.talk.reset();
  EXPECT_EQ(outcomes, 2);
  EXPECT_EQ(calls, (std::vector<CallId>{2, 0}));
}

TEST(ConversationEnd, NothingIsReadOnceItIsClosed) {
  Talk t;
  t.methods.add("vanish", [](const Request& asked) { asked.conversation.close(); });
  {
    const std::string lines = request("1", "vanish") + '\n' + request("2", "echo") + '\n';
    t.talk->receive(lines, start);
  }
  t.receive(request("3", "echo"));
  EXPECT_EQ(t.output(), "");
}

TEST(ConversationEnd, OneThatIsClosedByWhatHadToWaitWritesNothing) {
  Talk t;
  t.methods.add("vanish", [](const Request& asked) { asked.conversation.close(); });
  t.receive(request("1", "late"));
  t.receive(request("2", "vanish"));
  t.replies[0].ok(true);
  t.talk->resume();
  EXPECT_EQ(t.output(), "");
}

TEST(ConversationEnd, AStoppedBatchIsAnsweredBeforeItIsOver) {
  Talk t;
  t.receive('[' + request("1", "echo") + ',' + request("2", "late") + ',' + request("3", "echo") + ']');
  t.talk->stop();
  t.replies[0].ok(true);
  EXPECT_FALSE(t.talk->is_over());
  t.talk->resume();
  EXPECT_EQ(ids_of(t.output()), "1 2 ");
  EXPECT_TRUE(t.talk->is_over());
}

TEST(ConversationEnd, NothingIsBegunOnceItIsAskedToStop) {
  Talk t;
  t.receive(request("1", "late"));
  t.receive(request("2", "echo"));
  t.talk->ask_to_stop();
  t.replies[0].ok(true);
  t.talk->tick(start);
  EXPECT_EQ(ids_of(t.output()), "1 ");
}

TEST(ConversationEnd, NoMoreOfABatchIsBegunOnceItIsAskedToStop) {
  Talk t;
  t.methods.add("stop", [](const Request& asked) { asked.conversation.ask_to_stop(); });
  t.receive('[' + request("1", "echo") + ',' + request("2", "stop") + ',' + request("3", "echo") + ']');
  t.talk->resume();
  EXPECT_EQ(ids_of(t.output()), "1 2 ");
}

TEST(ConversationEvents, WhatTheOwnerThrowsIsLoggedAndTheNextMessageIsRead) {
  Talk t;
  t.events.on_waiting = [](std::string_view) { throw std::runtime_error("no"); };
  t.talk.emplace(Protocol::json_lines(), t.methods, t.events, t.tape.log());
  t.receive(request("1", "late") + '\n' + request("2", "echo", "[2]") + '\n' + request("3", "echo", "[3]"));
  t.replies[0].ok(true);
  t.talk->resume();
  EXPECT_EQ(ids_of(t.output()), "1 2 3 ");
  EXPECT_EQ(t.tape.lines(), (Strings{R"(error Callback failed what="no")", R"(error Callback failed what="no")"}));
}

TEST(CancelInABatch, ConcernsOnlyWhatStandsBeforeIt) {
  for (const bool waits : {false, true}) {
    Talk t;
    if (waits) t.receive(request("9", "late"));
    t.receive('[' + request("1", "late") + ',' + request("4", "echo") + ',' + cancel("4") + ',' + cancel("5") + ',' +
              request("5", "echo", "[5]") + ']');
    if (waits) t.replies[0].ok(true);
    t.talk->resume();
    t.replies.back().ok(true);
    t.talk->resume();
    const std::string answer = t.output();
    EXPECT_NE(answer.find(cancelled("4")), std::string::npos) << answer;
    EXPECT_NE(answer.find(result("5", "[5]")), std::string::npos) << answer;
  }
}

TEST(Cancel, TheIdsNameMayBeSpeltWithEscapes) {
  Talk t;
  t.receive(request("1", "late"));
  t.receive(R"({"jsonrpc":"2.0","method":"$/cancelRequest","params":{"\u0069d":1}})");
  EXPECT_TRUE(t.replies[0].abandoned());
}

TEST(CancelInABrokenFrame, IsRefusedAndNotObeyed) {
  Talk t(Protocol::lsp_server());
  const auto framed = [](std::string_view body, std::string_view type) {
    return "Content-Type: " + std::string(type) + "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
           std::string(body);
  };
  t.talk->receive(framed(request("1", "late"), "application/vscode-jsonrpc; charset=utf-8"), start);
  t.talk->receive(framed(cancel("1"), "text/plain"), start);
  EXPECT_FALSE(t.replies[0].abandoned());
  t.replies[0].ok(true);
  t.talk->resume();
  const std::string answers = t.output();
  EXPECT_NE(answers.find(result("1", "true")), std::string::npos) << answers;
  EXPECT_NE(answers.find("unsupported-content-type"), std::string::npos) << answers;
}

TEST(ConversationEnd, ACallThatWasAnsweredBeforeItWasSentLeavesNothingToDo) {
  Protocol protocol = Protocol::json_lines_client();
  protocol.max_waiting = 1;
  Talk t(protocol);
  const auto ignored = [](const Outcome&) {};
  t.talk->call("first", rpc::Json::view("[]"), std::chrono::hours(1), ignored);
  const CallId unsent = t.talk->call("second", rpc::Json::view("[]"), std::chrono::hours(1), ignored);
  t.receive(result(std::to_string(unsent), "true"));
  t.talk->end_of_input(start);
  t.output();
  t.talk->tick(start);
  EXPECT_EQ(t.talk->pending_calls(), 0U);
  EXPECT_FALSE(t.talk->has_more_to_do());
}

}  // namespace
}  // namespace duet::peer
