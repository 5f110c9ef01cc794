#pragma once

#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "duet/peer/connection_fixture_test.h"
#include "duet/peer/server.h"
#include "duet/transport/fd_channel.h"
#include "duet/transport/temporary_folder_test.h"
#include "duet/transport/unix_socket.h"

namespace duet::peer {

/// A server on a clock that stands still, and the far ends of its clients.
struct ServerSetting {
  explicit ServerSetting(ServerLimits limits = {}, const Protocol& protocol = Protocol::json_lines())
      : server(loop, tape.log(), told_to(events), limits, protocol) {
    server.register_method("echo", [](const Request& asked) {
      return asked.params.text().empty() ? rpc::Json(nullptr) : rpc::Json::view(asked.params.text());
    });
    server.register_method("whoami", [](const Request& asked) -> rpc::Json {
      const Peer& peer = asked.conversation.peer();
      return {{"connection", peer.connection}, {"pid", peer.pid}, {"uid", peer.uid}};
    });
    server.register_method("long", [this](const Request& asked) {
      asking.insert(&asked.conversation);
      return rpc::Json::trusted('"' + std::string(100'000, 'y') + '"');
    });
    server.methods().add("late", [this](Reply<> reply) { replies.push_back(std::move(reply)); });
  }

  std::unique_ptr<FarEnd> connect() {
    auto far = std::make_unique<FarEnd>(std::make_unique<transport::FdChannel>(loop, transport::connect_unix(path)));
    turn();
    return far;
  }
  void turn(int times = 10) {
    for (int i = 0; i < times; ++i) loop.turn(loop.now());
  }
  template <typename Done>
  bool turn_until(Done done) {
    for (int i = 0; i < 200'000; ++i) {
      if (done()) return true;
      loop.turn(loop.now());
    }
    return false;
  }
  Strings ask(FarEnd& far, const std::string& message) {
    far.send(message + '\n');
    turn();
    return far.take(Framing::lines);
  }

  /// So that a test can listen when the server is made already. The server must not outlive them.
  static ServerEvents told_to(const ServerEvents& events) {
    const auto tell = [](const auto& event, auto&&... what) {
      if (event) event(what...);
    };
    return {.on_empty = [&events, tell] { tell(events.on_empty); },
            .on_full = [&events, tell](bool full) { tell(events.on_full, full); },
            .on_missed = [&events, tell](Connection& connection) { tell(events.on_missed, connection); },
            .on_opened = [&events, tell](Connection& connection) { tell(events.on_opened, connection); },
            .on_load_changed = [&events, tell](Connection& connection) { tell(events.on_load_changed, connection); },
            .on_forgotten = [&events, tell](std::uint64_t number) { tell(events.on_forgotten, number); }};
  }

  transport::TemporaryFolder folder;
  std::string path = folder.file("socket");
  base::VirtualClock clock;
  transport::Loop loop{clock};
  base::LogTape tape;
  std::vector<Reply<>> replies;
  std::set<Conversation*> asking;  // for `long`
  ServerEvents events;
  Server server;
};

}  // namespace duet::peer
