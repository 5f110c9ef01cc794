#include "app/doors/tls_door.h"

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "duet/base/clock.h"
#include "duet/base/log_sink.h"
#include "duet/transport/await_test.h"
#include "duet/transport/channel_recorder_test.h"
#include "duet/transport/memory.h"
#include "duet/transport/tls_authority_test.h"

namespace duet::app {
namespace {

using transport::Channel;
using transport::ChannelRecorder;
using transport::TestIdentity;
using transport::TlsChannel;
using transport::TlsContext;
using transport::TlsSession;

/// Lets in whom a test sends.
class TestAcceptor final : public transport::Acceptor {
 public:
  explicit TestAcceptor(Listener*& listener) : listener_(listener) {}
  void open(Listener& listener) override { listener_ = &listener; }
  void resume() override {}
  bool is_reachable() const override { return true; }
  void restore() override {}
  void close() override { listener_ = nullptr; }

 private:
  Listener*& listener_;
};

struct Arrival {
  std::unique_ptr<Channel> channel;
  std::string first_bytes;
  bool speaks_http = false;
};

struct TlsDoorTest : testing::Test {
  TlsDoorTest() {
    const TestIdentity server = authority.issue({.name = "server", .names = "DNS:here.test", .usage = "serverAuth"});
    const TestIdentity client = authority.issue({.name = "laptop"});
    client_context = TlsContext::for_client({"client.pem", client.key + client.certificate + authority.pem()});
    door.use(TlsContext::for_server({.certificate = {"server.pem", server.certificate},
                                     .key = {"server.key", server.key},
                                     .clients_ca = {"ca.pem", authority.pem()},
                                     .protocols = {"duet-rpc/1", "http/1.1"}}));
    door.open(std::make_unique<TestAcceptor>(listener));
  }

  TlsDoorCalls calls() {
    return {.on_known =
                [this](std::uint64_t number, const TlsSession& session) {
                  known[number] = session.peer_certificate().name;
                  if (turns_out_known) loop.defer([this, number] { door.turn_out(number); });
                },
            .on_arrived =
                [this](std::uint64_t number, std::unique_ptr<Channel> channel, const transport::PeerIdentity&,
                       std::string_view first_bytes, bool speaks_http) {
                  arrived[number] = {std::move(channel), std::string(first_bytes), speaks_http};
                },
            .on_gone = [this](std::uint64_t number) { gone.push_back(number); }};
  }
  /// Somebody comes, and says nothing yet.
  std::unique_ptr<Channel> come() {
    auto [near, far] = memory_pair(loop);
    EXPECT_TRUE(listener->has_room());
    listener->admit(std::move(near), {});
    return std::move(far);
  }
  /// Somebody comes and shakes hands; `protocol` as ALPN has it.
  std::unique_ptr<TlsChannel> shake_hands(const std::string& protocol) {
    auto channel =
        std::make_unique<TlsChannel>(loop, come(), TlsSession::client(client_context, "here.test", protocol));
    channel->start();
    return channel;
  }
  template <typename Done>
  bool turn_until(Done done) {
    const auto deadline = std::chrono::steady_clock::now() + transport::test_patience;
    while (!done() && std::chrono::steady_clock::now() < deadline) loop.turn(std::chrono::milliseconds(10));
    return done();
  }

  base::VirtualClock clock;  // nobody is waited for until a test says so
  transport::Loop loop{clock};
  base::Log log{nullptr};
  transport::TestAuthority authority;
  std::shared_ptr<const TlsContext> client_context;
  transport::Acceptor::Listener* listener = nullptr;
  std::map<std::uint64_t, std::string> known;
  std::map<std::uint64_t, Arrival> arrived;
  std::vector<std::uint64_t> gone;
  bool turns_out_known = false;
  TlsDoor door{loop, log, calls(), {.handshakes = 2, .strangers = 3, .moment = {}}};
};

TEST_F(TlsDoorTest, WhatIsSpokenIsSaidByAlpn) {
  const auto lines = shake_hands("duet-rpc/1");
  ASSERT_TRUE(turn_until([this] { return arrived.contains(1); }));
  const auto http = shake_hands("http/1.1");
  ASSERT_TRUE(turn_until([this] { return arrived.contains(2); }));
  EXPECT_FALSE(arrived[1].speaks_http);
  EXPECT_TRUE(arrived[2].speaks_http);
  EXPECT_EQ(known[1], "laptop");
}

TEST_F(TlsDoorTest, ElseTheFirstByteDecides) {
  const auto http = shake_hands("");
  ASSERT_TRUE(turn_until([this] { return known.contains(1); }));
  EXPECT_FALSE(arrived.contains(1)) << "it has not said what it speaks";
  http->write("GET /");
  ASSERT_TRUE(turn_until([this] { return arrived.contains(1); }));
  EXPECT_TRUE(arrived[1].speaks_http);
  EXPECT_EQ(arrived[1].first_bytes, "GET /");
  const auto lines = shake_hands("");
  ASSERT_TRUE(turn_until([this] { return known.contains(2); }));
  lines->write("{}\n");
  ASSERT_TRUE(turn_until([this] { return arrived.contains(2); }));
  EXPECT_FALSE(arrived[2].speaks_http);
}

TEST_F(TlsDoorTest, TheOneThatWaitsLongestMakesWay) {
  const auto first = come();
  const auto second = come();
  const auto third = come();
  ChannelRecorder at_first(*first);
  ChannelRecorder at_second(*second);
  EXPECT_TRUE(turn_until([&] { return at_first.ended; }));
  EXPECT_FALSE(at_second.ended);
  EXPECT_EQ(gone, std::vector<std::uint64_t>{1});
  const auto fourth = shake_hands("duet-rpc/1");
  EXPECT_TRUE(turn_until([this] { return arrived.contains(4); }));
  EXPECT_TRUE(at_second.ended);
}

TEST_F(TlsDoorTest, AConnectionIsGoneWhenWhoeverHasItLetsGo) {
  auto client = shake_hands("duet-rpc/1");
  ASSERT_TRUE(turn_until([this] { return arrived.contains(1); }));
  EXPECT_TRUE(gone.empty());
  client.reset();
  arrived.clear();
  EXPECT_TRUE(turn_until([this] { return !gone.empty(); }));
}

TEST_F(TlsDoorTest, WhoHasNotArrivedCanBeTurnedOut) {
  const auto client = shake_hands("");
  ChannelRecorder seen(*client);
  ASSERT_TRUE(turn_until([this] { return known.contains(1); }));
  door.turn_out(1);
  EXPECT_TRUE(turn_until([&] { return seen.ended; }));
  EXPECT_FALSE(arrived.contains(1));
}

TEST_F(TlsDoorTest, WhoIsTurnedOutBeforeItArrivesDoesNotArrive) {
  turns_out_known = true;
  const auto client = shake_hands("duet-rpc/1");
  ChannelRecorder seen(*client);
  EXPECT_TRUE(turn_until([&] { return seen.ended; }));
  EXPECT_FALSE(arrived.contains(1));
}

TEST_F(TlsDoorTest, WhoSaysNothingAfterItsHandshakeIsWaitedForTenSeconds) {
  const auto client = shake_hands("");
  ChannelRecorder seen(*client);
  ASSERT_TRUE(turn_until([this] { return known.contains(1); }));
  clock.advance(std::chrono::seconds(9));
  loop.turn(std::chrono::seconds(0));
  EXPECT_FALSE(seen.ended);
  clock.advance(std::chrono::seconds(1));
  EXPECT_TRUE(turn_until([&] { return seen.ended; }));
}

TEST_F(TlsDoorTest, OfThoseWhoSayNothingTheFirstMakesWay) {
  std::vector<std::unique_ptr<TlsChannel>> clients;
  std::vector<std::unique_ptr<ChannelRecorder>> seen;
  for (std::uint64_t number = 1; number <= 3; ++number) {
    clients.push_back(shake_hands(""));
    seen.push_back(std::make_unique<ChannelRecorder>(*clients.back()));
    ASSERT_TRUE(turn_until([&] { return known.contains(number); }));
  }
  EXPECT_TRUE(turn_until([&] { return seen.front()->ended; }));
  EXPECT_FALSE(seen.at(1)->ended);
  EXPECT_FALSE(seen.at(2)->ended);
}

// A refused client may keep its connection for a second to read the reason, but not a crowd of them.
TEST_F(TlsDoorTest, OfACrowdOfRefusedOnesNobodyIsWaitedFor) {
  std::vector<std::unique_ptr<Channel>> clients;
  std::vector<std::unique_ptr<ChannelRecorder>> seen;
  for (int i = 0; i < 4; ++i) {
    clients.push_back(come());
    seen.push_back(std::make_unique<ChannelRecorder>(*clients.back()));
    clients.back()->write("GET / HTTP/1.1");
    ASSERT_TRUE(turn_until([&] { return seen.back()->ended; }));
  }
  EXPECT_TRUE(turn_until([this] { return !gone.empty(); }));
  EXPECT_EQ(gone, std::vector<std::uint64_t>{4});
}

TEST_F(TlsDoorTest, AClosedDoorLetsNobodyStay) {
  const auto waits = come();
  ChannelRecorder seen(*waits);
  door.close();
  EXPECT_EQ(listener, nullptr);
  EXPECT_TRUE(turn_until([&] { return seen.ended; }));
}

}  // namespace
}  // namespace duet::app
