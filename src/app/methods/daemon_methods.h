#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <boost/describe/class.hpp>

#include "duet/base/clock.h"
#include "duet/base/fd.h"
#include "duet/peer/methods.h"

namespace duet::app {

/// How a daemon is asked to stop.
struct StopRequest {
  bool force = false;                              ///< running tasks are not given time to finish
  bool leave_tasks = false;                        ///< they go on, for the next daemon
  std::shared_ptr<const base::Fd> successor = {};  ///< a program, opened, that this process goes on as
};

// What `daemon.status` answers. The names are those of the JSON members.

struct Problem {
  std::string subsystem;
  std::string message;
};
BOOST_DESCRIBE_STRUCT(Problem, (), (subsystem, message))

struct LoopStatus {
  std::int64_t longest_turn_ms;
};
BOOST_DESCRIBE_STRUCT(LoopStatus, (), (longest_turn_ms))

struct IpcStatus {
  std::size_t clients;
};
BOOST_DESCRIBE_STRUCT(IpcStatus, (), (clients))

struct SupervisorStatus {
  std::int64_t running;
  std::int64_t queued;
  std::size_t maxRunning;
};
BOOST_DESCRIBE_STRUCT(SupervisorStatus, (), (running, queued, maxRunning))

struct StoreStatus {
  bool healthy;
};
BOOST_DESCRIBE_STRUCT(StoreStatus, (), (healthy))

struct AutomationCounts {
  bool enabled;
  std::size_t ruleCount;
};
BOOST_DESCRIBE_STRUCT(AutomationCounts, (), (enabled, ruleCount))

struct LspStatus {
  std::size_t running;
};
BOOST_DESCRIBE_STRUCT(LspStatus, (), (running))

struct Subsystems {
  LoopStatus loop;
  IpcStatus ipc;
  SupervisorStatus supervisor;
  StoreStatus store;
  AutomationCounts automation;
  LspStatus lsp;
};
BOOST_DESCRIBE_STRUCT(Subsystems, (), (loop, ipc, supervisor, store, automation, lsp))

/// How the daemon before this one ended, if nobody stopped it.
struct FormerEnd {
  pid_t pid;
  std::string how;
  std::optional<std::string> at = {};
};
BOOST_DESCRIBE_STRUCT(FormerEnd, (), (pid, how, at))

struct DaemonStatus {
  pid_t pid;
  std::string version;
  std::string started_at;
  std::int64_t uptime_seconds;
  std::string health;
  std::vector<Problem> problems;
  Subsystems subsystems;
  std::optional<bool> managed = {};
  std::optional<FormerEnd> last_end = {};
};
BOOST_DESCRIBE_STRUCT(DaemonStatus, (),
                      (pid, version, started_at, uptime_seconds, health, problems, subsystems, managed, last_end))

/// What the methods need from the daemon.
struct DaemonActions {
  std::function<DaemonStatus()> status;
  std::function<void(StopRequest)> stop;  ///< begins once the answer is on its way; throws rpc::Error if it refuses
};

/// `ping`, `daemon.status`, `daemon.stop`, and the methods that describe all methods.
void add_daemon_methods(peer::Methods& methods, const base::Clock& clock, const DaemonActions& actions);

}  // namespace duet::app
