#include "app/methods/from_task.h"

#include <sys/types.h>

#include <string>

#include <boost/json/object.hpp>

#include "duet/peer/conversation.h"
#include "duet/rpc/error.h"
#include "task/origin.h"

namespace duet::app {

void refuse_from_task(const peer::Request& request) {
  constexpr int subsystem_unavailable = -32003;
  if (request.conversation.peer().admission) return;
  const auto pid = static_cast<pid_t>(request.conversation.peer().pid);
  const bool is_visible = pid > 0;
  const task::Origin origin = is_visible ? task::origin_of(pid) : task::Origin::gone;
  if (origin == task::Origin::outside) return;
  const std::string why =
      origin == task::Origin::task ? "a task asks for it, and that is for people to decide: call it outside of tasks"
      : is_visible                 ? "whoever asks for it has ended, and it is not known whether that was a task"
                   : "whoever asks for it is outside of the daemon's container, and it is not known whether that is "
                     "a task: call it inside";
  throw rpc::Error(subsystem_unavailable, "Subsystem unavailable: " + why,
                   boost::json::object{{"subsystem", "automation"}, {"reason", "from-a-task"}});
}

std::optional<task::TaskId> asking_task(const peer::Peer& peer, task::Queue& queue) {
  if (peer.admission || peer.pid <= 0 || !queue.has_runs()) return std::nullopt;
  const std::optional<pid_t> keeper = task::keeper_above(static_cast<pid_t>(peer.pid));
  return keeper ? queue.task_of_keeper(*keeper) : std::nullopt;
}

}  // namespace duet::app
