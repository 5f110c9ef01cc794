// A server whose clients come by WebSockets as well as by lines.

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "duet/framing/websocket_frames_test.h"
#include "duet/peer/server_fixture_test.h"
#include "duet/transport/memory.h"

namespace duet::peer {
namespace {

using namespace std::chrono_literals;
using framing::text_frame;

struct WebSocketSetting : ServerSetting {
  using ServerSetting::ServerSetting;

  std::unique_ptr<FarEnd> admit(std::string_view first_bytes = {}) {
    auto [near, far] = transport::memory_pair(loop);
    auto end = std::make_unique<FarEnd>(std::move(far));
    server.admit(std::move(near), {}, Protocol::websocket(), first_bytes);
    turn();
    return end;
  }
  void advance(base::Duration step) {
    clock.advance(step);
    turn(30);
  }
};

Strings take(FarEnd& far) { return far.take(Framing::websocket); }

TEST(WebSocketServer, ServesWhoeverIsAdmittedWithAProtocolOfItsOwn) {
  WebSocketSetting s;
  const auto far = s.admit();
  far->send(text_frame(request("1", "echo", "[1]")) + text_frame(request("2", "echo", "[2]")));
  s.turn();
  EXPECT_EQ(take(*far), (Strings{result("1", "[1]"), result("2", "[2]")}));
  EXPECT_TRUE(far->is_whole());
}

TEST(WebSocketServer, BytesThatWereReadAlreadyAreHandledFirst) {
  WebSocketSetting s;
  const std::string frames = text_frame(request("1", "echo", "[1]")) + text_frame(request("2", "echo", "[2]"));
  for (const std::size_t split : {std::size_t{1}, std::size_t{30}, frames.size()}) {
    const auto far = s.admit(frames.substr(0, split));
    far->send(frames.substr(split));
    s.turn();
    EXPECT_EQ(take(*far), (Strings{result("1", "[1]"), result("2", "[2]")}));
  }
}

TEST(WebSocketServer, ABroadcastReachesEveryFraming) {
  WebSocketSetting s;
  s.server.start(s.path);
  const auto first = s.admit();
  const auto lines = s.connect();
  const auto second = s.admit();
  EXPECT_EQ(s.server.broadcast("news", {{"n", 1}}), 0U);
  s.turn();
  const Strings expected{notification("news", R"({"n":1})")};
  EXPECT_EQ(take(*first), expected);
  EXPECT_EQ(take(*second), expected);
  EXPECT_EQ(lines->take(Framing::lines), expected);
}

TEST(WebSocketServer, StopSaysCloseToEachAndWaitsForTheirs) {
  WebSocketSetting s;
  const auto polite = s.admit();
  const auto mute = s.admit();
  s.server.stop();
  s.turn();
  EXPECT_EQ(take(*polite), Strings{"<close 1001 >"});
  EXPECT_EQ(take(*mute), Strings{"<close 1001 >"});
  polite->send(framing::close(1001));
  s.turn();
  EXPECT_TRUE(polite->ended());
  EXPECT_FALSE(mute->ended());
  s.advance(1900ms);
  EXPECT_EQ(s.server.client_count(), 1U);
  s.advance(100ms);
  EXPECT_TRUE(mute->ended());
  EXPECT_EQ(s.server.client_count(), 0U);
}

TEST(WebSocketServer, ACloseIsAnsweredAndTheEndComesFromUs) {
  WebSocketSetting s;
  const auto far = s.admit();
  far->send(framing::close(1000));
  s.turn();
  EXPECT_EQ(take(*far), Strings{"<close 1000 >"});
  EXPECT_TRUE(far->ended());
  EXPECT_EQ(s.server.client_count(), 0U);
}

TEST(WebSocketServer, AFaultIsClosedAndTheClientCanStillReadIt) {
  WebSocketSetting s;
  const auto far = s.admit();
  far->send(framing::ClientFrame{.opcode = 2, .payload = "x"}.bytes() + text_frame("1"));
  s.turn();
  EXPECT_EQ(take(*far), Strings{"<close 1003 >"});
  EXPECT_FALSE(far->ended());
  far->send(framing::close(1003));
  s.turn();
  EXPECT_TRUE(far->ended());
}

TEST(WebSocketServer, TheEndOfTcpCancelsWhatRuns) {
  WebSocketSetting s;
  const auto far = s.admit();
  far->send(text_frame(request("1", "late")));
  s.turn();
  bool abandoned = false;
  s.replies.at(0).on_abandoned([&] { abandoned = true; });
  far->close();
  s.turn();
  EXPECT_TRUE(abandoned);
  EXPECT_EQ(s.server.client_count(), 0U);
}

TEST(WebSocketServer, ASilentClientIsAskedAndThenDropped) {
  WebSocketSetting s;
  const auto silent = s.admit();
  const auto alive = s.admit();
  s.advance(29s);
  EXPECT_EQ(take(*silent), Strings{});
  s.advance(1s);
  EXPECT_EQ(take(*silent), Strings{"<ping >"});
  EXPECT_EQ(take(*alive), Strings{"<ping >"});
  alive->send(framing::pong());
  s.turn();
  s.advance(29s);
  EXPECT_FALSE(silent->ended());
  s.advance(1s);
  EXPECT_TRUE(silent->ended());
  EXPECT_FALSE(alive->ended());
  EXPECT_EQ(s.server.client_count(), 1U);
}

TEST(WebSocketServer, ABusyClientIsAskedOnlyWhenItFallsSilent) {
  WebSocketSetting s;
  const auto far = s.admit();
  for (int i = 0; i < 100; ++i) {
    far->send(text_frame(request("1", "echo", "[]")));
    s.turn();
    EXPECT_EQ(take(*far), Strings{result("1", "[]")});
    s.advance(700ms);
  }
  s.advance(1s);
  s.advance(1s);
  s.advance(27s);
  EXPECT_EQ(take(*far), Strings{});
  s.advance(2s);
  EXPECT_EQ(take(*far), Strings{"<ping >"});
}

TEST(WebSocketServer, AClientThatNeverReadsHoldsWhatIsBounded) {
  ServerLimits limits;
  limits.max_unread_broadcast = 100'000;
  WebSocketSetting s(limits);
  const auto far = s.admit();
  far->read(false);
  std::size_t missed = 0;
  for (int i = 0; i < 2000; ++i) {
    missed += s.server.broadcast("news", rpc::Json::view(quoted_text(1000)));
    far->send(framing::ping("p"));
    s.turn(1);
  }
  EXPECT_GT(missed, 1000U);
  far->read(true);
  s.turn(200);
  const Strings heard = take(*far);
  const auto pongs = static_cast<std::size_t>(std::ranges::count(heard, "<pong p>"));
  EXPECT_EQ(heard.size() - pongs + missed, 2000U);
  EXPECT_LE(pongs, 100U) << "those that went out before the pipe was full, and the newest";
  EXPECT_EQ(heard.back(), "<pong p>");
}

TEST(WebSocketServer, AVisitorThatMakesWayIsToldSoInItsFraming) {
  ServerLimits limits;
  limits.max_clients = 1;
  limits.visitors = 1;
  WebSocketSetting s(limits);
  s.server.start(s.path);
  const auto far = s.admit();
  s.advance(1s);
  const auto next = s.connect();
  s.turn();
  const Strings heard = take(*far);
  ASSERT_EQ(heard.size(), 1U);
  EXPECT_NE(heard[0].find("Too many clients"), std::string::npos);
  EXPECT_TRUE(far->ended());
}

}  // namespace
}  // namespace duet::peer
