#include "app/methods/daemon_methods.h"

#include <optional>
#include <string>
#include <utility>

#include "app/doors/roles.h"
#include "app/methods/describing_methods.h"
#include "app/methods/successor.h"
#include "app/methods/task_params.h"
#include "duet/base/utc_text.h"
#include "duet/peer/connection.h"
#include "duet/rpc/error.h"

namespace duet::app {
namespace {

using peer::Request;

constexpr int subsystem_unavailable = -32003;

struct Pong {
  bool pong;
  std::string timestamp;
};
BOOST_DESCRIBE_STRUCT(Pong, (), (pong, timestamp))

struct Stop {
  bool force = false;
  bool leaveTasks = false;
  bool restart = false;
  bool restarting = false;
  bool drain = false;
  std::optional<double> timeoutSeconds;
};
BOOST_DESCRIBE_STRUCT(Stop, (), (force, leaveTasks, restart, restarting, drain, timeoutSeconds))

struct Stopping {
  bool stopping;
};
BOOST_DESCRIBE_STRUCT(Stopping, (), (stopping))

// Asked more often than anything else, so that only the time in it is written anew.
void add_ping(peer::Methods& methods, const base::Clock& clock) {
  const std::string beginning = R"({"pong":true,"timestamp":")";
  methods
      .add("ping", "Tells that the daemon answers, and its time",
           [&clock, at = beginning.size(), time = base::UtcText(),
            text = beginning + base::utc_text({}) + "\"}"]() mutable {
             time.write(&text[at], clock.utc());
             return rpc::JsonOf<Pong>::view(text);
           })
      .needs(role::observe);
}

std::shared_ptr<const base::Fd> successor_of(const peer::Peer& peer) {
  if (peer.admission) {
    throw rpc::Error(subsystem_unavailable,
                     "Subsystem unavailable: only a program on this machine, at the Unix socket, can be gone on as");
  }
  auto program = std::make_shared<const base::Fd>(successor_for(static_cast<pid_t>(peer.pid)));
  if (!*program) {
    throw rpc::Error(subsystem_unavailable,
                     "Subsystem unavailable: the program of process " + std::to_string(peer.pid) + " cannot be opened");
  }
  return program;
}

void add_stop(peer::Methods& methods, const DaemonActions& actions) {
  methods
      .add("daemon.stop", "Stops the daemon. Running tasks get 15 seconds to finish; queued ones stay queued",
           [begin = actions.stop](const Stop& stop, const Request& request) {
             begin({.force = stop.force,
                    .leave_tasks = stop.restart || stop.leaveTasks,
                    .restarting = stop.restart || stop.restarting,
                    .drain = stop.drain,
                    .patience = patience_of("timeoutSeconds", stop.timeoutSeconds),
                    .successor = stop.restart ? successor_of(request.conversation.peer()) : nullptr});
             return Stopping{true};
           })
      .describe(&Stop::force, "End running tasks now")
      .describe(&Stop::leaveTasks, "Leave running tasks to the next daemon, as a restart does")
      .describe(&Stop::restart,
                "Go on in the same process, as the program of whoever asks if that is duet-rpc; tasks run on")
      .describe(&Stop::restarting, "Tell clients that another one follows, which whoever asks starts")
      .describe(&Stop::drain, "Start nothing new, and wait for running tasks as long as they take")
      .describe(&Stop::timeoutSeconds, "End running tasks after that time; else after 15 seconds, or never in a drain");
}

}  // namespace

void add_daemon_methods(peer::Methods& methods, const base::Clock& clock, const DaemonActions& actions) {
  add_ping(methods, clock);
  methods.add("daemon.status", "Tells how the daemon is and what it is doing", actions.status).needs(role::observe);
  methods.add("daemon.reload",
              "Reads the settings files again and tells what changed. Faulty ones are refused, and the old ones stay",
              actions.reload);
  add_stop(methods, actions);
  add_describing_methods(methods, true);
}

}  // namespace duet::app
