#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "app/client/daemon_client.h"

namespace duet::app {

/// Calls of a command that outlives a restart of the daemon, and a connection that is cut.
///
/// All of them together have the time that --timeout gives, or no limit. Not for calls that must not be made twice.
class SteadyCalls {
 public:
  explicit SteadyCalls(DaemonClient& daemon);

  /// The result, or nothing if the connection was lost before it came. Throws Failure for what else goes wrong.
  std::optional<std::string> ask(std::string_view method, std::string_view params, base::Duration patience);
  /// The outcome as it is. After the first call nobody connects but reconnect(): another connection has to be told
  /// again what the last one was told.
  peer::Outcome outcome_of(std::string_view method, std::string_view params, base::Duration patience);
  /// Waits for the daemon to go, if it is still there, and to come back, as long as a command waits for an answer; that
  /// is also for connections that are lost again before anything was answered. Throws Failure if it does not come, or
  /// would not have us.
  void reconnect();
  /// Something was answered that was not asked for here.
  void has_answered() { lost_since_.reset(); }

  /// The connection was lost, or is about to be: a daemon that stops tells so whoever waits for a task.
  static bool daemon_has_gone(const peer::Outcome& outcome);
  base::Duration time_left() const;
  DaemonClient& daemon() { return daemon_; }

 private:
  void pause();

  DaemonClient& daemon_;
  std::optional<base::TimePoint> deadline_;
  bool has_connected_;
  std::optional<base::TimePoint> lost_since_;  // nothing was answered since then
};

}  // namespace duet::app
