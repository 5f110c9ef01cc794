#include "duet/transport/tls_channel.h"

#include <cerrno>
#include <optional>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "duet/transport/await_test.h"
#include "duet/transport/channel_recorder_test.h"
#include "duet/transport/memory.h"
#include "duet/transport/tls_authority_test.h"
#include "duet/transport/tls_key_updater_test.h"

namespace duet::transport {
namespace {

struct TestContexts {
  std::shared_ptr<const TlsContext> server;
  std::shared_ptr<const TlsContext> client;
};

const TestContexts& test_contexts() {
  static const TestContexts made = [] {
    const TestAuthority authority;
    const TestIdentity server = authority.issue({.name = "server", .names = "DNS:here.test", .usage = "serverAuth"});
    const TestIdentity client = authority.issue({.name = "laptop"});
    return TestContexts{TlsContext::for_server({.certificate = {"server.pem", server.certificate},
                                                .key = {"server.key", server.key},
                                                .clients_ca = {"ca.pem", authority.pem()},
                                                .protocols = {"duet-rpc/1"}}),
                        TlsContext::for_client({"client.pem", client.key + client.certificate + authority.pem()})};
  }();
  return made;
}

/// A client and a server over a pair of pipes in memory, and what each was told.
class TlsChannelTest : public testing::Test {
 protected:
  struct End {
    bool opened = false;
    std::optional<TlsFailure> failure = {};
    std::unique_ptr<TlsChannel> channel = {};
    std::unique_ptr<ChannelRecorder> recorder = {};
  };

  void connect(std::size_t capacity = 64 * 1024) {
    auto [near, far] = memory_pair(loop_, capacity);
    make(server_, std::move(near), TlsSession::server(test_contexts().server));
    make(client_, std::move(far), TlsSession::client(test_contexts().client, "here.test", "duet-rpc/1"));
  }
  void make(End& end, std::unique_ptr<Channel> transport, std::unique_ptr<TlsSession> session) {
    TlsEvents events{.on_open = [&end] { end.opened = true; },
                     .on_failed = [&end](const TlsFailure& failure) { end.failure = failure; }};
    end.channel =
        std::make_unique<TlsChannel>(loop_, std::move(transport), std::move(session), std::move(events), place_);
    end.recorder = std::make_unique<ChannelRecorder>(*end.channel);
    end.channel->start();
  }
  void shake_hands(std::size_t capacity = 64 * 1024) {
    connect(capacity);
    ASSERT_TRUE(turn_until([this] { return server_.opened && client_.opened; }));
  }
  template <typename Done>
  bool turn_until(Done done) {
    const base::TimePoint deadline = loop_.now() + test_patience;
    while (!done() && loop_.now() < deadline) loop_.turn(std::chrono::milliseconds(10));
    return done();
  }
  // As a connection does: what is not taken waits until it can be written.
  void write_all(Channel& channel, std::string_view text) {
    while (!text.empty()) {
      const IoResult moved = channel.write(text);
      ASSERT_NE(moved.state, IoResult::State::broken);
      text.remove_prefix(moved.count);
      if (moved.state == IoResult::State::blocked) loop_.turn(std::chrono::milliseconds(1));
    }
  }

  Loop loop_;
  std::shared_ptr<int> place_ = std::make_shared<int>(0);
  End server_;
  End client_;
};

TEST_F(TlsChannelTest, BytesGoBothWaysWhateverThePipesHold) {
  for (const std::size_t capacity : {1U, 3U, 100U, 4096U, 100'000U}) {
    server_ = {};
    client_ = {};
    shake_hands(capacity);
    const std::string question(capacity < 100 ? 2'000 : 200'000, 'q');
    write_all(*client_.channel, question);
    EXPECT_TRUE(turn_until([&] { return server_.recorder->text == question; })) << capacity;
    write_all(*server_.channel, "answer");
    EXPECT_TRUE(turn_until([&] { return client_.recorder->text == "answer"; })) << capacity;
    EXPECT_EQ(server_.recorder->error, 0);
  }
}

TEST_F(TlsChannelTest, NothingMovesBeforeTheHandshakeIsDone) {
  connect();
  std::string room(10, ' ');
  EXPECT_EQ(client_.channel->write("early").state, IoResult::State::blocked);
  EXPECT_EQ(client_.channel->read(room).state, IoResult::State::blocked);
  client_.channel->want(true, true);
  EXPECT_TRUE(turn_until([this] { return client_.recorder->writable > 0; })) << "told when it can be written";
  EXPECT_TRUE(client_.opened);
}

TEST_F(TlsChannelTest, TheEndOfOneDirectionLeavesTheOther) {
  shake_hands();
  write_all(*client_.channel, "question");
  client_.channel->end_output();
  EXPECT_TRUE(turn_until([this] { return server_.recorder->ended; }));
  EXPECT_EQ(server_.recorder->text, "question");
  EXPECT_FALSE(server_.failure);
  write_all(*server_.channel, "answer");
  server_.channel->close();
  EXPECT_TRUE(turn_until([this] { return client_.recorder->ended; }));
  EXPECT_EQ(client_.recorder->text, "answer");
}

TEST_F(TlsChannelTest, WhatWaitsAtTheCloseArrivesAndThePlaceIsKeptUntilThen) {
  shake_hands(100);
  client_.channel->want(false, false);
  const std::string text(30'000, 'x');
  ASSERT_EQ(server_.channel->write(text).count, text.size());
  server_.channel->close();
  server_ = {};
  EXPECT_EQ(place_.use_count(), 3) << "ours, the client's and that of what is being sent";
  client_.channel->want(true, false);
  EXPECT_TRUE(turn_until([this] { return client_.recorder->ended; }));
  EXPECT_EQ(client_.recorder->text, text);
  client_.channel->close();
  EXPECT_TRUE(turn_until([this] { return place_.use_count() == 2; }));
}

// The client's session is here without a channel, so that its transport can end without a word.
TEST_F(TlsChannelTest, ATransportThatEndsBeforeTlsDoesIsBroken) {
  auto pair = memory_pair(loop_);
  Channel& far = *pair.second;
  make(server_, std::move(pair.first), TlsSession::server(test_contexts().server));
  const auto session = TlsSession::client(test_contexts().client, "here.test", "duet-rpc/1");
  ChannelRecorder wire(far);
  const auto say = [&] {
    session->shake_hands();
    far.write(std::exchange(session->output(), {}));
  };
  say();
  ASSERT_TRUE(turn_until([&] {
    session->receive(std::exchange(wire.text, {}));
    say();
    return server_.opened;
  }));
  session->write("half a li");
  say();
  far.close();
  EXPECT_TRUE(turn_until([this] { return server_.recorder->error != 0; }));
  EXPECT_EQ(server_.recorder->text, "half a li");
  EXPECT_EQ(server_.recorder->error, ECONNRESET);
  EXPECT_FALSE(server_.recorder->ended);
  EXPECT_EQ(server_.failure->kind, TlsFailure::Kind::cut);
}

// Each request is answered, so the answers must not pile up.
TEST_F(TlsChannelTest, APeerThatAsksForNewKeysAndDoesNotReadIsNotReadAnyMore) {
  auto pair = memory_pair(loop_, 4096);
  Channel& far = *pair.second;
  make(server_, std::move(pair.first), TlsSession::server(test_contexts().server));
  auto wire = std::make_unique<ChannelRecorder>(far);
  TlsKeyUpdater client(test_contexts().client);
  ASSERT_TRUE(turn_until([&] {
    client.receive(std::exchange(wire->text, {}));
    client.shake_hands();
    write_all(far, client.take());
    return server_.opened;
  }));
  far.want(false, false);
  std::string left;
  std::size_t sent = 0;
  for (int idle = 0; idle < 50 && sent < (1U << 20U); ++idle) {
    if (left.empty()) {
      client.ask_for_keys(50);
      client.write("x");
      left = client.take();
    }
    const IoResult moved = far.write(left);
    left.erase(0, moved.count);
    sent += moved.count;
    if (moved.count > 0) idle = 0;
    loop_.turn(std::chrono::seconds(0));
  }
  EXPECT_GT(sent, 64U * 1024);
  EXPECT_LT(sent, 512U * 1024);
  EXPECT_FALSE(server_.failure);
}

TEST_F(TlsChannelTest, AHandshakeThatStopsHalfWayTimesOut) {
  auto [near, far] = memory_pair(loop_);
  TlsEvents events{.on_failed = [this](const TlsFailure& failure) { server_.failure = failure; }};
  server_.channel = std::make_unique<TlsChannel>(loop_, std::move(near), TlsSession::server(test_contexts().server),
                                                 std::move(events));
  server_.channel->start(std::chrono::milliseconds(20));
  EXPECT_TRUE(turn_until([this] { return server_.failure.has_value(); }));
  EXPECT_EQ(server_.failure->kind, TlsFailure::Kind::timeout);
}

TEST_F(TlsChannelTest, PlainTextGetsAnAlertAndTheEnd) {
  auto [near, far] = memory_pair(loop_);
  make(server_, std::move(near), TlsSession::server(test_contexts().server));
  ChannelRecorder plain(*far);
  far->write("GET / HTTP/1.1\r\n\r\n");
  ASSERT_TRUE(turn_until([this] { return server_.failure.has_value(); }));
  server_.channel->close();
  EXPECT_TRUE(turn_until([&] { return plain.ended; }));
  EXPECT_EQ(plain.text, std::string("\x15\x03\x01\x00\x02\x02\x46", 7));
}

TEST_F(TlsChannelTest, ItMayBeClosedWhileAStepIsUnderWay) {
  connect();
  ASSERT_TRUE(turn_until([this] { return server_.channel->is_busy(); }));
  server_ = {};
  EXPECT_TRUE(turn_until([this] { return client_.failure.has_value(); }));
  EXPECT_EQ(client_.failure->kind, TlsFailure::Kind::cut);
}

}  // namespace
}  // namespace duet::transport
