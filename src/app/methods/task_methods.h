#pragma once

#include "duet/peer/methods.h"
#include "task/store.h"
#include "task/supervisor.h"

namespace duet::app {

/// `task.*` and `chat.send`. What changes something is answered once it is on disk.
void add_task_methods(peer::Methods& methods, task::Supervisor& supervisor, task::Store& store);

}  // namespace duet::app
