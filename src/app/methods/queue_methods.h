#pragma once

#include "app/methods/ordered_methods.h"
#include "duet/peer/methods.h"

namespace duet::app {

/// `queue.*` and `agent.*`, and those of `task.*` that change what is queued: hold, release, explain, edit, restart,
/// remove, clean. What changes something is answered once it is on disk.
void add_queue_methods(peer::Methods& methods, const SharedTaskContext& context);

}  // namespace duet::app
