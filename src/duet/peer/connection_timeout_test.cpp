#include <algorithm>
#include <string>

#include <gtest/gtest.h>

#include "duet/peer/connection_fixture_test.h"

namespace duet::peer {
namespace {

using namespace std::chrono_literals;

struct PartialFrame : TestConnection {
  explicit PartialFrame(std::size_t capacity = 65536) : TestConnection(Protocol::lsp_server(), capacity) { open(); }
  void send_bytes(std::string_view bytes) {
    far->send(bytes);
    turn();
  }
  std::size_t drops() {
    const Strings lines = tape.lines();
    return static_cast<std::size_t>(std::count_if(lines.begin(), lines.end(), [](const std::string& line) {
      return line.starts_with("warn  Partial frame dropped");
    }));
  }
  const std::string message = framed(request("1", "echo"));
};

TEST(ReadTimeout, APartialFrameIsDroppedThirtySecondsAfterItsFirstByte) {
  PartialFrame p;
  p.send_bytes("Content-");
  p.advance(20s);
  p.send_bytes("Length: 100\r\n\r\n{");
  p.advance(9999ms);
  EXPECT_EQ(p.drops(), 0U);
  p.advance(1ms);
  EXPECT_EQ(p.tape.lines(), Strings{"warn  Partial frame dropped bytes=1 waited_ms=30000"});
  EXPECT_EQ(p.heard(), Strings{});
  p.send_bytes("\"late\":\"bytes of the same frame\"}");
  p.send_bytes(p.message);
  EXPECT_EQ(p.heard(), Strings{result("1", "null")});
}

TEST(ReadTimeout, WaitingBetweenFramesNeverTimesOut) {
  PartialFrame p;
  p.send_bytes(p.message);
  p.advance(1h);
  p.send_bytes(p.message);
  EXPECT_EQ(p.heard().size(), 2U);
  EXPECT_EQ(p.drops(), 0U);
}

TEST(ReadTimeout, RunsAnewForEveryFrame) {
  PartialFrame p;
  const std::string half = p.message.substr(0, 30);
  const std::string rest = p.message.substr(30);
  p.send_bytes(half);
  for (int i = 0; i < 5; ++i) {
    p.advance(20s);
    p.send_bytes(rest + half);
  }
  EXPECT_EQ(p.heard().size(), 5U);
  EXPECT_EQ(p.drops(), 0U);
  p.advance(30s);
  EXPECT_EQ(p.drops(), 1U);
}

TEST(ReadTimeout, EveryPartialFrameHasItsOwn) {
  PartialFrame p;
  for (std::size_t i = 1; i <= 3; ++i) {
    p.send_bytes("Content-Length: 100\r\n\r\n{");
    p.advance(29s);
    EXPECT_EQ(p.drops(), i - 1);
    p.advance(1s);
    EXPECT_EQ(p.drops(), i);
    p.advance(100s);
    EXPECT_EQ(p.drops(), i);
  }
  p.send_bytes(p.message);
  EXPECT_EQ(p.heard(), Strings{result("1", "null")});
}

TEST(ReadTimeout, WhatIsInThePipeAlreadyIsReadFirst) {
  PartialFrame p(4'000'000);
  const std::string large = framed(request("1", "echo", quoted_text(3'000'000)));
  p.send_bytes(large.substr(0, 20));
  p.clock.advance(40s);
  p.far->send(large.substr(20));
  ASSERT_TRUE(p.turn_until([&] { return p.heard().size() == 1; }));
  EXPECT_EQ(p.drops(), 0U);
}

TEST(ReadTimeout, DoesNotRunWhileWeDoNotRead) {
  PartialFrame p;
  p.send_bytes(p.message.substr(0, 10));
  p.advance(10s);
  p.connection->conversation().limit_waiting(0);
  p.turn();
  p.advance(100s);
  p.connection->conversation().limit_waiting(std::string::npos);
  p.turn();
  p.advance(5s);
  p.connection->conversation().limit_waiting(0);
  p.turn();
  p.advance(100s);
  p.connection->conversation().limit_waiting(std::string::npos);
  p.turn();
  p.advance(14s);
  EXPECT_EQ(p.drops(), 0U);
  p.advance(1s);
  EXPECT_EQ(p.drops(), 1U);
}

TEST(ReadTimeout, AFrameBegunWhileWePausedHasAllItsTime) {
  Protocol limits = Protocol::lsp_server();
  limits.max_waiting = 10'000;
  TestConnection c(limits, 4096);
  c.open();
  c.far->read(false);
  for (int i = 0; i < 20; ++i) c.send(request("1", "echo", quoted_text(1000)));
  c.far->send("Content-Length: 100\r\n\r\n{");
  c.turn(200);
  EXPECT_GE(c.connection->load(), 10'000U);
  c.advance(100s);
  c.far->read(true);
  ASSERT_TRUE(c.turn_until([&] { return c.far->sent_all() && c.connection->conversation().unwritten_bytes() == 0; }));
  c.advance(29s);
  EXPECT_EQ(c.tape.lines(), Strings{});
  c.advance(1s);
  EXPECT_EQ(c.tape.lines().size(), 1U);
}

TEST(ReadTimeout, IsASetting) {
  Protocol limits = Protocol::lsp_server();
  limits.frame_timeout = 1500ms;
  TestConnection c(limits);
  c.open();
  c.far->send("Content");
  c.turn();
  c.advance(1499ms);
  EXPECT_EQ(c.tape.lines().size(), 0U);
  c.advance(1ms);
  EXPECT_EQ(c.tape.lines().size(), 1U);
}

TEST(ReadTimeout, MayHaveNoEnd) {
  Protocol limits = Protocol::lsp_server();
  limits.frame_timeout = base::Duration::max();
  TestConnection c(limits);
  c.clock.advance(1s);
  c.open();
  const std::string message = framed(request("1", "echo"));
  c.far->send(message.substr(0, 10));
  c.turn();
  c.advance(24h);
  c.far->send(message.substr(10));
  c.turn();
  EXPECT_EQ(c.heard().size(), 1U);
}

TEST(ReadTimeout, DoesNotConcernLines) {
  TestConnection c;
  c.open();
  const std::string message = request("1", "echo") + "\n";
  c.far->send(message.substr(0, 10));
  c.turn();
  c.advance(1h);
  c.far->send(message.substr(10));
  c.turn();
  EXPECT_EQ(c.heard().size(), 1U);
}

TEST(ReadTimeout, TheMemoryOfADroppedFrameIsGivenBack) {
  PartialFrame p;
  p.far->send(framed(quoted_text(3'000'000)).substr(0, 2'000'000));
  ASSERT_TRUE(p.turn_until([&] { return p.far->sent_all(); }));
  p.turn();
  p.advance(30s);
  ASSERT_EQ(p.drops(), 1U);
  EXPECT_TRUE(p.pool->keeps_any());
  p.advance(1s);
  EXPECT_FALSE(p.pool->keeps_any());
}

}  // namespace
}  // namespace duet::peer
