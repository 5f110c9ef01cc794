#pragma once

#include <sys/types.h>

#include <optional>

#include "app/project/state_folder.h"

namespace duet::app {

/// The process that holds the project's lock, as the kernel knows it; nothing if nobody does or it cannot be told.
std::optional<pid_t> lock_holder(const StateFolder& folder);

/// The state folder of the project's daemon, for clients: where the settings say it is, or in the other place if a
/// daemon that was started with other settings runs there; none if there never was one. Throws Failure.
std::optional<StateFolder> find_state(const Project& project, StatePlace place);

/// Throws Failure if a daemon of the project runs with its state in the other place.
void refuse_second_daemon(const Project& project, StatePlace place);

/// Takes the lock, or throws Failure that names the daemon which has it. One that answers is named at once; one that
/// does not may be starting or about to end, killed perhaps, and is waited for a moment.
DaemonLock take_lock_or_fail(const StateFolder& folder);

}  // namespace duet::app
