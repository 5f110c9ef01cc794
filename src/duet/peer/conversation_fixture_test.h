#pragma once

#include <chrono>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "duet/base/log_tape_test.h"
#include "duet/peer/connection_fixture_test.h"
#include "duet/peer/conversation.h"

namespace duet::peer {

constexpr base::TimePoint start{std::chrono::hours(1)};

/// A conversation without a connection: the test brings the bytes and the time.
struct Talk {
  explicit Talk(const Protocol& protocol = Protocol::json_lines()) {
    methods.add("echo", [](const rpc::Json& params) { return params; });
    methods.add("refuse_as_internal", []() -> rpc::Json { throw rpc::Error(-32603, "Out of luck"); });
    methods.add("late", [this](Reply<> reply) { replies.push_back(std::move(reply)); });
    methods.add("pipelined", [this](Reply<> reply) { replies.push_back(std::move(reply)); }).pipelined();
    events.on_wake = [this] { ++wakes; };
    talk.emplace(protocol, methods, events, tape.log());
  }

  /// All that is to be written.
  std::string output() {
    std::string all;
    for (std::string_view bytes = talk->output(); !bytes.empty(); bytes = talk->output()) {
      all += bytes;
      talk->written(bytes.size());
    }
    return all;
  }
  void receive(const std::string& line, base::TimePoint now = start) { talk->receive(line + '\n', now); }

  base::LogTape tape;
  Methods methods;
  ConversationEvents events;
  std::deque<Reply<>> replies;
  int wakes = 0;
  std::optional<Conversation> talk;
};

}  // namespace duet::peer
