#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <boost/json/object.hpp>

#include "simulate/client_line.h"
#include "simulate/model.h"
#include "simulate/random.h"
#include "simulate/trace.h"

namespace duet::simulate {

/// A client of the daemon that listens to its events: it subscribes, reads in its own time, and comes again to the next
/// daemon. It compares all that it gets with what docs/socket.md promises, and tells the model what is wrong: events
/// come in order, none twice on a connection, and none is missing that it was not told to have missed.
class EventClient {
 public:
  /// How far back the daemon's history goes at the moment.
  using Oldest = std::function<std::uint64_t()>;

  EventClient(std::string name, Random chance, Model& model, Trace& trace);

  const std::string& name() const { return name_; }
  bool is_connected() const { return wire_ != nullptr; }
  /// From now on it hears of everything. The daemon has the other end.
  std::shared_ptr<ClientWire> connect(Oldest oldest);
  void leave();
  /// It chooses at random what it wants, and from which event on.
  void subscribe();
  /// Asks for something whose answer comes late; those of later requests come after it.
  void ask_slow_thing();
  /// Takes so many bytes, if that many are there.
  void read(std::size_t most);
  /// There is something to read, or the daemon is gone.
  bool has_news() const { return wire_ && (!wire_->to_client.empty() || wire_->daemon_gone); }

  /// It has read all. Fails what it should have got.
  void check_complete();

 private:
  struct Filter {
    std::set<std::string> kinds = {};
    std::set<task::TaskId> tasks = {};
    bool subscribed = false;
    bool wants(const task::Event& event) const;
    bool wants_output(task::TaskId id) const;
  };
  /// A subscription that is not answered yet.
  struct Asked {
    Filter filter;
    std::optional<std::uint64_t> since;
    std::uint64_t next_then;
    std::uint64_t oldest_then;
  };

  Filter some_filter();
  std::optional<std::uint64_t> some_since();
  void send(const boost::json::object& message);
  void hang_up();
  void take(const std::string& line);
  void take_answer(const boost::json::object& answer);
  void take_event(const std::string& line, const boost::json::object& params);
  void take_overflow(std::uint64_t seq);
  void take_output(const boost::json::object& params);
  void go_on_from(const Asked& asked, std::uint64_t next, std::uint64_t oldest);
  void expect_nothing_before(std::uint64_t seq);
  bool must_come(std::uint64_t seq) const;
  void expect_all_output();
  void fail(const std::string& what) { model_.fail(name_ + ' ' + what); }

  std::string name_;
  Random chance_;
  Model& model_;
  Trace& trace_;

  // Of this connection.
  std::shared_ptr<ClientWire> wire_;
  Oldest oldest_;
  std::string unread_;
  std::deque<Asked> asked_;
  std::size_t slow_things_ = 0;
  Filter filter_;
  // A new subscription without `since` goes on where the daemon is, which the client does not know. Events before
  // `certain_from_` may have been passed by under one of the `earlier_` filters: they must come only if all of them,
  // and the one in force now, want them. Those from `certain_from_` on must come if that one does.
  std::vector<Filter> earlier_;
  std::uint64_t certain_from_ = 0;
  std::uint64_t position_ = 0;                 // the first event that may still come
  std::set<std::uint64_t> had_;                // events of this connection
  bool lost_ = false;                          // it was told that it misses events, and has not subscribed again
  std::optional<std::uint64_t> follows_from_;  // it gets output of all tasks that are queued from this event on
  std::map<task::TaskId, std::uint64_t> output_read_;  // up to where
  std::map<task::TaskId, std::uint64_t> followed_;     // the same, since it last subscribed

  std::uint64_t seen_ = 0;  // the last event, on any connection
};

}  // namespace duet::simulate
