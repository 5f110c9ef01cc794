#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include "app/mcp/daemon_link.h"
#include "app/mcp/tool_result.h"
#include "duet/base/log.h"
#include "duet/peer/connection.h"
#include "duet/peer/methods.h"
#include "duet/rpc/error.h"

namespace duet::app::mcp {

/// Questions to the daemons of projects, side by side: each that is at a daemon has a connection of its own, since a
/// daemon answers in order. No more than `most_at_once` are; those about code leave some for others. The rest waits in
/// turn. One whose daemon dies is asked again, once, of the next daemon: whoever asks sees to it that this does no
/// harm. For the loop's thread only.
class Desk {
 public:
  static constexpr std::size_t most_at_once = 16;
  static constexpr std::size_t most_about_code = 12;
  static constexpr std::size_t most_waiting = 256;

  struct Part {
    std::string method;
    boost::json::object params = {};
  };
  struct Question {
    std::string root;         ///< whose daemon is asked
    std::vector<Part> parts;  ///< sent together, to one connection; at least one
    base::TimePoint deadline = {};
    bool is_about_code = false;
    bool may_start = true;  ///< else only a daemon that runs is asked
  };
  using PartAnswer = tl::expected<boost::json::value, rpc::Error>;  ///< what the daemon said, or why it refused
  /// An answer to each part; or why there are none.
  using Answer = tl::expected<std::vector<PartAnswer>, ToolError>;
  using Answered = std::function<void(Answer)>;
  using Ticket = std::uint64_t;

  Desk(transport::Loop& loop, base::Log& log, DaemonLink::Rules rules);
  Desk(const Desk&) = delete;
  Desk& operator=(const Desk&) = delete;
  ~Desk();

  /// The answer comes once, never before this returns.
  Ticket ask(Question question, Answered answered);
  /// Nobody wants the answer any more. What waits is never sent; of what was sent the daemon is told.
  void cancel(Ticket ticket);
  /// As many wait as may.
  bool is_full() const { return waiting_.size() >= most_waiting; }

  DaemonLink& link(const std::string& root);

 private:
  struct Line;
  struct Job {
    Ticket ticket = 0;
    Question question;
    Answered answered;
    int attempt = 1;  // what comes of an earlier one is of no use
    int lost = 0;     // daemons that took the question and died
    transport::Loop::Timer again = {};
    Line* line = nullptr;
    std::vector<peer::CallId> calls = {};
    std::vector<PartAnswer> answers = {};
  };
  // A connection; a job at most is at it.
  struct Line {
    DaemonLink* link = nullptr;
    std::unique_ptr<peer::Connection> connection;
    Ticket job = 0;
    bool is_gone = false;
    bool has_answered = false;
    bool is_settling = false;  // the daemon has not answered yet what was cancelled
  };

  bool may_begin(const Job& job) const;
  void admit(const Job& job);
  void leave(const Job& job);
  Line* idle_line(const DaemonLink& link);
  Line& open_line(DaemonLink& link, DaemonLink::Channel channel);
  void send(Job& job, Line& line);
  void take(Ticket ticket, int attempt, peer::Outcome outcome);
  void take_lost(Job& job);
  void forget_lines(const DaemonLink& link);
  void connect(Job& job);
  void sweep_later();
  void finish(Ticket ticket, Answer answer);
  void close_idle_line();
  void cancel_rest(const Job& job);
  void sweep();

  transport::Loop& loop_;
  base::Log& log_;
  DaemonLink::Rules rules_;
  peer::Methods no_methods_;
  base::Log silent_;
  std::map<std::string, std::unique_ptr<DaemonLink>> links_;
  std::map<Ticket, Job> jobs_;  // all that are not answered
  std::list<Ticket> starting_;  // those that have a place and are sent next
  std::list<Ticket> waiting_;   // those that have none
  std::size_t at_once_ = 0;
  std::size_t about_code_ = 0;
  std::list<Line> lines_;
  Ticket last_ = 0;
  transport::Loop::Deferred sweeping_;
};

}  // namespace duet::app::mcp
