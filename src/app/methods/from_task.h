#pragma once

#include <optional>

#include "duet/peer/conversation.h"
#include "duet/peer/method.h"
#include "task/queue.h"

namespace duet::app {

/// For the first line of a handler: what people are to decide, no task may. Throws rpc::Error (−32003,
/// `data.reason` "from-a-task") if the process at the other end was started by a task, or if nobody can tell: it has
/// ended, or it is in a PID namespace that the daemon does not see into, as outside of the daemon's container. Whoever
/// came through a network door has shown who he is.
void refuse_from_task(const peer::Request& request);

/// The task of this daemon whose process tree the client is in; none if it is in no such tree, or that cannot be told.
std::optional<task::TaskId> asking_task(const peer::Peer& peer, task::Queue& queue);

}  // namespace duet::app
