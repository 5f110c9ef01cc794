#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "duet/base/clock.h"
#include "duet/base/log_tape_test.h"
#include "duet/framing/block_pool.h"
#include "duet/framing/websocket_frames_test.h"
#include "duet/peer/connection.h"
#include "duet/peer/far_end_test.h"
#include "duet/peer/methods.h"
#include "duet/transport/loop.h"
#include "duet/transport/memory.h"

namespace duet::peer {

using Strings = std::vector<std::string>;

using Endings = std::vector<Ending>;

inline Protocol server_protocol(Framing framing) {
  if (framing == Framing::websocket) return Protocol::websocket();
  return framing == Framing::lines ? Protocol::json_lines() : Protocol::lsp_server();
}

inline std::string framing_name(const testing::TestParamInfo<Framing>& framing) {
  return framing.param == Framing::lines ? "lines" : "content_length";
}

/// Params of about this size.
inline std::string quoted_text(std::size_t size) { return "[\"" + std::string(size, 'x') + "\"]"; }

inline std::string request(std::string_view id, std::string_view method, std::string_view params = {}) {
  std::string text = R"({"jsonrpc":"2.0","id":)" + std::string(id) + R"(,"method":")" + std::string(method) + '"';
  if (!params.empty()) text.append(R"(,"params":)").append(params);
  return text + '}';
}
inline std::string notification(std::string_view method, std::string_view params = {}) {
  std::string text = R"({"jsonrpc":"2.0","method":")" + std::string(method) + '"';
  if (!params.empty()) text.append(R"(,"params":)").append(params);
  return text + '}';
}
inline std::string cancel(std::string_view id) {
  return notification("$/cancelRequest", R"({"id":)" + std::string(id) + '}');
}
inline std::string result(std::string_view id, std::string_view value) {
  return R"({"jsonrpc":"2.0","id":)" + std::string(id) + R"(,"result":)" + std::string(value) + '}';
}
inline std::string error(std::string_view id, int code, std::string_view message, std::string_view data = {}) {
  std::string text = R"({"jsonrpc":"2.0","id":)" + std::string(id) + R"(,"error":{"code":)" + std::to_string(code) +
                     R"(,"message":")" + std::string(message) + '"';
  if (!data.empty()) text.append(R"(,"data":)").append(data);
  return text + "}}";
}
inline std::string cancelled(std::string_view id) { return error(id, -32800, "Request cancelled"); }
inline std::string internal(std::string_view id) { return error(id, -32603, "Internal error"); }

/// A connection whose far end is played by the test, on a clock that stands still.
///
/// It has these methods: `echo` answers its params; `late` answers when the test does so, through `replies`;
/// `note` writes its params to `notes`; `refuse`, `crash`, `crash_oddly` and `drop` fail in four ways.
class TestConnection {
 public:
  explicit TestConnection(const Protocol& protocol = Protocol::json_lines(), std::size_t capacity = 65536)
      : protocol_(protocol) {
    add_methods();
    std::tie(near_channel_, far_channel_) = transport::memory_pair(loop, capacity);
    far.emplace(std::move(far_channel_));
  }
  TestConnection(const TestConnection&) = delete;
  TestConnection& operator=(const TestConnection&) = delete;

  /// Opens the connection; before that a test may change `events`, `methods` and `peer`.
  TestConnection& open() {
    if (!events.on_closed) {
      events.on_closed = [this](Ending ending) { endings.push_back(ending); };
    }
    events.conversation.on_input_ended = [this] { ++input_ends; };
    connection = std::make_unique<Connection>(loop, std::move(near_channel_), protocol_, methods, tape.log(), events,
                                              peer, pool);
    connection->open();
    return *this;
  }

  void turn(int times = 20) {
    for (int i = 0; i < times; ++i) loop.turn(loop.now());
  }
  /// Turns until `done`, at most so many times.
  template <typename Done>
  bool turn_until(Done done, int most = 200'000) {
    for (int i = 0; i < most; ++i) {
      if (done()) return true;
      loop.turn(loop.now());
    }
    return false;
  }
  void advance(base::Duration step) {
    clock.advance(step);
    turn();
  }

  /// Sends messages and returns what was answered.
  Strings say(const Strings& messages) {
    for (const std::string& message : messages) send(message);
    turn();
    return heard();
  }
  void send(std::string_view message) {
    if (protocol_.framing == Framing::websocket) return far->send(framing::text_frame(std::string(message)));
    far->send(protocol_.framing == Framing::content_length ? framed(message) : std::string(message) + '\n');
  }
  Strings heard() { return far->take(protocol_.framing); }

  /// Answers the oldest `late` request that is not answered yet.
  void answer_late(std::string_view value) {
    Reply<> reply = std::move(replies.front());
    replies.pop_front();
    reply.ok(rpc::Json::trusted(std::string(value)));
  }

  base::VirtualClock clock;
  transport::Loop loop{clock};
  base::LogTape tape;
  Methods methods;
  std::shared_ptr<framing::BlockPool> pool = std::make_shared<framing::BlockPool>();
  ConnectionEvents events;
  Peer peer;
  std::optional<FarEnd> far;
  std::deque<Reply<>> replies;
  Strings begun;  // ids of `late` requests, as their handler was called
  Strings notes;
  Endings endings;
  int input_ends = 0;
  std::unique_ptr<Connection> connection;

 private:
  void add_methods() {
    methods.add("echo", [](const Request& asked) {
      return asked.params.text().empty() ? rpc::Json(nullptr) : rpc::Json::view(asked.params.text());
    });
    methods.add("note", [this](const Request& asked) -> rpc::Json {
      notes.emplace_back(asked.params.text());
      return nullptr;
    });
    methods.add("refuse", [](const Request&) -> rpc::Json { throw rpc::Error(-32001, "No", {{"why", "because"}}); });
    methods.add("crash", [](const Request&) -> rpc::Json { throw std::runtime_error("the secret of the inside"); });
    methods.add("crash_oddly", [](const Request&) -> rpc::Json { throw 42; });
    add_late("late", [this](const Request& asked, Reply<> reply) {
      begun.emplace_back(asked.id);
      replies.push_back(std::move(reply));
    });
    add_late("drop", [](const Request&, const Reply<>&) {});
  }

 public:
  template <typename Callable>
  void add_late(std::string name, Callable handler) {
    methods.add(std::move(name), std::move(handler));
  }

 private:
  Protocol protocol_;
  std::unique_ptr<transport::Channel> near_channel_;
  std::unique_ptr<transport::Channel> far_channel_;
};

}  // namespace duet::peer
