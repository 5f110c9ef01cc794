#include "app/client/relay.h"

#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "duet/transport/loop.h"
#include "duet/transport/memory.h"

namespace duet::app {
namespace {

using peer::Protocol;
using transport::Channel;
using transport::IoResult;

// The far end of one of the relay's channels: writes what it is told to, and reads only when it is asked to.
class FarEnd final : Channel::Listener {
 public:
  explicit FarEnd(std::unique_ptr<Channel> channel) : channel_(std::move(channel)) {
    channel_->open(*this);
    channel_->want(false, false);
  }

  /// How much of it was taken.
  std::size_t write(std::string_view bytes) {
    const IoResult put = channel_->write(bytes);
    return put.state == IoResult::State::some ? put.count : 0;
  }
  void read() {
    std::string room(1U << 16U, '\0');
    for (IoResult got; (got = channel_->read(room)).state != IoResult::State::blocked;) {
      has_ended = got.state != IoResult::State::some;
      if (has_ended) return;
      text.append(room.data(), got.count);
    }
  }
  void close() { channel_->close(); }

  std::string text;
  bool has_ended = false;

 private:
  void on_readable() override {}
  void on_writable() override {}
  void on_hangup() override {}

  std::unique_ptr<Channel> channel_;
};

struct RelayTest : testing::Test {
  void start(Protocol::Framing framing = Protocol::Framing::content_length, const rpc::Json* events = nullptr) {
    auto [client, ours] = transport::memory_pair(loop);
    auto [daemon, theirs] = transport::memory_pair(loop);
    editor.emplace(std::move(client));
    server.emplace(std::move(daemon));
    relay.emplace(std::move(ours), framing, std::move(theirs),
                  Relay::Events{.on_last_request = [this] { last_request = true; },
                                .on_end = [this](Relay::Ending how) { ending = how; }});
    if (events != nullptr) relay->subscribe(*events);
    relay->open();
    turn();
  }
  void turn() {
    for (int i = 0; i < 20; ++i) loop.turn(std::chrono::seconds(0));
  }
  // Everything goes its way, as often as it takes.
  void exchange() {
    for (int i = 0; i < 50; ++i) {
      turn();
      editor->read();
      server->read();
    }
  }
  void write_all(FarEnd& from, std::string_view bytes) {
    while (!bytes.empty()) {
      bytes.remove_prefix(from.write(bytes));
      turn();
    }
    for (int i = 0; i < 10; ++i) exchange();
  }
  static std::string framed(const std::string& body) {
    return "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
  }

  transport::Loop loop;
  std::optional<FarEnd> editor;
  std::optional<FarEnd> server;
  std::optional<Relay> relay;
  std::optional<Relay::Ending> ending;
  bool last_request = false;
};

const std::string ping = R"({"jsonrpc":"2.0","id":1,"method":"ping"})";
const std::string pong = R"({"jsonrpc":"2.0","id":1,"result":{"pong":true}})";

TEST_F(RelayTest, ARequestBecomesALineAndItsAnswerAFrame) {
  start();
  editor->write(framed(ping));
  exchange();
  EXPECT_EQ(server->text, ping + '\n');
  server->write(pong + '\n');
  exchange();
  EXPECT_EQ(editor->text, framed(pong));
  EXPECT_FALSE(ending);
}

TEST_F(RelayTest, LinesStayLines) {
  start(Protocol::Framing::lines);
  editor->write(ping + "\r\n\n" + ping + '\n');
  exchange();
  EXPECT_EQ(server->text, ping + '\n' + ping + '\n');
  server->write(pong + '\n');
  exchange();
  EXPECT_EQ(editor->text, pong + '\n');
}

TEST_F(RelayTest, AMessageInPiecesIsOneMessage) {
  start();
  for (const char c : framed(ping) + framed("[" + ping + "]")) {
    editor->write({&c, 1});
    turn();
  }
  exchange();
  EXPECT_EQ(server->text, ping + "\n[" + ping + "]\n");
}

TEST_F(RelayTest, LineEndsBetweenTokensBecomeBlanks) {
  start();
  editor->write(framed("\n[ {\n\"jsonrpc\": \"2.0\",\r\n\"method\": \"x\\ny\" }\n]\r\n"));
  exchange();
  EXPECT_EQ(server->text, "[ { \"jsonrpc\": \"2.0\",\r \"method\": \"x\\ny\" } ]\n");
}

TEST_F(RelayTest, WhatIsNoMessageIsAnsweredHereAndTheNextOneGoesOn) {
  start();
  const std::string raw_line_end = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\nb\"}";
  editor->write("Content-Length: x\r\n\r\n" + framed(raw_line_end) + "Content-Length: 99999999999\r\n\r\n" +
                framed(ping));
  exchange();
  EXPECT_EQ(server->text, ping + '\n');
  for (const std::string_view reason : {"malformed-header", "invalid-json", "oversize"}) {
    EXPECT_NE(editor->text.find("{\"reason\":\"" + std::string(reason) + "\"}"), std::string::npos) << editor->text;
  }
}

TEST_F(RelayTest, AWrongLengthCostsOneMessage) {
  start();
  editor->write("Content-Length: " + std::to_string(ping.size() + 30) + "\r\n\r\n" + ping + framed(ping) +
                framed(ping));
  exchange();
  EXPECT_NE(editor->text.find("content-length-mismatch"), std::string::npos) << editor->text;
  EXPECT_EQ(server->text, ping + '\n' + ping + '\n');
}

TEST_F(RelayTest, AnotherContentTypeIsRefusedWithTheId) {
  start();
  editor->write("Content-Type: text/plain\r\n" + framed(ping));
  exchange();
  EXPECT_NE(editor->text.find(R"("id":1,"error":{"code":-32600)"), std::string::npos) << editor->text;
  EXPECT_EQ(server->text, "");
}

TEST_F(RelayTest, TheEndOfInputIsToldWhenTheDaemonHasEverything) {
  const std::string news = R"({"jsonrpc":"2.0","method":"news"})";
  start();
  editor->write(framed(news));
  editor->close();
  turn();
  EXPECT_TRUE(last_request);
  server->read();
  EXPECT_EQ(server->text, news + '\n');
  EXPECT_FALSE(ending);
  server->close();
  turn();
  EXPECT_EQ(ending, Relay::Ending::done);
}

TEST_F(RelayTest, ADaemonThatGoesBeforeItHasAnsweredIsGoneAlsoAfterTheEndOfInput) {
  start();
  editor->write(framed(ping));
  editor->close();
  turn();
  server->close();
  turn();
  EXPECT_EQ(ending, Relay::Ending::daemon_gone);
}

TEST_F(RelayTest, WhatIsNeitherObjectNorArrayIsRefusedHere) {
  start(Protocol::Framing::lines);
  editor->write("null\n5\n");
  exchange();
  EXPECT_EQ(server->text, "");
  EXPECT_NE(editor->text.find("-32600"), std::string::npos) << editor->text;
}

TEST_F(RelayTest, AClientThatDoesNotReadIsToldOnce) {
  start();
  relay->client_has_gone();
  relay->client_has_gone();
  EXPECT_EQ(ending, Relay::Ending::client_gone);
}

TEST_F(RelayTest, WhenTheDaemonGoesItsLastWordsAreBroughtFirst) {
  start();
  server->write(pong + '\n' + pong);  // the second one has no end
  server->close();
  exchange();
  EXPECT_EQ(editor->text, framed(pong));
  EXPECT_EQ(ending, Relay::Ending::daemon_gone);
}

TEST_F(RelayTest, TenMebibytesGoBothWays) {
  start();
  const std::string large = R"({"jsonrpc":"2.0","id":")" + std::string((10U << 20U) - 40, 'x') + R"(","method":"p"})";
  write_all(*editor, framed(large));
  EXPECT_TRUE(server->text == large + '\n');
  write_all(*server, large + '\n');
  EXPECT_TRUE(editor->text == framed(large));
}

TEST_F(RelayTest, WhatOneSideDoesNotReadHoldsTheOtherSideUp) {
  start();
  const std::string flood = framed(R"({"jsonrpc":"2.0","method":"x","params":[")" + std::string(1000, 'x') + "\"]}");
  std::size_t taken = 0;
  for (int i = 0; i < 10'000; ++i) {
    const std::size_t count = editor->write(flood);
    taken += count;
    if (count < flood.size()) turn();
    if (count == 0) break;
  }
  EXPECT_LT(taken, 2 * Relay::most_waiting);
  EXPECT_GT(taken, Relay::most_waiting / 2);
}

TEST_F(RelayTest, FaultsThatNobodyReadsOfAreBoundedToo) {
  start();
  std::size_t taken = 0;
  const std::string junk = "Content-Length: x\r\n\r\nContent-Length: 0\r\n\r\n";
  for (int i = 0; i < 200'000; ++i) {
    const std::size_t count = editor->write(junk);
    taken += count;
    if (count < junk.size()) turn();
    if (count == 0) break;
  }
  EXPECT_LT(taken, 3 * Relay::most_waiting);
}

TEST_F(RelayTest, EventsAreSubscribedToBeforeAnythingElse) {
  const rpc::Json kinds(boost::json::object{{"kinds", boost::json::array{"taskFailed"}}});
  start(Protocol::Framing::content_length, &kinds);
  editor->write(framed(ping));
  exchange();
  EXPECT_TRUE(server->text.starts_with(R"({"jsonrpc":"2.0","id":"duet-rpc connect","method":"events.subscribe")"))
      << server->text;
  EXPECT_TRUE(server->text.ends_with('\n' + ping + '\n'));
  server->write(R"({"jsonrpc":"2.0","method":"event.early"})"
                "\n"
                R"({"jsonrpc":"2.0","id":"duet-rpc connect","result":{}})"
                "\n" +
                pong + '\n');
  exchange();
  EXPECT_EQ(editor->text, framed(pong));
}

TEST_F(RelayTest, ARefusedSubscriptionIsTheEnd) {
  const rpc::Json kinds(boost::json::object{{"kinds", boost::json::array{"nonsense"}}});
  start(Protocol::Framing::lines, &kinds);
  server->write(R"({"jsonrpc":"2.0","id":"duet-rpc connect","error":{"code":-32602,"message":"Invalid params"}})"
                "\n");
  exchange();
  EXPECT_EQ(ending, Relay::Ending::refused);
  EXPECT_EQ(relay->refusal(), R"({"code":-32602,"message":"Invalid params"})");
  EXPECT_EQ(editor->text, "");
}

}  // namespace
}  // namespace duet::app
