#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "app/daemon/state_folder.h"

namespace duet::app {

/// The process that holds the project's lock, as the kernel knows it; nothing if nobody does or it cannot be told.
std::optional<pid_t> lock_holder(const StateFolder& folder);

/// Takes the lock, or throws Failure that names the daemon which has it. A daemon that is just ending is waited for a
/// moment.
DaemonLock take_lock_or_fail(const StateFolder& folder);

}  // namespace duet::app
