#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "duet/base/clock.h"
#include "duet/rpc/params.h"
#include "task/task.h"

namespace duet::app {

/// The params of the task methods as values. Each throws rpc::Error if what was given cannot be meant.

task::Submission submission_of(const rpc::Params& params);
/// A text for an agent, which has to say something: one of blanks and line ends only is refused.
std::string prompt_of(const rpc::Params& params, std::string_view name);
/// Of a parameter that names a task; a task nobody has heard of is unknown, however it is spelt.
task::TaskId task_id_of(const rpc::Params& params, std::string_view name);
/// A whole number from `least` on; more than `most` means `most`.
std::uint64_t count_of(const rpc::Params& params, std::string_view name, std::uint64_t otherwise, std::uint64_t least,
                       std::uint64_t most);
/// A time in seconds.
std::optional<base::Duration> patience_of(const rpc::Params& params, std::string_view name);

}  // namespace duet::app
