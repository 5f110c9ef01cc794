#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "duet/rpc/error.h"
#include "task/agent.h"
#include "task/task.h"

namespace duet::task {

/// Why a request about tasks is refused, as the client gets it.
rpc::Error unknown_task(std::string_view id);
rpc::Error not_cancellable(TaskId id, State state);
/// What was asked for is for tasks in another state; `reason` says which, in one word.
rpc::Error wrong_state(TaskId id, State state, std::string_view message, std::string_view reason);
rpc::Error queue_full(std::size_t capacity);
/// It cannot be restarted: a shared queue erases what it had in `env` when it ends, and shows it to nobody before.
rpc::Error env_is_gone(TaskId id);
/// The key of a submission belongs to another one, which differs in these parameters.
rpc::Error key_is_taken(TaskId id, const std::vector<std::string>& differences);
/// A task cannot come after itself.
rpc::Error dependency_cycle(TaskId id, TaskId dependency);
rpc::Error unknown_group(std::string_view name, const std::vector<std::string>& known);
/// One that only settings have which the user has not trusted.
rpc::Error untrusted_group(std::string_view name, const Distrust& distrust);
/// Something that is needed is not there: `subsystem` names it, `why` goes on after "Subsystem unavailable: ".
rpc::Error unavailable(std::string_view subsystem, std::string_view why);
/// The shared queue cannot be reached now: who waits may ask again.
rpc::Error queue_is_away(std::string_view why);
/// Limits that nobody could keep; `why` ends with what would help.
rpc::Error limits_not_kept(std::string_view why);
/// Too many tasks led to the one that asks, one through the other.
rpc::Error too_deep(TaskId asking, unsigned most);
/// A parameter that only a queue has which machines share.
rpc::Error needs_shared_queue(std::string_view param);
rpc::Error is_stopping();
/// The same, with the setting that would help.
rpc::Error no_agent(std::string_view why, std::string_view set);
/// The same of an agent that only settings have which the user has not trusted.
rpc::Error untrusted_agent(std::string_view name, const Distrust& distrust);
/// The same of their default_agent, for a submission that names no agent.
rpc::Error untrusted_default_agent(std::string_view name, const Distrust& distrust);

}  // namespace duet::task
