#pragma once

#include "duet/peer/methods.h"
#include "task/queue.h"

namespace duet::app {

/// `task.*` and `chat.send`. What changes something is answered once it is safe.
void add_task_methods(peer::Methods& methods, task::Queue& queue);

}  // namespace duet::app
