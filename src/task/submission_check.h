#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "duet/rpc/error.h"
#include "task/agents.h"
#include "task/task.h"

namespace duet::task {

inline constexpr std::size_t most_dependencies = 1000;

/// Puts what it comes after in order, and says what of it nobody could do.
std::optional<rpc::Error> check_submission(Submission& submission);

/// What a task has whose submission names no priority.
std::int64_t usual_priority(const Agents& agents, const Submission& submission);

/// Of two bodies the names of what one has and the other has not, or has otherwise; none: it is the same submission.
/// What a client calls otherwise has its name.
std::vector<std::string> differences(std::string_view known, std::string_view asked, std::int64_t usual_priority);

}  // namespace duet::task
