#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "duet/rpc/error.h"
#include "task/task.h"

namespace duet::task {

/// Why a request about tasks is refused, as the client gets it.
rpc::Error unknown_task(std::string_view id);
rpc::Error not_cancellable(TaskId id, State state);
rpc::Error queue_full(std::size_t capacity);
/// Something that is needed is not there: `subsystem` names it, `why` goes on after "Subsystem unavailable: ".
rpc::Error unavailable(std::string_view subsystem, std::string_view why);
rpc::Error is_stopping();
/// The same, with the setting that would help.
rpc::Error no_agent(std::string_view why, std::string_view set);

}  // namespace duet::task
