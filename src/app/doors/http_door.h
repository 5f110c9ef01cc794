#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "app/doors/http_client.h"
#include "app/doors/mcp_source.h"
#include "app/doors/refusal_log.h"
#include "duet/base/log.h"
#include "duet/framing/block_pool.h"
#include "duet/framing/http_checks.h"
#include "duet/framing/http_fault.h"
#include "duet/peer/methods.h"
#include "duet/peer/server.h"
#include "duet/transport/acceptor.h"
#include "duet/transport/loop.h"

namespace duet::app {

/// A login that did not work, and for 429 when to try again.
struct RefusedLogin {
  framing::HttpFault fault;
  std::optional<unsigned> retry_after = {};
};
/// The body of the answer, or why there is none.
using HttpLogin = std::variant<std::string, RefusedLogin>;

/// What the HTTP door asks of others.
struct HttpDoorCalls {
  HttpAdmit admit;
  /// With the body of a `POST /login`.
  std::function<HttpLogin(std::string_view body)> log_in;
  std::function<void(const peer::Admission&)> log_out;
  /// A connection that has become a WebSocket, with what it has sent since. Returns its number.
  std::function<std::uint64_t(std::unique_ptr<transport::Channel>, const transport::PeerIdentity&,
                              std::shared_ptr<const peer::Admission>, std::string_view first_bytes)>
      take_websocket;
  /// A number for who asks by `POST /rpc`, as connections have them, and that it is not used any more.
  std::function<std::uint64_t()> begin_caller;
  std::function<void(std::uint64_t)> end_caller;
  EventSource* events = nullptr;         ///< for `GET /events`
  std::function<std::string()> metrics;  ///< the body of `GET /metrics`
  McpSource* mcp = nullptr;              ///< for `POST /mcp`; none: there is nothing at that path
  std::function<void()> on_empty = {};   ///< while it stops: the last connection has gone
};

/// What both doors that speak HTTP leave to the server: WebSockets, and numbers for who asks by `POST /rpc`.
HttpDoorCalls calls_of_server(peer::Server& server, EventSource& events, std::function<void(std::uint64_t)> end_caller,
                              std::function<std::string()> metrics);

/// Where the door is: on this machine, or inside TLS.
struct HttpDoorKind {
  std::string_view door = "http";    ///< as the log calls it
  std::string_view scheme = "http";  ///< of its own origin
  bool loopback = true;              ///< the names of this machine are its own
};

struct HttpDoorLimits {
  std::size_t connections = 1024;
  std::size_t strangers = 128;                      ///< who have not shown a token yet
  std::uint64_t body_bytes = 256ULL * 1024 * 1024;  ///< of all that are being read
};

/// The door for browsers and scripts: connections that speak HTTP/1.1, until they end or become WebSockets. Who has
/// shown no token waits on one of a few places, where the newest pushes out the one that waits longest; who was
/// admitted by somebody else already, as TLS does, needs none. For the loop's thread only.
class HttpDoor final : private transport::Acceptor::Listener {
 public:
  HttpDoor(transport::Loop& loop, base::Log& log, const peer::Methods& methods, HttpDoorCalls calls,
           HttpDoorLimits limits = {}, HttpDoorKind kind = {});
  HttpDoor(const HttpDoor&) = delete;
  HttpDoor& operator=(const HttpDoor&) = delete;
  ~HttpDoor();

  /// Takes clients from there, and from nowhere else. Throws std::system_error.
  void open(std::unique_ptr<transport::Acceptor> acceptor);
  void close_acceptor();
  /// A client that has shown who it is, with what it has sent already. `is_full`: there are too many like it.
  void take(std::unique_ptr<transport::Channel> channel, const transport::PeerIdentity& identity,
            std::shared_ptr<const peer::Admission> admission, std::string_view first_bytes, bool is_full);
  void set_hosts(std::vector<std::string> hosts) { hosts_ = std::move(hosts); }
  void set_most_connections(std::size_t most) { limits_.connections = most; }
  /// Takes nobody any more; what is under way is answered.
  void stop();
  /// The same for now: it may be opened again. WebSockets, which are the server's, stay.
  void close_all();
  void end_session(const peer::Admission& ended);
  /// WebSockets included.
  std::size_t connection_count() const { return clients_.size() + websockets_.size(); }
  /// The connection of that number has gone, if it was one of ours.
  void connection_gone(std::uint64_t number);

 private:
  friend class HttpClient;

  bool has_room() override;
  void admit(std::unique_ptr<transport::Channel> channel, const transport::PeerIdentity& identity) override;

  // For clients.
  transport::Loop& loop() { return loop_; }
  const std::shared_ptr<framing::BlockPool>& pool() const { return pool_; }
  const HttpDoorCalls& calls() const { return calls_; }
  framing::HttpNames names() const { return {.loopback = kind_.loopback, .others = hosts_}; }
  std::string_view scheme() const { return kind_.scheme; }
  void know(std::uint64_t number) { strangers_.erase(number); }
  void forget_later(std::uint64_t number);
  bool reserve(std::uint64_t bytes);
  void release(std::uint64_t bytes) { reserved_ -= bytes; }
  void log_refusal(const transport::PeerIdentity& identity, const framing::HttpRefusal& refusal);
  std::unique_ptr<RpcExchange> begin_exchange(std::string_view message,
                                              const std::shared_ptr<const peer::Admission>& admission,
                                              std::function<void()> answered);
  /// The same for `POST /mcp`; its number is given here.
  std::unique_ptr<RpcExchange> begin_mcp(std::string_view message, McpCaller caller, std::function<void()> answered);
  void take_websocket(std::uint64_t number, std::unique_ptr<transport::Channel> channel,
                      const transport::PeerIdentity& identity, std::shared_ptr<const peer::Admission> admission,
                      std::string_view first_bytes);
  void forget_gone();

  transport::Loop& loop_;
  base::Log& log_;
  const peer::Methods& methods_;
  HttpDoorCalls calls_;
  HttpDoorLimits limits_;
  HttpDoorKind kind_;
  std::vector<std::string> hosts_;
  std::shared_ptr<framing::BlockPool> pool_;
  std::unique_ptr<transport::Acceptor> acceptor_;
  std::uint64_t last_number_ = 0;
  std::set<std::uint64_t> strangers_;   // of clients_, the one that waits longest first
  std::set<std::uint64_t> websockets_;  // by their numbers as connections
  std::uint64_t reserved_ = 0;
  bool stopping_ = false;
  std::vector<std::uint64_t> gone_;
  transport::Loop::Deferred forgetting_;
  RefusalLog refusals_;
  std::map<std::uint64_t, std::unique_ptr<HttpClient>> clients_;
};

}  // namespace duet::app
