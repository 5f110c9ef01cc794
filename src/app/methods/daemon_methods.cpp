#include "app/methods/daemon_methods.h"

#include <fcntl.h>

#include <string>
#include <utility>

#include "app/methods/describing_methods.h"
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
};
BOOST_DESCRIBE_STRUCT(Stop, (), (force, leaveTasks, restart))

struct Stopping {
  bool stopping;
};
BOOST_DESCRIBE_STRUCT(Stopping, (), (stopping))

// Asked more often than anything else, so that only the time in it is written anew.
void add_ping(peer::Methods& methods, const base::Clock& clock) {
  const std::string beginning = R"({"pong":true,"timestamp":")";
  methods.add(
      "ping", "Tells that the daemon answers, and its time",
      [&clock, at = beginning.size(), time = base::UtcText(), text = beginning + base::utc_text({}) + "\"}"]() mutable {
        time.write(&text[at], clock.utc());
        return rpc::JsonOf<Pong>::view(text);
      });
}

std::shared_ptr<const base::Fd> program_of(const peer::Peer& peer) {
  auto program = std::make_shared<const base::Fd>(
      open(("/proc/" + std::to_string(peer.pid) + "/exe").c_str(), O_RDONLY | O_CLOEXEC));
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
                    .successor = stop.restart ? program_of(request.conversation.peer()) : nullptr});
             return Stopping{true};
           })
      .describe(&Stop::force, "End running tasks now")
      .describe(&Stop::leaveTasks, "Leave running tasks to the next daemon, as a restart does")
      .describe(&Stop::restart, "Go on as the program of whoever asks, in the same process; tasks run on");
}

}  // namespace

void add_daemon_methods(peer::Methods& methods, const base::Clock& clock, const DaemonActions& actions) {
  add_ping(methods, clock);
  methods.add("daemon.status", "Tells how the daemon is and what it is doing", actions.status);
  add_stop(methods, actions);
  add_describing_methods(methods, true);
}

}  // namespace duet::app
