#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <boost/describe/class.hpp>

#include "duet/base/lifetime.h"
#include "duet/peer/connection.h"
#include "duet/peer/methods.h"
#include "duet/peer/server.h"
#include "task/journal.h"

namespace duet::app {

/// The params of `events.subscribe`.
struct Subscribe {
  std::optional<std::int64_t> since;
  std::optional<std::vector<std::string>> kinds;
  std::optional<std::vector<std::string>> taskIds;
};
BOOST_DESCRIBE_STRUCT(Subscribe, (), (since, kinds, taskIds))

/// And its result.
struct Subscription {
  std::string epoch;
  std::uint64_t next;
  std::optional<bool> missed = {};
  std::optional<std::uint64_t> oldest = {};
};
BOOST_DESCRIBE_STRUCT(Subscription, (), (epoch, next, missed, oldest))

/// Tells every client of a server what happens, from the moment it is connected, and replays what it asks for.
///
/// Each client has a place in the history and is given as much of it as it reads: what waits for it is bounded, and one
/// that falls behind the history's oldest event is told so (`event.overflow`) and gets nothing more until it subscribes
/// again. Nobody gets an event twice. For the loop's thread only; it must outlive the server's clients.
class EventHub {
 public:
  struct Limits {
    std::size_t unread_bytes = 256U * 1024;  ///< of a client, beyond which its events wait in the history
    /// Of a client, beyond which output of tasks costs it its subscription. More than the above: a replay fills that.
    std::size_t unread_output_bytes = 1024U * 1024;
  };

  EventHub(transport::Loop& loop, peer::Server& server, task::Journal& journal)
      : EventHub(loop, server, journal, Limits()) {}
  EventHub(transport::Loop& loop, peer::Server& server, task::Journal& journal, Limits limits);
  EventHub(const EventHub&) = delete;
  EventHub& operator=(const EventHub&) = delete;
  ~EventHub() = default;

  /// What happens to the server's clients; whoever builds both sees to it that these are called.
  void client_opened(peer::Connection& connection);
  void client_load_changed(const peer::Connection& connection);
  void client_forgotten(std::uint64_t number) { subscribers_.erase(number); }

  /// The journal has got an event.
  void take_news();
  /// An event that could not be kept: without a number, and only for those who are there.
  void tell_unkept(std::string_view kind, std::string_view params);

  /// Output of a task goes to those who asked for it and is not kept.
  bool wants_output(std::string_view task_id) const;
  void emit_output(std::string_view task_id, std::uint64_t offset, std::string_view text);

  /// Adds `events.subscribe`; `on_subscribed` is called whenever somebody may want output that nobody wanted before.
  void add_subscribe_method(peer::Methods& methods, std::function<void()> on_subscribed);

 private:
  // Which events a client wants. Empty sets are no restriction.
  struct Filter {
    std::set<std::string, std::less<>> kinds;
    std::set<std::string, std::less<>> tasks;
    bool subscribed = false;  // it has asked; until then there is no output of tasks
    bool wants(const task::Event& event) const;
    bool wants_output(std::string_view task_id) const;
    bool operator==(const Filter&) const = default;
  };
  struct Subscriber {
    peer::Connection* connection;
    Filter filter = {};
    std::uint64_t from = 0;              // where this filter began
    std::uint64_t cursor = 0;            // the next event it is to get
    bool lost = false;                   // it has fallen behind
    bool awaits_answer = false;          // the subscription's: the replay comes after it
    std::set<std::uint64_t> given = {};  // under earlier filters, as far as the journal goes back
  };

  Subscription subscribe(const Subscribe& wanted, const peer::Request& request);
  void begin_replay(std::uint64_t number, bool is_answered);
  static Filter filter_of(const Subscribe& wanted);
  std::string message_of(std::string_view kind, const rpc::Json& params);
  bool give(peer::Connection& connection, const task::Event& event);
  void pump(Subscriber& subscriber);
  void remember_given(Subscriber& subscriber) const;
  void overflow(Subscriber& subscriber);

  transport::Loop& loop_;
  peer::Server& server_;
  task::Journal& journal_;
  Limits limits_;
  std::unordered_map<std::uint64_t, Subscriber> subscribers_;
  std::uint64_t given_last_ = 0;
  std::string message_;  // of that one, framed
  base::Lifetime lifetime_;
};

}  // namespace duet::app
