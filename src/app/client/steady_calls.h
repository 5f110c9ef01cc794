#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "app/client/daemon_client.h"

namespace duet::app {

/// Calls of a command that outlives a restart of the daemon, a connection that is cut, and a queue that is away.
///
/// All of them together have the time that --timeout gives, or no limit. Not for calls that must not be made twice.
class SteadyCalls {
 public:
  explicit SteadyCalls(DaemonClient& daemon);

  /// The result, or nothing if the connection was lost before it came. Throws Failure for what else goes wrong.
  std::optional<std::string> ask(std::string_view method, std::string_view params, base::Duration patience);
  /// The outcome as it is, but for a queue that is away, which is waited for. After the first call nobody connects but
  /// reconnect(): another connection has to be told again what the last one was told.
  peer::Outcome outcome_of(std::string_view method, std::string_view params, base::Duration patience);
  /// Waits for the daemon to go, if it is still there, and to come back, as long as a command waits for an answer; that
  /// is also for connections that are lost again before anything was answered. Throws Failure if it does not come, or
  /// would not have us.
  void reconnect();
  /// Something was answered that was not asked for here.
  void has_answered() { lost_since_.reset(); }

  /// The connection was lost, or is about to be: a daemon that stops tells so whoever waits for a task.
  static bool daemon_has_gone(const peer::Outcome& outcome);
  /// The daemon is there, and its queue is not: it goes on when that is back.
  static bool queue_is_away(const peer::Outcome& outcome);
  /// Waits a little before it is asked again. False: there is no time for that.
  bool await_queue(const peer::Outcome& outcome);
  base::Duration time_left() const;
  DaemonClient& daemon() { return daemon_; }

 private:
  peer::Outcome ask_once(std::string_view method, std::string_view params, base::Duration patience);
  void pause(base::Duration time);

  DaemonClient& daemon_;
  bool told_of_queue_ = false;
  std::optional<base::TimePoint> deadline_;
  bool has_connected_;
  std::optional<base::TimePoint> lost_since_;  // nothing was answered since then
};

}  // namespace duet::app
