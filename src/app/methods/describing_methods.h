#pragma once

#include "duet/peer/methods.h"

namespace duet::app {

/// `listMethods`, `describeMethods`, `version` and `rpc.discover`: what the table itself says, complete only when it is
/// asked. `list_discovery`: `rpc.discover` is among what it lists.
void add_describing_methods(peer::Methods& methods, bool list_discovery);

}  // namespace duet::app
