#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>

namespace duet::task {

/// Whether a process was started by a task.
enum class Origin : std::uint8_t {
  outside,  ///< by a person, an editor, a service manager
  task,     ///< a keeper is above it, of whichever daemon
  gone,     ///< nobody can tell: it has ended
};

/// Looks at the parents of a process, up to the first keeper. A keeper is the sub-reaper of its task, so what a task
/// puts into the background has the keeper for its parent in the end. A daemon that a task started is no part of the
/// task (task/outsider.h), nor is what that daemon starts for itself.
///
/// It finds out eager agents and accidents. A program that means harm can have somebody else ask: a terminal that is
/// open, a service manager.
Origin origin_of(pid_t pid);

/// The first keeper above a process, if it was started by a task.
std::optional<pid_t> keeper_above(pid_t pid);

}  // namespace duet::task
