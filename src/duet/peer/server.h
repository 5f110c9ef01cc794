#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "duet/api.h"
#include "duet/base/log.h"
#include "duet/peer/connection.h"
#include "duet/peer/methods.h"
#include "duet/transport/acceptor.h"
#include "duet/transport/loop.h"

namespace duet::peer {

struct ServerLimits {
  /// What is held for all connections together. From half of it on, the largest are paused: those on which more waits
  /// than their share of what is left. One with nothing waiting is always served. When all of it is used, the largest
  /// message that has only come in part is refused.
  std::size_t max_waiting = 256U * 1024 * 1024;
  /// A connection with more than this still to be written, or its share if that is less, misses broadcasts.
  std::size_t max_unread_broadcast = 4U * 1024 * 1024;
  /// With so many the server is full. Of those who came through acceptors, the last few of these places are for those
  /// who come and go: whoever has been on one for `visit` and is owed no answer makes way for the next, and so does one
  /// that is, after `long_visit`. It is told so (an error without an id). Whoever finds no place waits to be accepted.
  std::size_t max_clients = std::numeric_limits<std::size_t>::max();
  std::size_t visitors = 4;
  base::Duration visit = std::chrono::milliseconds(50);
  base::Duration long_visit = std::chrono::seconds(2);
};

/// What the owner of a server wants to hear, and to have done. All optional.
struct ServerEvents {
  std::function<void()> on_empty = {};                    ///< the last client has gone
  std::function<void(bool)> on_full = {};                 ///< somebody found no place; all who are there have one again
  std::function<void(Connection&)> on_missed = {};        ///< this one missed a broadcast
  std::function<void(Connection&)> on_opened = {};        ///< before anything is read
  std::function<void(Connection&)> on_load_changed = {};  ///< more or less waits to be written or handled
  std::function<void(std::uint64_t)> on_forgotten = {};   ///< the connection of this number is no more
  /// Puts something between a connection and its channel.
  std::function<std::unique_ptr<transport::Channel>(std::unique_ptr<transport::Channel>, const Peer&)> wrap_channel =
      {};
};

/// A JSON-RPC server for any number of clients, a message a line unless another protocol is given.
///
/// Its clients come from acceptors, any number of them, and whoever these let in is served. For the loop's thread only;
/// methods may be added at any time.
class DUET_API Server final : private transport::Acceptor::Listener {
 public:
  Server(transport::Loop& loop, base::Log& log, ServerEvents events = {}, ServerLimits limits = {},
         const Protocol& protocol = Protocol::json_lines());
  /// With a table that it does not own, and that must outlive it.
  Server(transport::Loop& loop, base::Log& log, Methods& methods, ServerEvents events = {}, ServerLimits limits = {},
         const Protocol& protocol = Protocol::json_lines());
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server();

  Methods& methods() { return methods_; }
  void register_method(std::string name, Handler handler) { methods_.add(std::move(name), std::move(handler)); }
  void register_methods(const std::map<std::string, Handler>& handlers);

  /// Serves those who come this way, too. Throws std::system_error.
  void listen(std::unique_ptr<transport::Acceptor> acceptor);
  /// The same for clients of this user at a Unix socket: see transport::unix_acceptor(). Throws std::system_error.
  void start(const std::string& path);
  /// A client that came another way than through an acceptor, over a channel that is not open yet.
  void admit(std::unique_ptr<transport::Channel> channel, const transport::PeerIdentity& identity) override;
  /// The same for one that speaks another protocol, e.g. since it asked for a WebSocket by HTTP; with what was read
  /// already of that, and as what it was let in. Returns its number.
  std::uint64_t admit(std::unique_ptr<transport::Channel> channel, const transport::PeerIdentity& identity,
                      const Protocol& protocol, std::string_view first_bytes = {},
                      std::shared_ptr<const Admission> admission = {});
  /// The same for somebody of this process, who speaks for those that were let in like this: he has no descriptor, and
  /// so takes nobody's place, and is not counted.
  void admit_inside(std::unique_ptr<transport::Channel> channel, std::shared_ptr<const Admission> admission);
  /// A number that no client has or will have, for a conversation beside this server.
  std::uint64_t new_number() { return ++last_id_; }
  /// Accepts no more, lets handlers that run finish, closes.
  void stop();

  /// A notification to everyone; returns how many clients missed it because they do not read.
  std::size_t broadcast(std::string_view method, const rpc::Json& params);
  template <rpc::TextType Text>
  std::size_t broadcast(std::string_view method, const Text& params) = delete;
  /// Of those who have come from outside.
  std::size_t client_count() const { return clients_.size() - inside_; }
  std::size_t inside_count() const { return inside_; }
  /// False: the address of an acceptor was taken away, as when somebody removes the file of a socket.
  bool is_reachable() const;
  /// Takes such addresses again; clients stay. Throws std::system_error.
  void restore();

 private:
  Server(transport::Loop& loop, base::Log& log, Methods* methods, ServerEvents events, ServerLimits limits,
         const Protocol& protocol);

  static constexpr std::size_t no_share = std::numeric_limits<std::size_t>::max();

  struct Client {
    std::unique_ptr<Connection> connection;
    std::size_t load = 0;
    base::TimePoint since = {};
    bool is_inside = false;
    transport::Loop::Deferred leaving = {};
  };
  using Clients = std::map<std::uint64_t, Client>;

  bool has_room() override { return client_count() < limits_.max_clients || make_room(); }
  bool make_room();
  void begin(std::unique_ptr<transport::Channel> channel, const Peer& peer, const Protocol& protocol,
             std::string_view first_bytes, bool is_inside);
  Client* visitor_to_leave();
  void send_away(Client& client);
  void set_full(bool full);
  void forget_closed();
  void forget(std::uint64_t id);
  void weigh(std::uint64_t id);
  void update_load(Client& client);
  void refuse_largest_partial_messages();
  void share_what_is_left();
  void give_back_memory_later();

  transport::Loop& loop_;
  base::Log& log_;
  ServerEvents events_;
  ServerLimits limits_;
  Protocol protocol_;
  Methods own_methods_;
  Methods& methods_;
  std::shared_ptr<framing::BlockPool> pool_;
  std::vector<std::unique_ptr<transport::Acceptor>> acceptors_;
  Clients clients_;         // those who came first stand first
  std::size_t inside_ = 0;  // of them
  bool full_ = false;
  std::uint64_t last_id_ = 0;
  std::size_t total_load_ = 0;
  std::size_t most_load_ = 0;  // since memory was given back
  transport::Loop::Timer giving_back_;
  std::size_t share_ = no_share;
  std::vector<std::uint64_t> closed_;  // to be forgotten when nobody is inside them any more
  transport::Loop::Deferred forgetting_;
};

}  // namespace duet::peer
