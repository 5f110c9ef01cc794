#pragma once

#include <sys/types.h>

#include <optional>

#include "app/project/state_folder.h"

namespace duet::app {

/// The process that holds the project's lock, as the kernel knows it; nothing if nobody does or it cannot be told.
std::optional<pid_t> lock_holder(const StateFolder& folder);

/// Takes the lock, or throws Failure that names the daemon which has it. One that answers is named at once; one that
/// does not may be starting or about to end, killed perhaps, and is waited for a moment.
DaemonLock take_lock_or_fail(const StateFolder& folder);

}  // namespace duet::app
