#pragma once

#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "app/doors/http_door.h"
#include "duet/base/log_tape_test.h"
#include "duet/transport/channel_recorder_test.h"
#include "duet/transport/memory.h"

namespace duet::app {

/// Where the clients of a test come from.
struct TestAcceptor final : transport::Acceptor {
  explicit TestAcceptor(Listener*& told) : told_(told) {}
  void open(Listener& listener) override { told_ = &listener; }
  void resume() override {}
  bool is_reachable() const override { return true; }
  void restore() override {}
  void close() override { told_ = nullptr; }

 private:
  Listener*& told_;
};

/// Events that nobody tells; it remembers who asked for them.
struct TestEvents final : EventSource {
  bool open_stream(std::uint64_t number, EventStream& stream, const StreamWish& wish) override {
    if (wish.kinds.contains("nonsense")) return false;
    streams[number] = &stream;
    return true;
  }
  void go_on(std::uint64_t) override { ++reads; }
  void close_stream(std::uint64_t number) override { streams.erase(number); }
  std::map<std::uint64_t, EventStream*> streams;
  int reads = 0;
};

/// `POST /mcp` with the methods that it was given, and without anything behind it; it remembers who is there.
struct TestMcp final : McpSource {
  explicit TestMcp(const peer::Methods& answering) : methods(answering) {}
  Place begin(McpCaller caller) override {
    last_notify = caller.notify;
    fields = caller.fields;
    callers.insert(caller.number);
    is_late = caller.is_late;
    peer::Protocol protocol = peer::Protocol::mcp_server();
    protocol.framing = peer::Protocol::Framing::whole;
    return {methods, protocol};
  }
  std::optional<rpc::Error> fault_of_notification(const McpFields& fields_of, std::string_view message) const override {
    const bool is_wrong = fields_of.method == "wrong" && message.find("\"id\"") == message.npos;
    return is_wrong ? std::optional(rpc::Error(-32020, "Header mismatch")) : std::nullopt;
  }
  void end(std::uint64_t number) override { callers.erase(number); }
  void end_session(const peer::Admission&) override {}
  void end_all(bool for_good) override { ended = for_good ? "for good" : "for now"; }

  const peer::Methods& methods;
  std::set<std::uint64_t> callers;
  std::function<void(std::string_view, const rpc::Json&)> last_notify;
  McpFields fields;
  std::string ended;
  bool is_late = false;
};

/// A door over channels in memory and a clock of its own: one token, `good`, and the methods `echo` and `late`.
class HttpDoorTest : public testing::Test {
 protected:
  /// The far end of a connection.
  struct Far {
    explicit Far(std::unique_ptr<transport::Channel> joined) : channel(std::move(joined)), seen(*channel) {}
    Far(const Far&) = delete;
    Far& operator=(const Far&) = delete;
    std::unique_ptr<transport::Channel> channel;
    transport::ChannelRecorder seen;
  };

  HttpDoorTest() {
    methods.add("echo", "", [](const rpc::Json& params) { return rpc::Json::parse(std::string(params.text())); });
    methods.add("late", "", [this](peer::Reply<int> reply) { late.push_back(std::move(reply)); });
    door.open(std::make_unique<TestAcceptor>(listener));
  }

  HttpDoorCalls calls() {
    return {
        .admit = [this](std::string_view token) { return token == "good" ? who : nullptr; },
        .log_in =
            [](std::string_view body) {
              return body == "{}" ? HttpLogin(RefusedLogin{framing::HttpFault::too_many_codes, 7}) : HttpLogin("{}");
            },
        .log_out = [this](const peer::Admission&) { ++logouts; },
        .take_websocket =
            [this](std::unique_ptr<transport::Channel> channel, const transport::PeerIdentity&,
                   std::shared_ptr<const peer::Admission>, std::string_view first_bytes) {
              websockets.emplace_back(std::move(channel), first_bytes);
              return std::uint64_t{900};
            },
        .begin_caller = [this] { return ++callers; },
        .end_caller = [this](std::uint64_t) { ++ended_callers; },
        .events = &events,
        .metrics = [] { return std::string("duet_x 1\n"); },
        .mcp = &mcp,
        .on_empty = [this] { ++empty; }};
  }

  Far& connect(uid_t uid = transport::unknown_user) {
    auto [near, far] = transport::memory_pair(loop);
    listener->admit(std::move(near), {.uid = uid});
    return fars.emplace_back(std::move(far));
  }
  void turn() {
    for (int i = 0; i < 20; ++i) loop.turn(loop.now());
  }
  void pass(base::Duration time) {
    clock.advance(time);
    turn();
  }
  /// What comes back for these bytes.
  std::string say(Far& far, std::string_view bytes) {
    far.seen.text.clear();
    while (!bytes.empty()) {
      const transport::IoResult moved = far.channel->write(bytes);
      if (moved.state == transport::IoResult::State::some) bytes.remove_prefix(moved.count);
      if (moved.state == transport::IoResult::State::broken) break;
      turn();
    }
    turn();
    return far.seen.text;
  }
  static std::string get(const std::string& path, const std::string& fields = "") {
    return "GET " + path + " HTTP/1.1\r\nHost: localhost\r\n" + fields + "\r\n";
  }
  static std::string post(const std::string& path, const std::string& body, const std::string& fields = with_token) {
    return "POST " + path + " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: " +
           std::to_string(body.size()) + "\r\n" + fields + "\r\n" + body;
  }
  static bool begins(const std::string& text, const std::string& status) {
    return text.starts_with("HTTP/1.1 " + status);
  }
  static constexpr const char* with_token = "Authorization: Bearer good\r\n";
  static constexpr const char* ask_late = R"({"jsonrpc":"2.0","id":1,"method":"late"})";

  base::VirtualClock clock;
  transport::Loop loop{clock};
  base::LogTape tape;
  peer::Methods methods;
  std::shared_ptr<const peer::Admission> who =
      std::make_shared<const peer::Admission>(peer::Admission{.door = "http", .name = "ci", .role = "own"});
  TestEvents events;
  TestMcp mcp{methods};
  std::vector<peer::Reply<int>> late;
  std::vector<std::pair<std::unique_ptr<transport::Channel>, std::string>> websockets;
  transport::Acceptor::Listener* listener = nullptr;
  int logouts = 0;
  int empty = 0;
  int ended_callers = 0;
  std::uint64_t callers = 0;
  std::deque<Far> fars;
  HttpDoor door{loop, tape.log(), methods, calls(), {.connections = 4, .strangers = 3, .body_bytes = 1000}};
};

}  // namespace duet::app
