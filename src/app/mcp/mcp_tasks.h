#pragma once

#include <string>
#include <string_view>

#include <boost/json/object.hpp>

#include "app/mcp/task_answers.h"
#include "duet/base/clock.h"

namespace duet::app::mcp {

/// `task-7-` and 26 characters: what MCP calls a task by. It cannot be guessed, and the daemon keeps it with the task.
bool is_handle(std::string_view text);

/// What is known of a task that an MCP client was given.
struct GivenTask {
  std::string handle;
  TaskView view = {};
  bool is_cancelling = false;
};

/// The task in the words of the tasks extension, and in those of 2025-11-25. `now` decides how often a client is to
/// ask. The result of one that has ended is not in it.
boost::json::object modern_task(const GivenTask& task, base::UtcTime now);
boost::json::object legacy_task(const GivenTask& task, base::UtcTime now);

/// What a `task_run` that waited for the end would have answered: its end is an error unless it completed.
ToolResult run_answer(const TaskView& task, std::string_view root, std::size_t max_bytes);

}  // namespace duet::app::mcp
