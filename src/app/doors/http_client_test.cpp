#include "app/doors/http_client.h"

#include <chrono>

#include "app/doors/http_fixture_test.h"

namespace duet::app {
namespace {

using namespace std::chrono_literals;

class HttpClientTest : public HttpDoorTest {
 protected:
  static std::string echo(const std::string& params) {
    return R"({"jsonrpc":"2.0","id":1,"method":"echo","params":)" + params + "}";
  }
};

TEST_F(HttpClientTest, RequestsAreAnsweredOneAfterAnother) {
  Far& far = connect();
  const std::string both = say(far, post("/rpc", echo("[1]")) + post("/rpc", echo("[2]")) + get("/"));
  EXPECT_LT(both.find("\"result\":[1]"), both.find("\"result\":[2]"));
  EXPECT_LT(both.find("\"result\":[2]"), both.find("<!doctype html>"));
  EXPECT_FALSE(far.seen.ended);
}

TEST_F(HttpClientTest, EveryCutOfARequestIsTheSameRequest) {
  const std::string request = post("/rpc", echo("[1]"));
  const std::string whole = say(connect(), request);
  for (std::size_t cut = 1; cut < request.size(); ++cut) {
    Far& far = connect();
    say(far, request.substr(0, cut));
    EXPECT_EQ(say(far, request.substr(cut)), whole) << cut;
    far.channel->close();
    turn();
  }
}

TEST_F(HttpClientTest, ANotificationHasNoAnswer) {
  EXPECT_TRUE(begins(say(connect(), post("/rpc", R"({"jsonrpc":"2.0","method":"echo"})")), "204 "));
}

TEST_F(HttpClientTest, ALateAnswerIsWaitedForAndHoldsUpWhatIsBehindIt) {
  Far& far = connect();
  EXPECT_EQ(say(far, post("/rpc", ask_late) + get("/")), "");
  pass(300s);
  late.at(0).ok(3);
  turn();
  EXPECT_LT(far.seen.text.find("\"result\":3"), far.seen.text.find("<!doctype html>"));
}

TEST_F(HttpClientTest, WhoGoesIsOwedNothing) {
  Far& far = connect();
  say(far, post("/rpc", ask_late));
  EXPECT_EQ(ended_callers, 0);
  far.channel->close();
  turn();
  EXPECT_EQ(ended_callers, 1);
  EXPECT_EQ(door.connection_count(), 0U);
}

TEST_F(HttpClientTest, AHeadMustComeInTime) {
  Far& silent = connect();
  Far& slow = connect();
  say(slow, "GET / HT");
  pass(9s);
  say(slow, "TP/1.1\r\nHost: ");
  EXPECT_FALSE(silent.seen.ended || slow.seen.ended);
  pass(1s);
  EXPECT_TRUE(silent.seen.ended);
  EXPECT_EQ(silent.seen.text, "");
  EXPECT_TRUE(begins(slow.seen.text, "408 "));
}

TEST_F(HttpClientTest, ABodyMayPauseForTenSecondsAndTakeTwoMinutes) {
  const std::string request = post("/rpc", std::string(500, ' '));
  Far& pauses = connect();
  Far& drips = connect();
  say(pauses, request.substr(0, 200));
  say(drips, request.substr(0, 200));
  for (int i = 0; i < 12; ++i) {
    say(drips, " ");
    EXPECT_EQ(drips.seen.text, "") << i;
    pass(9990ms);
  }
  EXPECT_TRUE(begins(pauses.seen.text, "408 "));
  pass(1s);
  EXPECT_TRUE(begins(drips.seen.text, "408 "));
}

TEST_F(HttpClientTest, AnIdleConnectionIsClosedAfterAMinute) {
  Far& far = connect();
  say(far, get("/"));
  pass(59s);
  EXPECT_TRUE(begins(say(far, get("/")), "200 "));
  pass(59s);
  EXPECT_FALSE(far.seen.ended);
  pass(1s);
  EXPECT_TRUE(far.seen.ended);
}

TEST_F(HttpClientTest, ARefusalThatClosesLingersUntilItWasRead) {
  Far& far = connect();
  EXPECT_TRUE(begins(say(far, "nonsense\r\n\r\n"), "400 "));
  EXPECT_TRUE(far.seen.ended) << "we send no more";
  EXPECT_EQ(door.connection_count(), 1U) << "and read what is still on its way";
  pass(1s);
  EXPECT_EQ(door.connection_count(), 0U);
}

TEST_F(HttpClientTest, AFileOfThePageHasATag) {
  Far& far = connect();
  const std::string page = say(far, get("/"));
  const std::size_t at = page.find("ETag: ");
  ASSERT_NE(at, std::string::npos);
  const std::string tag = page.substr(at + 6, page.find('\r', at) - at - 6);
  EXPECT_NE(page.find("Cache-Control: no-cache\r\n"), std::string::npos);
  const std::string same = say(far, get("/", "If-None-Match: " + tag + "\r\n"));
  EXPECT_TRUE(begins(same, "304 "));
  EXPECT_EQ(same.find("<!doctype"), std::string::npos);
  const std::string head = say(far, "HEAD / HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_TRUE(begins(head, "200 "));
  EXPECT_TRUE(head.ends_with("\r\n\r\n"));
}

TEST_F(HttpClientTest, MetricsArePlainText) {
  const std::string told = say(connect(), get("/metrics", with_token));
  EXPECT_NE(told.find("Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n"), std::string::npos);
  EXPECT_TRUE(told.ends_with("\r\n\r\nduet_x 1\n"));
}

TEST_F(HttpClientTest, LoginsAreRefusedWithWhenToTryAgain) {
  Far& far = connect();
  const std::string refused = say(far, post("/login", "{}", ""));
  EXPECT_TRUE(begins(refused, "429 "));
  EXPECT_NE(refused.find("Retry-After: 7\r\n"), std::string::npos);
  EXPECT_TRUE(begins(say(far, post("/login", R"({"code":1})", "")), "200 "));
}

TEST_F(HttpClientTest, ALogoutIsAnsweredAndCloses) {
  Far& far = connect();
  EXPECT_TRUE(begins(say(far, post("/logout", "")), "204 "));
  EXPECT_EQ(logouts, 1);
  EXPECT_TRUE(far.seen.ended);
}

TEST_F(HttpClientTest, AStreamHasAHeartbeatAndGivesNoMoreThanIsRead) {
  Far& far = connect();
  EXPECT_TRUE(begins(say(far, get("/events", with_token)), "200 "));
  EXPECT_TRUE(far.seen.text.ends_with("retry: 2000\n\n"));
  EventStream& stream = *events.streams.begin()->second;
  far.seen.text.clear();
  EXPECT_TRUE(stream.give({.epoch = "e", .seq = 4, .kind = "taskQueued", .params = "{}"}, 100));
  EXPECT_TRUE(stream.give({.epoch = "e", .seq = 5, .kind = "taskQueued", .params = std::string(200, '1')}, 100));
  EXPECT_FALSE(stream.give({.epoch = "e", .seq = 6, .kind = "taskQueued", .params = "{}"}, 100));
  turn();
  EXPECT_TRUE(far.seen.text.starts_with("id: e.4\nevent: taskQueued\ndata: {}\n\n")) << far.seen.text;
  EXPECT_GT(events.reads, 0);
  far.seen.text.clear();
  pass(15s);
  EXPECT_EQ(far.seen.text, ":\n\n");
  stream.give_last({.kind = "overflow", .params = "{}"});
  turn();
  EXPECT_TRUE(far.seen.ended);
}

TEST_F(HttpClientTest, AStreamEndsWithItsReader) {
  Far& far = connect();
  say(far, get("/events", with_token));
  EXPECT_EQ(events.streams.size(), 1U);
  far.channel->close();
  turn();
  EXPECT_TRUE(events.streams.empty());
  EXPECT_TRUE(begins(say(connect(), get("/events?kind=nonsense", with_token)), "400 "));
}

TEST_F(HttpClientTest, WhatFollowsAnUpgradeGoesAlong) {
  Far& far = connect();
  const std::string upgrade =
      get("/ws", std::string(with_token) +
                     "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                     "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n");
  EXPECT_TRUE(begins(say(far, upgrade + "frame"), "101 "));
  ASSERT_EQ(websockets.size(), 1U);
  EXPECT_EQ(websockets.front().second, "frame");
}

}  // namespace
}  // namespace duet::app
