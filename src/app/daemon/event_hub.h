#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <boost/json/object.hpp>

#include "app/daemon/event_history.h"
#include "duet/peer/answer.h"
#include "duet/peer/connection.h"
#include "duet/peer/methods.h"
#include "duet/peer/server.h"

namespace duet::app {

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

  EventHub(transport::Loop& loop, peer::Server& server, EventHistory& history)
      : EventHub(loop, server, history, Limits()) {}
  EventHub(transport::Loop& loop, peer::Server& server, EventHistory& history, Limits limits);
  EventHub(const EventHub&) = delete;
  EventHub& operator=(const EventHub&) = delete;
  ~EventHub();

  void emit(std::string_view kind, boost::json::object params);

  /// Output of a task goes to those who asked for it and is not kept.
  bool wants_output(std::string_view task_id) const;
  void emit_output(std::string_view task_id, std::uint64_t offset, std::string_view text);

  /// `events.subscribe`; `on_subscribed` is called whenever somebody may want output that nobody wanted before.
  peer::Method subscribe_method(std::function<void()> on_subscribed);

 private:
  // Which events a client wants. Empty sets are no restriction.
  struct Filter {
    std::set<std::string, std::less<>> kinds;
    std::set<std::string, std::less<>> tasks;
    bool subscribed = false;  // it has asked; until then there is no output of tasks
    bool wants(std::string_view kind, std::string_view task_id) const;
    bool wants_output(std::string_view task_id) const;
    bool operator==(const Filter&) const = default;
  };
  // What a client was given under one filter: every event from `from` to before `to` that the filter lets through.
  struct Given {
    std::uint64_t from;
    std::uint64_t to;
    Filter filter;
  };
  struct Subscriber {
    peer::Connection* connection;
    Filter filter = {};
    std::uint64_t from = 0;      // where this filter began
    std::uint64_t cursor = 0;    // the next event it is to get
    bool lost = false;           // it has fallen behind
    bool awaits_answer = false;  // the subscription's: the replay comes after it
    std::vector<Given> given = {};
  };

  peer::Answer subscribe(const peer::Request& request);
  void begin_replay(std::uint64_t number, bool is_answered);
  static Filter filter_of(const rpc::Params& params);
  bool give(peer::Connection& connection, const Event& event) const;
  void pump(Subscriber& subscriber);
  bool was_given(const Subscriber& subscriber, const Event& event) const;
  void remember_given(Subscriber& subscriber);
  void overflow(Subscriber& subscriber);

  transport::Loop& loop_;
  peer::Server& server_;
  EventHistory& history_;
  Limits limits_;
  std::unordered_map<std::uint64_t, Subscriber> subscribers_;
  std::uint64_t newest_ = 0;    // the event that most clients get next
  std::string newest_message_;  // framed
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace duet::app
