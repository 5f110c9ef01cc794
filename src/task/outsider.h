#pragma once

#include <array>
#include <string_view>

#include "process/process_tree.h"

namespace duet::task {

/// A task may start the project's daemon, or restart it, and that is to outlive the task. But a keeper is the
/// sub-reaper of all that its task starts, however it is started. So processes of ours are told by what they find in
/// their environment when they are executed, and take out of it, so that nobody inherits it:
///
/// - a daemon that was started into the background: see app/daemon/detach.cpp;
/// - a nursery, and the keepers that it forks. Each of them is in charge of its own tasks.
///
/// They and their descendants are no part of the task: a keeper does not signal them, does not wait for them, and ends
/// with the run, so that they get another parent. Such a daemon leaves the cgroup of a task with limits. DUET_TASK_ID
/// and DUET_TASK_MARK must not be in their environment, or they would be taken for leftovers of the task when its
/// keeper is killed.
inline constexpr std::string_view daemon_assignment = "DUET_RPC_READY_FD=3";
inline constexpr std::string_view nursery_variable = "DUET_RPC_NURSERY";

/// Both names. A task does not find them in its environment, whoever asks for that.
inline constexpr std::array<std::string_view, 2> outsider_variables{"DUET_RPC_READY_FD", nursery_variable};

bool is_outsider(const process::ProcessEntry& process);

}  // namespace duet::task
