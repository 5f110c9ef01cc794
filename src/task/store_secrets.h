#pragma once

#include "process/launch.h"

namespace duet::task {

/// An environment without what leads to the shared queue: DUET_RPC_STORE, PGPASSWORD and PGPASSFILE. They are for the
/// daemon; keepers, tasks, programs of rules and language servers must not find them. Without a shared queue the
/// last two are the user's own business and stay where they are: whoever calls this knows.
process::Environment without_store_secrets(process::Environment environment);

}  // namespace duet::task
