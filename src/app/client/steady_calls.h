#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "app/client/daemon_client.h"

namespace duet::app {

/// Calls of a command that outlives a restart of the daemon.
///
/// All of them together have the time that --timeout gives, or no limit. Not for calls that must not be made twice.
class SteadyCalls {
 public:
  explicit SteadyCalls(DaemonClient& daemon);

  /// The result, or nothing if the connection was lost before it came. Throws Failure for what else goes wrong.
  std::optional<std::string> ask(std::string_view method, std::string_view params, base::Duration patience);
  /// Waits for the daemon to go, if it is still there, and to come back, as long as a command waits for an answer.
  /// Throws Failure if it does not come.
  void reconnect();

  /// The connection was lost, or is about to be: a daemon that stops tells so whoever waits for a task.
  static bool daemon_has_gone(const peer::Outcome& outcome);
  base::Duration time_left() const;
  DaemonClient& daemon() { return daemon_; }

 private:
  void pause();

  DaemonClient& daemon_;
  std::optional<base::TimePoint> deadline_;
};

}  // namespace duet::app
