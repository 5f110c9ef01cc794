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
  bool restarting = false;                         ///< which is started at once; clients are told so
  bool drain = false;                              ///< they have all the time they need
  std::optional<base::Duration> patience = {};     ///< with running tasks; none: 15 s, or for ever if it drains
  std::shared_ptr<const base::Fd> successor = {};  ///< a program, opened, that this process goes on as
};

// What `daemon.status` answers. The names are those of the JSON members.

struct Problem {
  std::string subsystem;
  std::string message;
};
BOOST_DESCRIBE_STRUCT(Problem, (), (subsystem, message))

/// A member that is there in any case, and null where there is nothing to say.
template <typename T>
using OrNull = std::optional<std::optional<T>>;

struct LoopStatus {
  std::int64_t longest_turn_ms;
};
BOOST_DESCRIBE_STRUCT(LoopStatus, (), (longest_turn_ms))

/// Connections.
struct DoorCounts {
  std::size_t unix;
  std::size_t http;
  std::size_t tls;
};
BOOST_DESCRIBE_STRUCT(DoorCounts, (), (unix, http, tls))

struct IpcStatus {
  std::size_t clients;
  DoorCounts byDoor;
};
BOOST_DESCRIBE_STRUCT(IpcStatus, (), (clients, byDoor))

struct HttpStatus {
  std::string url;
};
BOOST_DESCRIBE_STRUCT(HttpStatus, (), (url))

struct TlsStatus {
  std::string address;
  std::string expiresAt;
};
BOOST_DESCRIBE_STRUCT(TlsStatus, (), (address, expiresAt))

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
  OrNull<HttpStatus> http;
  OrNull<TlsStatus> tls;
  SupervisorStatus supervisor;
  StoreStatus store;
  AutomationCounts automation;
  LspStatus lsp;
};
BOOST_DESCRIBE_STRUCT(Subsystems, (), (loop, ipc, http, tls, supervisor, store, automation, lsp))

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
  std::optional<std::string> startedBy = {};
  std::optional<bool> stopping = {};
  std::optional<std::string> worker = {};  ///< its name in a queue that machines share
};
BOOST_DESCRIBE_STRUCT(DaemonStatus, (),
                      (pid, version, started_at, uptime_seconds, health, problems, subsystems, managed, last_end,
                       startedBy, stopping, worker))

/// What `daemon.reload` answers: single values by name, the rest by kind and name (`agents.claude`). A file of `[tls]`
/// with other contents is a value that has changed.
struct Reloaded {
  std::vector<std::string> added;
  std::vector<std::string> removed;
  std::vector<std::string> changed;
  std::optional<std::string> note = {};  ///< what does not count, and why: of the project's file, or files of `[tls]`
};
BOOST_DESCRIBE_STRUCT(Reloaded, (), (added, removed, changed, note))

/// What the methods need from the daemon.
struct DaemonActions {
  std::function<DaemonStatus()> status;
  std::function<Reloaded()> reload;       ///< throws rpc::Error if the settings are faulty
  std::function<void(StopRequest)> stop;  ///< begins once the answer is on its way; throws rpc::Error if it refuses
};

/// `ping`, `daemon.status`, `daemon.reload`, `daemon.stop`, and the methods that describe all methods.
void add_daemon_methods(peer::Methods& methods, const base::Clock& clock, const DaemonActions& actions);

}  // namespace duet::app
