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

using peer::Answer;
using peer::Request;

constexpr int subsystem_unavailable = -32003;

// Asked more often than anything else, so that only the time in it is written anew.
peer::Method ping(const base::Clock& clock) {
  const std::string beginning = R"({"pong":true,"timestamp":")";
  return {.name = "ping",
          .summary = "Tells that the daemon answers, and its time",
          .params = {},
          .handler =
              [&clock, at = beginning.size(), time = base::UtcText(),
               text = beginning + base::utc_text({}) + "\"}"](const Request&) mutable {
                time.write(&text[at], clock.utc());
                return Answer::view(text);
              },
          .late_handler = {}};
}

peer::Method status(const DaemonActions& actions) {
  return {.name = "daemon.status",
          .summary = "Tells how the daemon is and what it is doing",
          .params = {},
          .handler = [tell = actions.status](const Request&) { return Answer(tell()); },
          .late_handler = {}};
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

peer::Method stop(const DaemonActions& actions) {
  return {
      .name = "daemon.stop",
      .summary = "Stops the daemon. Running tasks get 15 seconds to finish; queued ones stay queued",
      .params = {{.name = "force", .type = rpc::Type::boolean, .required = false, .summary = "End running tasks now"},
                 {.name = "leaveTasks",
                  .type = rpc::Type::boolean,
                  .required = false,
                  .summary = "Leave running tasks to the next daemon, as a restart does"},
                 {.name = "restart",
                  .type = rpc::Type::boolean,
                  .required = false,
                  .summary = "Go on as the program of whoever asks, in the same process; tasks run on"}},
      .handler =
          [begin = actions.stop](const Request& request) {
            const bool restart = request.params.boolean("restart").value_or(false);
            begin({.force = request.params.boolean("force").value_or(false),
                   .leave_tasks = restart || request.params.boolean("leaveTasks").value_or(false),
                   .successor = restart ? program_of(request.conversation.peer()) : nullptr});
            return Answer::view(R"({"stopping":true})");
          },
      .late_handler = {}};
}

}  // namespace

void add_daemon_methods(peer::Methods& methods, const base::Clock& clock, const DaemonActions& actions) {
  methods.add(ping(clock));
  methods.add(status(actions));
  methods.add(stop(actions));
  add_describing_methods(methods, true);
}

}  // namespace duet::app
