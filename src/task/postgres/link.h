#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "duet/base/lifetime.h"
#include "duet/transport/loop.h"
#include "task/postgres/call_queue.h"
#include "task/postgres/line.h"
#include "task/postgres/pauses.h"
#include "task/postgres/server_search.h"
#include "task/postgres/session.h"

namespace duet::task::postgres {

/// One connection that is kept: statements in order, one at a time, each with a deadline; when it breaks it is made
/// anew.
///
/// What was sent when it broke is `unknown`; what was not waits for the next connection until its time is up, and is
/// `never` then. What the server refuses for a moment (40001, 40P01, 55P03) is sent again a few times, and what a
/// standby refuses (25006) on the next connection. An overdue statement is never cancelled: its owner asks after it,
/// and only when the server does not work on it, or nobody knows, the connection is given up.
class Link {
 public:
  struct Options {
    base::Duration patience = std::chrono::seconds(10);  ///< of a call, waiting and answer together
    base::Duration inquiry = std::chrono::seconds(5);    ///< what an answer about an overdue statement may take
    base::Duration slow = std::chrono::seconds(1);       ///< behind a statement that takes longer not all need to wait
    int repeats = 5;                                     ///< of what was refused for a moment
    std::size_t most_calls = 10'000;                     ///< that wait; more are answered `never` at once
    std::size_t most_bytes = std::size_t{64} << 20U;
    base::Duration settled = std::chrono::seconds(5);  ///< a connection that held so long is replaced at once
    ServerSearch::Limits search = {};
  };
  struct Events {
    /// A connection is made; what is asked now goes before all that waits. accept() or refuse() must follow. Without it
    /// every connection is accepted.
    std::function<void()> connected;
    std::function<void()> up;
    /// It is not there any more, or an attempt failed; each time.
    std::function<void(const std::string& why)> down;
    std::function<void(const std::string& channel, const std::string& payload)> notified;
    /// What was sent is slow, and calls wait behind it that may go elsewhere: see take_movable().
    std::function<void()> slow;
    /// Whether that process of the server works on a statement of ours: yes, no, or nobody knows.
    std::function<void(int process, std::function<void(std::optional<bool>)> answer)> inquire;
  };

  /// The address must outlive it.
  Link(transport::Loop& loop, const StoreAddress& address, Events events, Options options);
  Link(transport::Loop& loop, const StoreAddress& address, Events events)
      : Link(loop, address, std::move(events), Options()) {}
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;
  ~Link() = default;

  /// Where a call belongs: here, here for now, or over another connection, so that it waits behind those of this one.
  enum class Place { own, movable, guest };

  void start();
  /// `done` never comes within the call.
  void call(Statement statement, Line::Done done, Place place = Place::own);
  /// Those that may go elsewhere and were not sent: they are the caller's now.
  std::vector<Call> take_movable() { return waiting_.take_movable(); }
  /// The same before all that waits, on this connection or not at all.
  void ask(Statement statement, Line::Done done);

  /// On the connection of now, see Session.
  void prepare_statements();
  void accept();
  void refuse(const std::string& why);
  void reconnect(const std::string& why);

  /// The server lets nobody in with this name, password and database.
  bool is_turned_away() const { return search_.was_turned_away(); }
  bool is_up() const { return stage_ == Stage::up; }
  /// Null while there is no connection.
  const Session* session() const { return session_.get(); }
  /// Another one for each connection.
  std::uint64_t connection() const { return connection_; }
  /// Where it is connected to, or was the last time.
  const std::string& server() const { return server_; }
  /// How long the server has been at what it was sent last; none: it has answered.
  base::Duration waited() const { return sent_ ? loop_.now() - sent_at_ : base::Duration::zero(); }
  bool is_slow() const { return sent_ && waited() >= options_.slow; }
  /// How long the last statement that was answered took.
  std::optional<std::chrono::microseconds> round_trip() const { return round_trip_; }

 private:
  enum class Stage { idle, searching, greeting, up };

  void search_later();
  void search();
  void found(tl::expected<ServerSearch::Found, std::string> outcome);
  void open_session(PgConnection connection);
  void lost(const std::string& why);
  void close(const std::string& why);

  void pump();
  std::optional<Call> next_call();
  void send(Call call);
  void answered(const Answer& answer);
  bool repeats(Call& call, const Fault& fault);
  void answer_later(Line::Done done, Fault fault);

  void watch_time();
  void check_time();
  void expire(CallQueue& queue, base::TimePoint now);
  void look_after(base::TimePoint now);
  void told(std::uint64_t statement, std::optional<bool> works);
  double random();

  transport::Loop& loop_;
  const StoreAddress& address_;
  Events events_;
  Options options_;
  ServerSearch search_;
  Pauses pauses_;
  Stage stage_ = Stage::idle;
  std::string server_;
  std::unique_ptr<Session> session_;
  std::uint64_t connection_ = 0;
  base::TimePoint up_since_;
  base::TimePoint greeted_until_;  // whoever greets does nothing more by then
  transport::Loop::Timer pause_;

  CallQueue urgent_;
  CallQueue waiting_;
  std::optional<Call> sent_;
  std::uint64_t statement_ = 0;  // the number of the one that was sent last
  base::TimePoint sent_at_;
  bool slow_told_ = false;  // of the one that was sent
  std::optional<std::chrono::microseconds> round_trip_;
  transport::Loop::Timer repeat_pause_;

  // Of an overdue statement.
  base::TimePoint look_at_;
  bool inquiring_ = false;

  transport::Loop::Timer tick_;  // not later than the next time that is up
  base::TimePoint tick_at_;
  base::Lifetime lifetime_;
};

}  // namespace duet::task::postgres
