#include <chrono>

#include "app/doors/http_fixture_test.h"

namespace duet::app {
namespace {

using namespace std::chrono_literals;

class McpAnswersTest : public HttpDoorTest {
 protected:
  McpAnswersTest() {
    methods.add("refused", "", [](const rpc::Json&) -> rpc::Json { throw rpc::Error(-32602, "no"); });
  }
  static std::string ask(const std::string& method, const std::string& accept = both) {
    const std::string body = R"({"jsonrpc":"2.0","id":7,"method":")" + method + R"(","params":{}})";
    return post("/mcp", body, with_token + accept);
  }
  void tell(int number) { mcp.last_notify("notifications/progress", rpc::Json(boost::json::object{{"n", number}})); }
  static std::string event(const std::string& message) { return "event: message\ndata: " + message + "\n\n"; }
  static constexpr const char* both = "Accept: application/json, text/event-stream\r\n";
  static constexpr const char* only_json = "Accept: application/json\r\n";
  static constexpr const char* only_stream = "Accept: text/event-stream\r\n";
};

TEST_F(McpAnswersTest, WhatIsAnsweredSoonIsOneText) {
  Far& far = connect();
  const std::string text = say(far, ask("echo"));
  EXPECT_TRUE(begins(text, "200 OK")) << text;
  EXPECT_NE(text.find("Content-Type: application/json\r\n"), std::string::npos);
  EXPECT_TRUE(text.ends_with(R"({"jsonrpc":"2.0","id":7,"result":{}})")) << text;
  EXPECT_TRUE(begins(say(far, ask("refused")), "400 ")) << "the connection goes on";
  EXPECT_TRUE(begins(say(far, ask("nothing")), "404 "));
  EXPECT_TRUE(mcp.callers.empty());
  EXPECT_EQ(ended_callers, 3);
}

TEST_F(McpAnswersTest, ANotificationIsAcceptedWithoutABody) {
  Far& far = connect();
  const std::string text = say(far, post("/mcp", R"({"jsonrpc":"2.0","method":"notifications/x"})"));
  EXPECT_TRUE(begins(text, "202 Accepted")) << text;
  EXPECT_TRUE(text.ends_with("Content-Length: 0\r\n\r\n")) << text;
  EXPECT_TRUE(begins(say(far, post("/mcp", R"({"jsonrpc":"2.0","id":1,"result":{}})")), "202 "));
  EXPECT_TRUE(begins(say(far, post("/mcp", "")), "400 "));
}

TEST_F(McpAnswersTest, FieldsOfTheHeadAreGivenOn) {
  say(connect(), post("/mcp", "{}", std::string(with_token) + "Mcp-Method: a\r\nMcp-Name: b\r\n"));
  EXPECT_EQ(mcp.fields.method, "a");
  EXPECT_EQ(mcp.fields.name, "b");
  EXPECT_EQ(mcp.fields.version, std::nullopt);
}

TEST_F(McpAnswersTest, WhatIsToldBeforeMakesAStream) {
  Far& far = connect();
  EXPECT_EQ(say(far, ask("late")), "");
  tell(1);
  turn();
  EXPECT_TRUE(begins(far.seen.text, "200 OK"));
  EXPECT_NE(far.seen.text.find("Content-Type: text/event-stream\r\n"), std::string::npos);
  EXPECT_NE(far.seen.text.find("X-Accel-Buffering: no\r\n"), std::string::npos);
  const std::string told = R"({"jsonrpc":"2.0","method":"notifications/progress","params":{"n":1}})";
  EXPECT_TRUE(far.seen.text.ends_with("\r\n\r\n" + event(told))) << far.seen.text;
  far.seen.text.clear();
  late.at(0).ok(3);
  turn();
  EXPECT_EQ(far.seen.text, event(R"({"jsonrpc":"2.0","id":7,"result":3})"));
  EXPECT_TRUE(far.seen.ended);
}

TEST_F(McpAnswersTest, SilenceIsBrokenEveryFifteenSeconds) {
  Far& far = connect();
  say(far, ask("late"));
  pass(14s);
  EXPECT_EQ(far.seen.text, "");
  pass(1s);
  EXPECT_TRUE(far.seen.text.ends_with("\r\n\r\n")) << "the stream has begun";
  far.seen.text.clear();
  pass(15s);
  pass(15s);
  EXPECT_EQ(far.seen.text, ":\n\n:\n\n");
}

TEST_F(McpAnswersTest, WhoTakesNoStreamWaitsForTheAnswer) {
  Far& far = connect();
  say(far, ask("late", only_json));
  EXPECT_FALSE(mcp.last_notify);
  pass(300s);
  EXPECT_EQ(far.seen.text, "");
  late.at(0).ok(3);
  turn();
  EXPECT_TRUE(far.seen.text.ends_with(R"("result":3})"));
}

TEST_F(McpAnswersTest, WhoTakesOnlyStreamsGetsOne) {
  Far& far = connect();
  const std::string text = say(far, ask("echo", only_stream));
  EXPECT_TRUE(text.ends_with(event(R"({"jsonrpc":"2.0","id":7,"result":{}})"))) << text;
  EXPECT_TRUE(far.seen.ended);
  EXPECT_TRUE(begins(say(connect(), ask("refused", only_stream)), "400 ")) << "an error is told by its status";
}

TEST_F(McpAnswersTest, AClosedStreamIsTheCancel) {
  Far& far = connect();
  say(far, ask("late"));
  bool is_cancelled = false;
  late.at(0).on_abandoned([&] { is_cancelled = true; });
  tell(1);
  turn();
  far.channel->end_output();
  turn();
  EXPECT_TRUE(is_cancelled);
  EXPECT_TRUE(mcp.callers.empty());
  EXPECT_EQ(door.connection_count(), 0U);
}

TEST_F(McpAnswersTest, WhoDoesNotReadWhatItIsToldIsGivenUp) {
  Far& far = connect();
  say(far, ask("late"));
  far.channel->want(false, false);
  for (int i = 0; i < 10'000 && door.connection_count() > 0; ++i) {
    tell(i);
    turn();
  }
  EXPECT_EQ(door.connection_count(), 0U);
  EXPECT_TRUE(late.at(0).abandoned());
}

TEST_F(McpAnswersTest, WhoDoesNotReadForAMinuteIsGivenUp) {
  Far& far = connect();
  say(far, ask("late"));
  far.channel->want(false, false);
  for (int i = 0; i < 2000; ++i) tell(i);  // more than the channel holds
  turn();
  pass(45s);
  EXPECT_EQ(door.connection_count(), 1U);
  for (int i = 0; i < 4; ++i) pass(15s);
  EXPECT_EQ(door.connection_count(), 0U);
}

TEST_F(McpAnswersTest, WhoHasNoMoreToSayIsAnsweredIfThatIsSoon) {
  for (const bool is_told : {false, true}) {
    SCOPED_TRACE(is_told ? "with progress" : "without");
    Far& far = connect();
    say(far, ask("late"));
    far.channel->end_output();
    turn();
    if (is_told) tell(1);
    pass(900ms);
    EXPECT_FALSE(late.back().abandoned());
    pass(100ms);
    EXPECT_TRUE(late.back().abandoned()) << "a closed stream is the cancel";
    EXPECT_EQ(door.connection_count(), 0U);
  }
  Far& far = connect();
  say(far, ask("late"));
  far.channel->end_output();
  turn();
  tell(1);
  late.back().ok(3);
  turn();
  EXPECT_TRUE(far.seen.text.ends_with(event(R"({"jsonrpc":"2.0","id":7,"result":3})"))) << far.seen.text;
}

TEST_F(McpAnswersTest, WhatIsWaitedForKeepsNobodyFromSending) {
  const std::string blanks(500, ' ');
  Far& waiting = connect();
  say(waiting, post("/mcp", blanks + R"({"jsonrpc":"2.0","id":7,"method":"late","params":{}})", with_token));
  Far& calling = connect();
  say(calling, post("/rpc", blanks + ask_late, with_token));
  ASSERT_EQ(late.size(), 2U);
  EXPECT_TRUE(
      begins(say(connect(), post("/mcp", blanks + R"({"jsonrpc":"2.0","id":7,"method":"echo","params":{}})")), "200 "));
}

TEST_F(McpAnswersTest, AnIdThatIsKeptCounts) {
  const std::string id(700, 'x');
  Far& far = connect();
  say(far, post("/mcp", R"({"jsonrpc":"2.0","id":")" + id + R"(","method":"late","params":{}})"));
  ASSERT_EQ(late.size(), 1U);
  const std::string other =
      post("/mcp", std::string(400, ' ') + R"({"jsonrpc":"2.0","id":1,"method":"echo","params":{}})");
  EXPECT_TRUE(begins(say(connect(), other), "503 "));
  late.at(0).ok(3);
  turn();
  EXPECT_TRUE(begins(say(connect(), other), "200 "));
}

TEST_F(McpAnswersTest, AnIdCountsUntilItsAnswerIsRead) {
  const std::string with_id =
      R"({"jsonrpc":"2.0","id":")" + std::string(700, 'x') + R"(","method":"echo","params":{}})";
  Far& far = connect();
  say(far, ask("echo"));
  far.channel->want(false, false);
  for (int i = 0; i < 200; ++i) say(far, ask("echo"));  // more than the channel holds
  say(far, post("/mcp", with_id));
  const std::string other =
      post("/mcp", std::string(400, ' ') + R"({"jsonrpc":"2.0","id":1,"method":"echo","params":{}})");
  EXPECT_TRUE(begins(say(connect(), other), "503 "));
  far.channel->want(true, false);
  turn();
  EXPECT_TRUE(begins(say(connect(), other), "200 "));
}

TEST_F(McpAnswersTest, ANotificationWhoseHeadIsWrongIsRefused) {
  const std::string wrong = std::string(with_token) + "Mcp-Method: wrong\r\n";
  Far& far = connect();
  const std::string text = say(far, post("/mcp", R"({"jsonrpc":"2.0","method":"notifications/x"})", wrong));
  EXPECT_TRUE(begins(text, "400 ")) << text;
  EXPECT_TRUE(text.ends_with(R"({"jsonrpc":"2.0","error":{"code":-32020,"message":"Header mismatch"}})")) << text;
  EXPECT_TRUE(mcp.callers.empty());
  EXPECT_TRUE(begins(say(far, ask("echo")), "200 ")) << "the connection goes on";
}

TEST_F(McpAnswersTest, ABodyThatComesAfterTheEndHasBegunIsAnswered) {
  const std::string notice = post("/mcp", R"({"jsonrpc":"2.0","method":"notifications/x"})");
  const std::string request = ask("echo");
  std::vector<std::pair<Far*, const std::string*>> begun;
  for (const std::string* const message : {&notice, &request}) {
    begun.emplace_back(&connect(), message);
    say(*begun.back().first, message->substr(0, message->size() - 1));
  }
  door.stop();
  turn();
  const std::string accepted = say(*begun[0].first, notice.substr(notice.size() - 1));
  EXPECT_TRUE(begins(accepted, "202 ")) << accepted;
  EXPECT_TRUE(mcp.is_late);
  EXPECT_TRUE(begins(say(*begun[1].first, request.substr(request.size() - 1)), "200 "));
}

TEST_F(McpAnswersTest, TheEndOfTheDoorIsTold) {
  Far& listening = connect();
  say(listening, ask("late"));
  tell(1);
  turn();
  Far& waiting = connect();
  say(waiting, ask("late"));
  door.stop();
  EXPECT_EQ(mcp.ended, "for good");
  turn();
  EXPECT_FALSE(listening.seen.ended) << "it gets its answer first";
  late.at(0).ok(3);
  late.at(1).withdraw();
  turn();
  EXPECT_TRUE(listening.seen.text.ends_with(event(R"({"jsonrpc":"2.0","id":7,"result":3})")));
  EXPECT_TRUE(listening.seen.ended);
  pass(1s);  // it may read so long
  EXPECT_EQ(waiting.seen.text, "") << "what was dropped has no answer, not an empty one";
  EXPECT_EQ(empty, 1);
}

}  // namespace
}  // namespace duet::app
