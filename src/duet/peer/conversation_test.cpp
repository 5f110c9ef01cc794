#include "duet/peer/conversation.h"

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "duet/peer/conversation_fixture_test.h"

namespace duet::peer {
namespace {

using namespace std::chrono_literals;

/// Whether these may be params of a call.
template <typename Params>
concept MayBeParams = requires(Conversation& talk, const Params& params) {
  talk.notify("m", params);
  talk.call("m", params, 1s, CallCallback());
};

TEST(ConversationParams, AreValuesAndNeverRawText) {
  static_assert(MayBeParams<rpc::Json> && MayBeParams<boost::json::object> && MayBeParams<std::vector<int>>);
  static_assert(!MayBeParams<std::string> && !MayBeParams<std::string_view> && !MayBeParams<char[3]>);
  const Methods none;
  Conversation talk(Protocol::json_lines_client(), none);
  talk.notify("m", std::vector{1, 2});
  talk.notify("m", {{"a", "\"\n"}});
  talk.notify("m", nullptr);
  talk.notify("m", {});
  EXPECT_EQ(talk.output(), notification("m", "[1,2]") + '\n' + notification("m", R"({"a":"\"\n"})") + '\n' +
                               notification("m") + '\n' + notification("m") + '\n');
}

TEST(Conversation, AnswersWithoutALoop) {
  Talk t;
  t.receive(request("1", "echo", "[1]"));
  EXPECT_EQ(t.output(), result("1", "[1]") + '\n');
  EXPECT_EQ(t.talk->deadline(), std::nullopt);
  EXPECT_EQ(t.talk->load(), 0U);
  EXPECT_FALSE(t.talk->is_timed());
}

TEST(Conversation, ALateAnswerWakesItsOwnerAndWhatWaitedIsHandledAtTheNextTick) {
  Talk t;
  t.receive(request("1", "late"));
  t.receive(request("2", "echo", "[2]"));
  EXPECT_EQ(t.output(), "");
  t.replies.front().ok(true);
  EXPECT_EQ(t.wakes, 1);
  EXPECT_EQ(t.talk->deadline(), base::TimePoint());
  t.talk->tick(start);
  EXPECT_EQ(t.output(), result("1", "true") + '\n' + result("2", "[2]") + '\n');
  EXPECT_EQ(t.talk->deadline(), std::nullopt);
}

TEST(Conversation, APipelinedRequestCanBeCancelled) {
  Talk t;
  t.receive(request("1", "pipelined"));
  t.receive(request("2", "pipelined"));
  bool told = false;
  t.replies[1].on_abandoned([&] { told = true; });
  t.receive(cancel("2"));
  EXPECT_TRUE(told);
  EXPECT_TRUE(t.replies[1].abandoned());
  EXPECT_EQ(t.output(), "");
  t.replies[0].ok(true);
  EXPECT_EQ(t.output(), result("1", "true") + '\n' + cancelled("2") + '\n');
}

TEST(Conversation, WhoAsksAfterTheCancelWhetherItIsWantedHearsThatItIsNot) {
  Talk t;
  t.receive(request("1", "late"));
  t.receive(cancel("1"));
  bool told = false;
  t.replies[0].on_abandoned([&] { told = true; });
  EXPECT_TRUE(told);
}

TEST(Conversation, WhoHasAnsweredIsNotToldOfACancel) {
  Talk t;
  t.receive(request("1", "late"));
  t.replies[0].ok(true);
  t.replies[0].on_abandoned([] { ADD_FAILURE(); });
  t.receive(cancel("1"));
}

TEST(Conversation, AHandlersOwnInternalErrorIsLogged) {
  Talk t;
  t.receive(request("1", "refuse_as_internal"));
  EXPECT_EQ(t.output(), error("1", -32603, "Out of luck") + '\n');
  EXPECT_EQ(t.tape.lines(), Strings{R"(error Out of luck method="refuse_as_internal" id=1)"});
}

TEST(Conversation, ABoundOfNothingLetsOneAfterAnotherThrough) {
  Protocol protocol = Protocol::json_lines();
  protocol.max_waiting = 0;
  Talk t(protocol);
  for (const std::string id : {"1", "2", "3"}) t.receive(request(id, "echo", "[1]"));
  std::string heard;
  for (int i = 0; i < 5; ++i) {
    heard += t.output();
    t.talk->tick(start);
  }
  EXPECT_EQ(heard, result("1", "[1]") + '\n' + result("2", "[1]") + '\n' + result("3", "[1]") + '\n');
}

TEST(Conversation, CountsWhatHasOnlyComeInPart) {
  Talk t;
  t.talk->receive(std::string(5000, ' ') + R"({"jsonrpc")", start);
  EXPECT_GE(t.talk->load(), 5000U);
  EXPECT_EQ(t.talk->partial_bytes(), t.talk->load());
  EXPECT_TRUE(t.talk->wants_input());
}

TEST(Conversation, AMessageThatHasOnlyComeInPartCanBeRefused) {
  Talk t;
  t.talk->receive(R"({"jsonrpc":"2.0","id":1,)", start);
  t.talk->refuse_partial_message();
  EXPECT_EQ(t.output(), error("null", -32600, "Invalid Request", R"({"reason":"overload"})") + '\n');
  EXPECT_EQ(t.talk->load(), 0U);
  t.talk->receive(R"("method":"echo"})", start);
  EXPECT_EQ(t.talk->load(), 0U);
  t.talk->receive("\n", start);
  t.receive(request("2", "echo", "[1]"));
  EXPECT_EQ(t.output(), result("2", "[1]") + '\n');
  t.talk->refuse_partial_message();
  EXPECT_EQ(t.output(), "");
}

TEST(Conversation, TheLogTellsHowMuchOfABrokenFrameCame) {
  Talk t(Protocol::lsp_server());
  t.talk->receive("Content-Length: 100\r\n\r\n{\"half", start);
  t.talk->end_of_input(start);
  EXPECT_EQ(t.tape.lines(), Strings{R"(warn  Parse error reason="content-length-mismatch" bytes=6 expected=100)"});
}

/// A client whose calls are numbered from 1.
struct ClientTalk : Talk {
  explicit ClientTalk(const Protocol& protocol = Protocol::json_lines_client()) : Talk(protocol) {}
  ClientTalk(const ClientTalk&) = delete;
  ClientTalk& operator=(const ClientTalk&) = delete;
  ~ClientTalk() { talk.reset(); }  // its calls end here, and tell
  CallId call(base::Duration patience = 10s) {
    return talk->call("ask", rpc::Json::view("[1]"), patience,
                      [this](Outcome outcome) { outcomes.push_back(std::move(outcome)); });
  }
  std::vector<Outcome> outcomes;
};

TEST(Conversation, ACallThatWasNotShownYetIsNeverSentOnceItIsCancelled) {
  ClientTalk t;
  const CallId first = t.call();
  t.call();
  EXPECT_TRUE(t.talk->cancel(first));
  EXPECT_EQ(t.output(), request("2", "ask", "[1]") + '\n');
  EXPECT_FALSE(t.talk->cancel(first));
  EXPECT_EQ(t.output(), "");
}

TEST(Conversation, ThePeerIsToldOfACancelOfWhatItHasSeen) {
  ClientTalk t;
  const CallId call = t.call();
  t.output();
  EXPECT_FALSE(t.talk->cancel(call));
  EXPECT_EQ(t.output(), cancel("1") + '\n');
  t.receive(result("1", "5"));
  EXPECT_TRUE(t.outcomes.empty());
}

TEST(Conversation, AFrameIsCountedInBytes) {
  ClientTalk t(Protocol::lsp_client());
  t.talk->call("你好", {}, 10s, [](const Outcome&) {});
  EXPECT_EQ(t.output(), "Content-Length: 42\r\n\r\n{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"你好\"}");
}

TEST(Conversation, ACallTimesOutByTheTimeThatIsTold) {
  ClientTalk t(Protocol::lsp_client());
  t.call(10s);
  EXPECT_EQ(t.talk->deadline(), base::TimePoint());
  t.output();
  t.talk->tick(start);
  EXPECT_EQ(t.talk->deadline(), start + 10s);
  t.talk->tick(start + 9s);
  EXPECT_TRUE(t.outcomes.empty());
  t.talk->tick(start + 10s);
  ASSERT_EQ(t.outcomes.size(), 1U);
  EXPECT_EQ(t.outcomes[0].cause, Outcome::Cause::timed_out);
  EXPECT_TRUE(t.outcomes[0].was_sent);
  EXPECT_EQ(t.output(), framed(cancel("1")));
}

TEST(Conversation, ACallThatTimesOutBeforeItIsShownIsNeverSent) {
  ClientTalk t(Protocol::lsp_client());
  t.call(1s);
  t.talk->tick(start);
  t.talk->tick(start + 1s);
  ASSERT_EQ(t.outcomes.size(), 1U);
  EXPECT_FALSE(t.outcomes[0].was_sent);
  EXPECT_EQ(t.output(), "");
}

TEST(Conversation, WhatFailsAtOnceIsToldLater) {
  ClientTalk t;
  t.talk->close();
  t.call();
  EXPECT_TRUE(t.outcomes.empty());
  EXPECT_EQ(t.talk->deadline(), base::TimePoint());
  t.talk->tick(start);
  ASSERT_EQ(t.outcomes.size(), 1U);
  EXPECT_EQ(t.outcomes[0].cause, Outcome::Cause::disconnected);
}

TEST(Conversation, WhenItClosesACallTellsWhetherThePeerHasSeenIt) {
  ClientTalk t;
  t.call();
  t.output();
  t.call();
  t.talk->close();
  ASSERT_EQ(t.outcomes.size(), 2U);
  EXPECT_TRUE(t.outcomes[0].was_sent);
  EXPECT_FALSE(t.outcomes[1].was_sent);
}

TEST(Conversation, AnAnswerThatIsTooLargeFailsItsCallAtOnce) {
  Protocol protocol = Protocol::json_lines_client();
  protocol.max_message = 1000;
  ClientTalk t(protocol);
  t.call();
  t.call();
  t.output();
  t.receive(result("2", '"' + std::string(2000, 'x') + '"'));
  ASSERT_EQ(t.outcomes.size(), 1U);
  EXPECT_EQ(t.outcomes[0].call, 2U);
  EXPECT_EQ(t.outcomes[0].cause, Outcome::Cause::unreadable);
  t.receive(result("1", "1"));
  EXPECT_EQ(t.outcomes.back().cause, Outcome::Cause::answered);
}

/// What a server writes to its stdout, in one piece or byte by byte, and what becomes of it.
class ToldFaults : public testing::TestWithParam<bool> {
 protected:
  Strings read(const std::string& bytes, std::size_t max_message = 1000) {
    Strings heard;
    Methods none;
    ConversationEvents events;
    events.on_notification = [&](std::string_view method, std::string_view) { heard.emplace_back(method); };
    events.on_lost = [&](const LostMessage& lost) {
      heard.push_back("lost " + std::string(lost.reason));
      text = lost.text;
    };
    events.on_noise = [&] { heard.emplace_back("noise"); };
    Protocol protocol = Protocol::lsp_client();
    protocol.max_message = max_message;
    Conversation talk(protocol, none, events);
    for (int i = 0; i < 8; ++i) {
      talk.call("ask", rpc::Json::view("[]"), 1h, [&heard](const Outcome& outcome) {
        if (outcome.cause == Outcome::Cause::disconnected) return;
        heard.push_back(std::to_string(outcome.call) + ' ' + std::string(name_of(outcome.cause)) + outcome.result);
      });
    }
    while (!talk.output().empty()) talk.written(talk.output().size());
    const std::size_t portion = GetParam() ? bytes.size() : 1;
    for (std::size_t i = 0; i < bytes.size(); i += portion) {
      talk.receive(std::string_view(bytes).substr(i, portion), start);
    }
    talk.end_of_input(start);
    EXPECT_TRUE(talk.output().empty());
    return heard;
  }

  std::string text;
};
INSTANTIATE_TEST_SUITE_P(InOnePieceOrByteByByte, ToldFaults, testing::Bool());

const std::string answer = result("7", R"("ä")");
const std::string news = notification("m");

std::string with_wrong_length(const std::string& body, int delta) {
  return "Content-Length: " + std::to_string(static_cast<int>(body.size()) + delta) + "\r\n\r\n" + body;
}

TEST_P(ToldFaults, MessagesAreReadOneAfterAnother) {
  EXPECT_EQ(read(framed(answer) + framed(news)), (Strings{"7 answered\"ä\"", "m"}));
}

TEST_P(ToldFaults, AnyContentTypeWillDo) {
  EXPECT_EQ(read("Content-Type: text/plain; charset=latin1\r\n" + framed(answer)), Strings{"7 answered\"ä\""});
}

TEST_P(ToldFaults, PrintedTextIsSkippedAndItsStartIsTold) {
  EXPECT_EQ(read("Hello!\n" + framed(answer) + "debug: {\"id\":3}\n" + framed(news)),
            (Strings{"lost malformed-header", "7 answered\"ä\"", "lost malformed-header", "m"}));
  EXPECT_TRUE(text.starts_with("debug: "));
}

TEST_P(ToldFaults, NoOtherSeparatorIsTakenForTheRightOne) {
  for (const char* separator : {"\n\n", "\r\n", "\n"}) {
    const Strings heard = read("Content-Length: " + std::to_string(answer.size()) + separator + answer + framed(news));
    ASSERT_GE(heard.size(), 2U);
    EXPECT_EQ(heard.front(), "lost malformed-header");
    EXPECT_EQ(heard.back(), "m");
  }
}

TEST_P(ToldFaults, TextIsNotBlamedForTheAnswerBehindIt) {
  EXPECT_EQ(read("text\n" + framed(answer)), (Strings{"lost malformed-header", "7 answered\"ä\""}));
}

TEST_P(ToldFaults, AnAnswerOfAWrongLengthFailsItsCall) {
  EXPECT_EQ(read(framed(news) + with_wrong_length(answer, -4) + framed(news)),
            (Strings{"m", "lost invalid-json", "7 unreadable", "m"}));
  EXPECT_EQ(read(with_wrong_length(answer, 30) + framed(news)),
            (Strings{"lost content-length-mismatch", "7 unreadable", "m"}));
}

TEST_P(ToldFaults, AnAnswerInsideAMessageOfAWrongLengthIsLostByItself) {
  const std::string inside = 'x' + with_wrong_length(answer, 30);
  EXPECT_EQ(read("Content-Length: " + std::to_string(inside.size()) + "\r\n\r\n" + inside + framed(news)),
            (Strings{"lost content-length-mismatch", "lost content-length-mismatch", "7 unreadable", "m"}));
}

TEST_P(ToldFaults, OneLossIsKnownFromAnother) {
  EXPECT_EQ(read(with_wrong_length(answer, -4) + with_wrong_length(result("8", R"("ä")"), -4) + framed(news)),
            (Strings{"lost invalid-json", "7 unreadable", "lost invalid-json", "8 unreadable", "m"}));
}

TEST_P(ToldFaults, ANotificationIsNotTakenForAnAnswer) {
  EXPECT_EQ(read(with_wrong_length(news, -4) + framed(answer)), (Strings{"lost invalid-json", "7 answered\"ä\""}));
}

TEST_P(ToldFaults, AnAnswerThatIsTooLargeFailsItsCall) {
  EXPECT_EQ(read(framed(result("7", '"' + std::string(2000, 'x') + '"')) + framed(news)),
            (Strings{"lost oversize", "7 unreadable", "m"}));
}

TEST_P(ToldFaults, AnAnswerThatIsLostBehindATooLargeMessageFailsItsCall) {
  const std::string too_large =
      framed(R"({"jsonrpc":"2.0","method":"m","params":[")" + std::string(2000, 'x') + "\"]}");
  EXPECT_EQ(read(too_large + with_wrong_length(answer, -4) + framed(news)),
            (Strings{"lost oversize", "lost invalid-json", "7 unreadable", "m"}));
  EXPECT_EQ(read(framed(news) + too_large + too_large + framed(answer)),
            (Strings{"m", "lost oversize", "lost oversize", "7 answered\"ä\""}));
}

TEST_P(ToldFaults, AMessageThatIsCutOffIsTold) {
  EXPECT_EQ(read(framed(answer).substr(0, 50)), (Strings{"lost content-length-mismatch", "7 unreadable"}));
}

TEST_P(ToldFaults, AResponseThatIsNoneFailsItsCall) {
  EXPECT_EQ(read(framed(R"({"jsonrpc":"2.0","id":7})")), (Strings{"lost malformed-envelope", "7 unreadable"}));
}

TEST(ToldFaultsTest, AMebibyteWithoutAMessageIsNoise) {
  Methods none;
  int noise = 0;
  ConversationEvents events;
  events.on_noise = [&] { ++noise; };
  Conversation talk(Protocol::lsp_client(), none, events);
  const std::string text(100'000, 'y');
  for (int i = 0; i < 30; ++i) talk.receive(text, start);
  EXPECT_EQ(noise, 1);
}

}  // namespace
}  // namespace duet::peer
