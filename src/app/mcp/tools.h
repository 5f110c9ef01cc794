#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/mcp/arguments.h"
#include "app/mcp/call.h"
#include "app/mcp/task_answers.h"

namespace duet::app::mcp {

using CallPointer = std::shared_ptr<Call>;

/// Bytes of a task's output that are shown with it, unless others are asked for.
inline constexpr std::int64_t usual_tail = 2000;

// What the tools do. Each answers its call, now or later, whatever happens.

void run_code_symbols(const CallPointer& call, const Arguments& arguments);
void run_code_definition(const CallPointer& call, const Arguments& arguments);
void run_code_references(const CallPointer& call, const Arguments& arguments);
void run_code_diagnostics(const CallPointer& call, const Arguments& arguments);
void run_task_run(const CallPointer& call, const Arguments& arguments);
void run_task_get(const CallPointer& call, const Arguments& arguments);
void run_task_list(const CallPointer& call, const Arguments& arguments);
void run_task_output(const CallPointer& call, const Arguments& arguments);
void run_task_cancel(const CallPointer& call, const Arguments& arguments);
void run_project_status(const CallPointer& call, const Arguments& arguments);

void run_tool(const Tool& tool, const CallPointer& call, const Arguments& arguments);

/// Which agents a door offers, of what `agent.list` says; and the default one of them, or an empty text.
struct OfferedAgents {
  std::vector<std::string> names = {};
  std::string usual = {};
};
OfferedAgents offered_agents(Services& services, const boost::json::value& list);

/// How a task is named to the daemon: by its id, or by its handle.
struct TaskName {
  boost::json::object params;  ///< of `task.get`
  std::string id;              ///< `task-7`
};
TaskName task_named(const std::string& text);

/// Reads a task, the last bytes of its output, and why it waits.
void read_task(const CallPointer& call, const TaskName& name, std::int64_t tail_bytes,
               std::function<void(TaskView)> then);

/// The tasks that `task.list` gives for these params, and the counts of all.
void read_tasks(const CallPointer& call, boost::json::object params,
                const std::function<void(const std::vector<TaskView>&, const boost::json::object& counts)>& then);

/// All that `project_status` tells, without a text's bound; the answer is structured only.
void read_status(const CallPointer& call, std::optional<std::int64_t> since,
                 const std::function<void(boost::json::object)>& then);

}  // namespace duet::app::mcp
