// What a peer at the other end of a WebSocket sees.

#include "duet/framing/websocket.h"

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "duet/framing/websocket_frames_test.h"
#include "duet/peer/announcement.h"
#include "duet/peer/conversation_fixture_test.h"

namespace duet::peer {
namespace {

using namespace std::chrono_literals;
using framing::ClientFrame;
using framing::close;
using framing::first_frame;
using framing::last_frame;
using framing::next_frame;
using framing::ping;
using framing::pong;
using framing::text_frame;

const std::string invalid_json = error("null", -32700, "Parse error", R"({"reason":"invalid-json"})");
const std::string oversize = error("null", -32600, "Invalid Request", R"({"reason":"oversize"})");

/// A conversation over a WebSocket whose client is the test.
struct WebSocketTalk : Talk {
  explicit WebSocketTalk(const Protocol& protocol = Protocol::websocket()) : Talk(protocol) {}

  void receive(const std::string& frames, base::TimePoint now = start) {
    std::string bytes = frames;
    talk->receive_in_place(bytes, now);
  }
  /// The frames that are to be written.
  Strings heard() {
    const std::string bytes = output();
    std::size_t at = 0;
    Strings frames = take_server_frames(bytes, at);
    EXPECT_EQ(at, bytes.size()) << "part of a frame";
    return frames;
  }
  Strings say(const std::string& frames) {
    receive(frames);
    return heard();
  }
  /// Does what is due until then.
  void pass_until(base::TimePoint now) {
    for (int i = 0; i < 1000 && talk->deadline().value_or(base::TimePoint::max()) <= now; ++i) talk->tick(now);
  }
  void send_event() {
    Announcement event("event", rpc::Json::view("[1]"));
    sent = talk->send(event, 1'000'000);
  }

  bool sent = false;
};

TEST(WebSocket, AMessageInAnyNumberOfFramesIsAnsweredOnce) {
  WebSocketTalk t;
  const std::string asked = request("1", "echo", "[true]");
  EXPECT_EQ(t.say(text_frame(asked)), Strings{result("1", "[true]")});
  EXPECT_EQ(t.say(first_frame("") + next_frame(asked.substr(0, 10)) + ping("p") + next_frame("") +
                  last_frame(asked.substr(10))),
            (Strings{"<pong p>", result("1", "[true]")}));
  EXPECT_EQ(t.say(text_frame('[' + asked + ',' + asked + ']')),
            Strings{'[' + result("1", "[true]") + ',' + result("1", "[true]") + ']'});
}

TEST(WebSocket, TextThatIsNoJsonIsAnsweredAndItStaysOpen) {
  WebSocketTalk t;
  EXPECT_EQ(t.say(text_frame("nope")), Strings{invalid_json});
  EXPECT_EQ(t.say(text_frame("")), Strings{invalid_json});
  EXPECT_EQ(t.say(first_frame("") + last_frame("")), Strings{invalid_json});
  EXPECT_EQ(t.say(text_frame("  ")), Strings{invalid_json});
  EXPECT_EQ(t.say(text_frame(request("1", "echo", "[1]"))), Strings{result("1", "[1]")});
}

TEST(WebSocket, ALargeMessageIsRefusedByItsLengthAndItStaysOpen) {
  WebSocketTalk t;
  const std::size_t size = 10U * 1024 * 1024 + 1;
  const std::string large = text_frame(std::string(size, 'x'));
  constexpr std::size_t header = 14;
  constexpr std::size_t portion = 60'000;
  EXPECT_EQ(t.say(large.substr(0, header)), Strings{oversize});
  for (std::size_t at = header; at < large.size(); at += portion) {
    t.receive(large.substr(at, portion));
    ASSERT_EQ(t.talk->load(), 0U);
  }
  EXPECT_EQ(t.say(text_frame(request("1", "echo", "[1]"))), Strings{result("1", "[1]")});
  EXPECT_EQ(t.say(first_frame(std::string(1000, 'x')) + ClientFrame{.opcode = 0, .announced = size - 1000}.bytes()),
            Strings{oversize});
}

TEST(WebSocket, WhatTheStandardForbidsIsClosedWithItsCode) {
  const std::vector<std::pair<std::string, Strings>> cases = {
      {text_frame("\"\xFF\""), {"<close 1007 >"}},
      {first_frame("\"\xED\xA0") + last_frame("\x80\""), {"<close 1007 >"}},
      {ClientFrame{.opcode = 2, .payload = "{}"}, {"<close 1003 >"}},
      {ClientFrame{.payload = "{}", .is_masked = false}, {"<close 1002 >"}},
      {ClientFrame{.payload = "{}", .reserved = 4}, {"<close 1002 >"}},
      {ClientFrame{.opcode = 3}, {"<close 1002 >"}},
      {ClientFrame{.opcode = 11}, {"<close 1002 >"}},
      {ClientFrame{.opcode = 9, .is_last = false}, {"<close 1002 >"}},
      {ping(std::string(126, 'x')), {"<close 1002 >"}},
      {last_frame("{}"), {"<close 1002 >"}},
      {first_frame("{") + text_frame("}"), {"<close 1002 >"}},
      {ClientFrame{.payload = "{}", .length_size = 2}, {"<close 1002 >"}},
      {close("x"), {"<close 1002 >"}},
      {close(1005), {"<close 1002 >"}},
      {close(5000), {"<close 1002 >"}},
      {close(1000, "\xFF"), {"<close 1007 >"}},
  };
  for (const auto& [frames, expected] : cases) {
    WebSocketTalk t;
    t.receive(text_frame(request("1", "pipelined")));
    bool abandoned = false;
    t.replies[0].on_abandoned([&] { abandoned = true; });
    EXPECT_EQ(t.say(text_frame("nope") + frames + text_frame(request("2", "echo", "[]")) + ping()), expected)
        << testing::PrintToString(frames);
    EXPECT_TRUE(abandoned);
    t.send_event();
    EXPECT_FALSE(t.sent) << "behind our Close nothing is sent";
    EXPECT_EQ(t.heard(), Strings{});
    EXPECT_TRUE(t.talk->wants_input() || t.talk->is_over());
    t.receive(close(1002));
    EXPECT_TRUE(t.talk->is_over());
  }
}

TEST(WebSocket, ALengthThatCannotBeIsClosedAndWhatFollowsIsNeverRead) {
  WebSocketTalk t;
  EXPECT_EQ(t.say(ClientFrame{.length_size = 8, .announced = std::uint64_t{1} << 63U}.bytes()),
            Strings{"<close 1002 >"});
  for (int i = 0; i < 100; ++i) t.receive(close(1002));
  EXPECT_EQ(t.talk->load(), 0U);
  EXPECT_FALSE(t.talk->is_over());
  t.pass_until(start);
  t.pass_until(start + 2s);
  EXPECT_TRUE(t.talk->is_closed());
}

TEST(WebSocket, APingIsAnsweredWithItsBytes) {
  WebSocketTalk t;
  EXPECT_EQ(t.say(ping()), Strings{"<pong >"});
  EXPECT_EQ(t.say(ping("\xFF\x01") + text_frame(request("1", "echo", "[]"))),
            (Strings{"<pong \xFF\x01>", result("1", "[]")}));
  EXPECT_EQ(t.say(pong("nobody asked")), Strings{});
  EXPECT_EQ(t.talk->answers_given(), 1U) << "it is no request";
}

TEST(WebSocket, OfSeveralPingsThatWaitTheNewestIsAnswered) {
  WebSocketTalk t;
  EXPECT_EQ(t.say(ping("1") + ping("2") + ping("3")), (Strings{"<pong 1>", "<pong 3>"}));
  for (int i = 0; i < 10'000; ++i) t.receive(ping(std::to_string(i)));
  EXPECT_LT(t.talk->load(), 50U) << "a peer that never reads";
  EXPECT_EQ(t.heard(), (Strings{"<pong 0>", "<pong 9999>"}));
  EXPECT_EQ(t.say(ping("again")), Strings{"<pong again>"});
}

TEST(WebSocket, APongDoesNotWaitUntilEverythingIsWritten) {
  WebSocketTalk t;
  t.receive(ping("1"));
  for (int i = 0; i < 5; ++i) t.receive(text_frame(request("1", "echo", "[]")));
  t.receive(ping("2"));
  t.talk->written(framing::pong_frame("1").size());
  const Strings heard = t.heard();
  ASSERT_EQ(heard.size(), 6U);
  EXPECT_EQ(heard[5], "<pong 2>");
}

TEST(WebSocket, ACloseGetsWhatIsReadyAndTheSameCodeAndThenTheEnd) {
  WebSocketTalk t;
  bool abandoned = false;
  t.receive(text_frame(request("1", "echo", "[]")) + text_frame(request("2", "late")) +
            text_frame(request("3", "echo", "[]")) + ping("p"));
  t.replies[0].on_abandoned([&] { abandoned = true; });
  EXPECT_FALSE(t.talk->is_over());
  EXPECT_EQ(t.say(close(4321, "bye") + text_frame(request("4", "echo", "[]"))),
            (Strings{result("1", "[]"), "<pong p>", "<close 4321 >"}));
  EXPECT_TRUE(abandoned);
  EXPECT_FALSE(t.talk->wants_input());
  EXPECT_TRUE(t.talk->is_over());
  t.replies[0].ok(true);
  t.send_event();
  EXPECT_EQ(t.heard(), Strings{});
}

TEST(WebSocket, ACloseWithoutACodeIsAnsweredWithoutOne) {
  WebSocketTalk t;
  EXPECT_EQ(t.say(close()), Strings{"<close>"});
  EXPECT_TRUE(t.talk->is_over());
}

TEST(WebSocket, WhoHasSaidCloseMayReadSlowlyButNotForEver) {
  WebSocketTalk t;
  t.receive(text_frame(request("1", "echo", "[]")) + close(1000));
  t.pass_until(start);
  t.pass_until(start + 50s);
  EXPECT_FALSE(t.talk->is_closed());
  t.pass_until(start + 61s);
  EXPECT_TRUE(t.talk->is_closed());
}

TEST(WebSocket, TheEndOfTheInputIsADisconnect) {
  WebSocketTalk t;
  bool abandoned = false;
  t.receive(text_frame(request("1", "late")));
  t.replies[0].on_abandoned([&] { abandoned = true; });
  t.talk->end_of_input(start);
  EXPECT_TRUE(abandoned);
  EXPECT_TRUE(t.talk->is_closed());
  EXPECT_EQ(t.heard(), Strings{});
}

TEST(WebSocket, SilenceIsAPingAfter30SecondsAndTheEndAfter60) {
  WebSocketTalk t;
  t.pass_until(start);
  t.pass_until(start + 29s);
  EXPECT_EQ(t.heard(), Strings{});
  EXPECT_EQ(t.talk->deadline(), start + 30s);
  t.pass_until(start + 30s);
  EXPECT_EQ(t.heard(), Strings{"<ping >"});
  t.pass_until(start + 59s);
  EXPECT_EQ(t.heard(), Strings{});
  EXPECT_FALSE(t.talk->is_closed());
  t.pass_until(start + 60s);
  EXPECT_TRUE(t.talk->is_closed());
  EXPECT_FALSE(t.talk->deadline());
}

TEST(WebSocket, APongOrAnythingElseEndsASilence) {
  for (const std::string& bytes : {pong(), text_frame("1").substr(0, 3), ping()}) {
    WebSocketTalk t;
    t.pass_until(start);
    t.pass_until(start + 30s);
    EXPECT_TRUE(t.talk->is_timed());
    t.receive(bytes, start + 40s);
    t.heard();
    t.pass_until(start + 41s);
    EXPECT_EQ(t.talk->deadline(), start + 70s);
    t.pass_until(start + 69s);
    EXPECT_EQ(t.heard(), Strings{});
    t.pass_until(start + 70s);
    EXPECT_EQ(t.heard(), Strings{"<ping >"});
  }
}

TEST(WebSocket, WhileMuchIsHeardNobodyHasToTellTheTime) {
  WebSocketTalk t;
  t.pass_until(start);
  base::TimePoint now = start;
  t.receive(text_frame(request("1", "echo", "[]")), now);
  for (int i = 0; i < 200; ++i) {
    EXPECT_FALSE(t.talk->is_timed());
    t.receive(text_frame(request("1", "echo", "[]")), base::TimePoint());
    now += 500ms;
    t.pass_until(now);
  }
  for (const std::string& each : t.heard()) ASSERT_EQ(each, result("1", "[]"));
  ASSERT_TRUE(t.talk->deadline());
  EXPECT_LE(*t.talk->deadline(), now + 1s);
  t.pass_until(now + 1s);
  t.pass_until(now + 2s);
  EXPECT_TRUE(t.talk->is_timed());
  t.pass_until(now + 29s);
  EXPECT_EQ(t.heard(), Strings{});
  t.pass_until(now + 32s);
  EXPECT_EQ(t.heard(), Strings{"<ping >"});
}

TEST(WebSocket, WhoeverWakesLateAsksBeforeItGivesUp) {
  WebSocketTalk t;
  t.pass_until(start);
  t.pass_until(start + 1h);
  EXPECT_FALSE(t.talk->is_closed());
  EXPECT_EQ(t.heard(), Strings{"<ping >"});
  t.receive(pong(), start + 1h + 29s);
  t.pass_until(start + 1h + 40s);
  EXPECT_FALSE(t.talk->is_closed());
}

TEST(WebSocket, WhomWeDoNotReadIsNotSilent) {
  Protocol protocol = Protocol::websocket();
  protocol.max_waiting = 10;
  WebSocketTalk t(protocol);
  t.receive(text_frame(request("1", "echo", "[]")));
  ASSERT_FALSE(t.talk->wants_input());
  for (int i = 0; i < 10; ++i) t.pass_until(start + i * 30s);
  EXPECT_FALSE(t.talk->is_closed());
  EXPECT_EQ(t.heard(), Strings{result("1", "[]")});
}

TEST(WebSocket, StopLetsWhatRunsFinishAndSaysClose1001) {
  WebSocketTalk t;
  t.receive(text_frame(request("1", "late")) + text_frame(request("2", "echo", "[]")));
  t.talk->stop();
  t.talk->resume();
  EXPECT_EQ(t.heard(), Strings{});
  EXPECT_FALSE(t.talk->wants_input());
  t.replies[0].ok(true);
  EXPECT_TRUE(t.talk->has_more_to_do());
  t.talk->resume();
  EXPECT_EQ(t.heard(), (Strings{result("1", "true"), "<close 1001 >"}));
  EXPECT_TRUE(t.talk->wants_input());
  EXPECT_FALSE(t.talk->is_over());
  EXPECT_EQ(t.say(text_frame(request("3", "echo", "[]")) + ping() + close(1001)), Strings{});
  EXPECT_TRUE(t.talk->is_over());
}

TEST(WebSocket, WhoDoesNotAnswerOurCloseIsDroppedAfterTwoSeconds) {
  WebSocketTalk t;
  t.pass_until(start);
  t.talk->stop();
  t.pass_until(start + 1s);
  EXPECT_EQ(t.heard(), Strings{"<close 1001 >"});
  t.pass_until(start + 1s);  // from here on it counts: the Close is written
  t.receive(text_frame(request("3", "echo", "[]")), start + 2s);
  t.pass_until(start + 2900ms);
  EXPECT_FALSE(t.talk->is_closed());
  EXPECT_EQ(t.talk->deadline(), start + 3s);
  t.pass_until(start + 3s);
  EXPECT_TRUE(t.talk->is_closed());
}

TEST(WebSocket, WhoHasNotReadOurCloseYetHasMoreTime) {
  WebSocketTalk t;
  t.pass_until(start);
  t.talk->stop();
  t.pass_until(start);
  t.pass_until(start + 59s);
  EXPECT_FALSE(t.talk->is_closed());
  t.pass_until(start + 60s);
  EXPECT_TRUE(t.talk->is_closed());
}

// 300 KB of answers are in front of our Ping.
TEST(WebSocket, WhoReadsSlowlyIsNotTakenForDead) {
  WebSocketTalk t;
  t.pass_until(start);
  t.receive(text_frame(request("1", "echo", "[\"" + std::string(300'000, 'x') + "\"]")), start);
  for (int seconds = 10; seconds <= 100; seconds += 10) {
    t.pass_until(start + std::chrono::seconds(seconds));
    ASSERT_FALSE(t.talk->is_closed()) << seconds;
    t.talk->output();
    t.talk->written(1'000);
  }
  for (int seconds = 110; seconds <= 200; seconds += 10) t.pass_until(start + std::chrono::seconds(seconds));
  EXPECT_TRUE(t.talk->is_closed()) << "now it reads nothing any more";
}

TEST(WebSocket, CloseWithSaysWhyAndCancelsWhatRuns) {
  WebSocketTalk t;
  bool abandoned = false;
  t.receive(text_frame(request("1", "echo", "[]")) + text_frame(request("2", "late")));
  t.replies[0].on_abandoned([&] { abandoned = true; });
  t.talk->close_with(1008, "session-ended");
  t.talk->resume();
  EXPECT_TRUE(abandoned);
  EXPECT_EQ(t.heard(), (Strings{result("1", "[]"), "<close 1008 session-ended>"}));
  t.talk->close_with(1011, "");
  t.talk->stop();
  t.talk->resume();
  EXPECT_FALSE(t.talk->notify("x", {}));
  EXPECT_EQ(t.heard(), Strings{});
  t.receive(close(1008));
  EXPECT_TRUE(t.talk->is_over());
}

TEST(WebSocket, AHandlerThatClosesIsAnsweredFirst) {
  WebSocketTalk t;
  t.methods.add("logout", [](const Request& asked) {
    asked.conversation.close_with(1008, "session-ended");
    return true;
  });
  EXPECT_EQ(t.say(text_frame(request("1", "logout")) + text_frame(request("2", "echo", "[]"))),
            (Strings{result("1", "true"), "<close 1008 session-ended>"}));
}

TEST(WebSocket, CallsOfOursEndWithTheClose) {
  WebSocketTalk t;
  std::vector<Outcome::Cause> causes;
  t.talk->call("ask", {}, 30s, [&](const Outcome& outcome) { causes.push_back(outcome.cause); });
  EXPECT_EQ(t.heard().size(), 1U);
  t.receive(close(1000));
  t.talk->resume();
  EXPECT_EQ(causes, std::vector{Outcome::Cause::disconnected});
  EXPECT_EQ(t.heard(), Strings{"<close 1000 >"});
}

TEST(WebSocket, WhatItSendsIsOneTextFrameAMessage) {
  WebSocketTalk t;
  const std::string text = '"' + std::string(70'000, 'x') + '"';
  EXPECT_EQ(t.say(text_frame(request("1", "echo", '[' + text + ']'))), Strings{result("1", '[' + text + ']')});
  EXPECT_TRUE(t.talk->notify("told", rpc::Json::view("[\n1\n]")));
  EXPECT_EQ(t.heard(), Strings{notification("told", "[\n1\n]")});
}

TEST(CloseWith, EndsOtherFramingsWhenWhatIsReadyIsWritten) {
  Talk t;
  bool abandoned = false;
  t.receive(request("1", "echo", "[]"));
  t.receive(request("2", "late"));
  t.replies[0].on_abandoned([&] { abandoned = true; });
  t.talk->close_with(1008, "session-ended");
  EXPECT_TRUE(abandoned);
  EXPECT_FALSE(t.talk->is_over());
  EXPECT_EQ(t.output(), result("1", "[]") + '\n');
  EXPECT_TRUE(t.talk->is_over());
}

TEST(Announcement, GoesToEachInItsOwnFraming) {
  Announcement message("told", rpc::Json::view("[\n1]"));
  const auto framed = [&](const Protocol& protocol) {
    return std::string(message.framed(*protocol.make_encoder(), protocol.framing));
  };
  const std::string body = notification("told", "[ 1]");
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(framed(Protocol::json_lines()), body + '\n');
    EXPECT_EQ(framed(Protocol::json_lines_client()), body + '\n');
    EXPECT_EQ(framed(Protocol::websocket()), "\x81" + std::string(1, static_cast<char>(body.size())) + body);
    EXPECT_EQ(framed(Protocol::lsp_server()), "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
  }
}

}  // namespace
}  // namespace duet::peer
