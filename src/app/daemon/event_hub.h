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

#include "app/doors/event_stream.h"
#include "duet/base/lifetime.h"
#include "duet/peer/announcement.h"
#include "duet/peer/connection.h"
#include "duet/peer/methods.h"
#include "duet/transport/loop.h"
#include "task/journal.h"

namespace duet::app {

/// The params of `events.subscribe`.
struct Subscribe {
  std::optional<std::int64_t> since;
  std::optional<std::vector<std::string>> kinds;
  std::optional<std::vector<std::string>> taskIds;
  std::optional<std::vector<std::string>> outputOf;
};
BOOST_DESCRIBE_STRUCT(Subscribe, (), (since, kinds, taskIds, outputOf))

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
/// again. Nobody gets an event twice. Who connects while the daemon stops is told that, too. For the loop's thread
/// only; it must outlive the server's clients.
class EventHub final : public EventSource {
 public:
  struct Limits {
    std::size_t unread_bytes = 256U * 1024;  ///< of a client, beyond which its events wait in the history
    /// Of a client, beyond which output of tasks costs it its subscription. More than the above: a replay fills that.
    std::size_t unread_output_bytes = 1024U * 1024;
  };

  EventHub(transport::Loop& loop, task::Journal& journal) : EventHub(loop, journal, Limits()) {}
  EventHub(transport::Loop& loop, task::Journal& journal, Limits limits);
  EventHub(const EventHub&) = delete;
  EventHub& operator=(const EventHub&) = delete;
  virtual ~EventHub() = default;

  /// What happens to the server's clients; whoever builds both sees to it that these are called.
  void client_opened(peer::Connection& connection);
  void client_load_changed(const peer::Connection& connection);
  void client_forgotten(std::uint64_t number);
  bool has_clients() const { return !subscribers_.empty(); }
  /// Is told when the first client has come, and when the last one has gone.
  void tell_of_clients(std::function<void(bool some)> tell) { on_clients_ = std::move(tell); }
  /// The journal has begun anew: nobody has a place in it any more.
  void journal_began_anew();

  bool open_stream(std::uint64_t number, EventStream& stream, const StreamWish& wish) override;
  void go_on(std::uint64_t number) override;
  void close_stream(std::uint64_t number) override { client_forgotten(number); }

  /// It is a client of ours, or a stream.
  bool knows(std::uint64_t number) const { return subscribers_.contains(number); }

  /// The journal has got an event.
  void take_news();
  /// An event that could not be kept: without a number, and only for those who are there.
  void tell_unkept(std::string_view kind, std::string_view params);

  /// Output of a task goes to those who asked for it and is not kept.
  bool wants_output(std::string_view task_id) const;
  void emit_output(std::string_view task_id, std::uint64_t offset, std::string_view text, std::string_view stream = {});

  /// Adds `events.subscribe`; `on_subscribed` is called whenever somebody may want output that nobody wanted before.
  void add_subscribe_method(peer::Methods& methods, std::function<void()> on_subscribed);

 private:
  // Which events a client wants. Empty sets are no restriction.
  struct Filter {
    std::set<std::string, std::less<>> kinds;
    std::set<std::string, std::less<>> tasks;
    std::set<std::string, std::less<>> outputs = {};  // of these tasks in any case
    bool subscribed = false;                          // it has asked; until then there is no output of tasks
    bool wants(const task::Event& event) const;
    bool wants_output(std::string_view task_id) const;
    bool operator==(const Filter&) const = default;
  };
  struct Subscriber {
    peer::Connection* connection = nullptr;  // or
    EventStream* stream = nullptr;
    Filter filter = {};
    std::uint64_t from = 0;              // where this filter began
    std::uint64_t cursor = 0;            // the next event it is to get
    bool lost = false;                   // it has fallen behind
    bool is_new = false;                 // it begins with what happens from now on, once it is known what that is
    std::uint64_t answers_before = 0;    // that have to go out first: the last of them is the subscription's
    std::set<std::uint64_t> given = {};  // under earlier filters, as far as the journal goes back

    bool is_there() const { return !lost && (connection == nullptr || !connection->is_closed()); }
    bool is_open() const { return is_there() && !is_new; }
    bool is_early() const {
      return connection != nullptr && connection->conversation().answers_given() < answers_before;
    }
  };

  void add(std::uint64_t number, Subscriber subscriber);
  void check(const Subscribe& wanted, const peer::Request& request) const;
  Subscription subscribe(const Subscribe& wanted, Subscriber& subscriber) const;
  void begin_replay(std::uint64_t number, const std::string& id);
  void begin_stream(Subscriber& subscriber, const StreamWish& wish);
  static Filter filter_of(const Subscribe& wanted);
  static peer::Announcement message_of(std::string_view kind, const rpc::Json& params);
  bool give(Subscriber& subscriber, const task::Event& event);
  bool send(Subscriber& subscriber, const StreamedEvent& event, peer::Announcement& message, std::size_t most);
  void pump(Subscriber& subscriber);
  void remember_given(Subscriber& subscriber) const;
  void overflow(Subscriber& subscriber);

  transport::Loop& loop_;
  task::Journal& journal_;
  Limits limits_;
  std::unordered_map<std::uint64_t, Subscriber> subscribers_;
  std::function<void()> on_subscribed_;
  std::function<void(bool)> on_clients_;
  std::optional<std::uint64_t> stopping_;  // the event that tells of it
  std::uint64_t given_last_ = 0;
  std::optional<peer::Announcement> message_;  // of that one
  base::Lifetime lifetime_;
};

}  // namespace duet::app
