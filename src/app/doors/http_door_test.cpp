#include "app/doors/http_door.h"

#include <unistd.h>

#include "app/doors/http_fixture_test.h"

namespace duet::app {
namespace {

TEST_F(HttpDoorTest, AnotherUserIsToldSoAndNothingElse) {
  Far& far = connect(getuid() + 1);
  turn();
  EXPECT_TRUE(begins(far.seen.text, "403 ")) << far.seen.text;
  EXPECT_NE(far.seen.text.find("\"other-user\""), std::string::npos);
  EXPECT_TRUE(far.seen.ended);
  EXPECT_TRUE(begins(say(connect(geteuid()), get("/")), "200 "));
  EXPECT_TRUE(begins(say(connect(), get("/")), "200 ")) << "where the kernel does not say, a token decides";
}

TEST_F(HttpDoorTest, WhoHasShownNothingMakesWayForTheNext) {
  Far& first = connect();
  Far& second = connect();
  say(second, get("/metrics", with_token));
  connect();
  connect();
  turn();
  EXPECT_FALSE(first.seen.ended) << "three have places";
  connect();
  turn();
  EXPECT_TRUE(first.seen.ended);
  EXPECT_TRUE(begins(say(second, get("/metrics", with_token)), "200 "));
}

TEST_F(HttpDoorTest, WhoComesWhenItIsFullIsToldToComeAgain) {
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(begins(say(connect(), get("/metrics", with_token)), "200 "));
  Far& fifth = connect();
  turn();
  EXPECT_TRUE(begins(fifth.seen.text, "503 "));
  EXPECT_NE(fifth.seen.text.find("Retry-After: 1\r\n"), std::string::npos);
}

TEST_F(HttpDoorTest, BodiesHaveABoundTogether) {
  const std::string half = post("/rpc", std::string(600, ' ')).substr(0, 200);
  Far& first = connect();
  EXPECT_EQ(say(first, half), "");
  EXPECT_TRUE(begins(say(connect(), half), "503 "));
  first.channel->close();
  turn();
  EXPECT_EQ(say(connect(), half), "") << "there is room again";
}

TEST_F(HttpDoorTest, AStopAnswersWhatIsUnderWayAndTellsWhenAllHaveGone) {
  Far& idle = connect();
  Far& asks = connect();
  say(asks, post("/rpc", ask_late));
  door.stop();
  EXPECT_EQ(listener, nullptr) << "nobody is taken any more";
  turn();
  EXPECT_TRUE(idle.seen.ended);
  EXPECT_EQ(empty, 0);
  late.at(0).ok(5);
  turn();
  EXPECT_NE(asks.seen.text.find("\"result\":5"), std::string::npos) << asks.seen.text;
  EXPECT_NE(asks.seen.text.find("Connection: close\r\n"), std::string::npos);
  asks.channel->close();
  turn();
  EXPECT_EQ(empty, 1);
  EXPECT_EQ(door.connection_count(), 0U);
}

TEST_F(HttpDoorTest, ASessionThatEndsTakesItsConnectionsAlong) {
  Far& far = connect();
  Far& other = connect();
  say(far, post("/rpc", ask_late));
  say(other, get("/"));
  door.end_session(*who);
  turn();
  EXPECT_TRUE(far.seen.ended);
  EXPECT_FALSE(other.seen.ended);
  EXPECT_EQ(ended_callers, 1);
}

TEST_F(HttpDoorTest, AWebSocketIsAConnectionUntilItHasGone) {
  say(connect(),
      get("/ws", std::string(with_token) + "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                                           "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"));
  EXPECT_EQ(websockets.size(), 1U);
  EXPECT_EQ(door.connection_count(), 1U);
  door.connection_gone(900);
  EXPECT_EQ(door.connection_count(), 0U);
}

TEST_F(HttpDoorTest, RefusalsFillNoLog) {
  for (int i = 0; i < 30; ++i) say(connect(), get("/secret"));
  EXPECT_EQ(tape.lines().size(), 10U);
  EXPECT_EQ(tape.lines().front().find("secret"), std::string::npos) << tape.lines().front();
  pass(std::chrono::seconds(1));
  say(connect(), get("/secret"));
  EXPECT_EQ(tape.lines().size(), 11U);
}

}  // namespace
}  // namespace duet::app
