#include <algorithm>
#include <utility>
#include <variant>

#include <boost/json/array.hpp>

#include "app/mcp/event_replay.h"
#include "app/mcp/status_answer.h"
#include "app/mcp/tools.h"
#include "app/project/failure.h"
#include "app/project/project.h"
#include "app/settings/settings.h"

namespace duet::app::mcp {
namespace {

using boost::json::array;
using boost::json::object;
using boost::json::value;

// Without a daemon the settings themselves tell whether the project's file counts. A faulty one is for the start to
// tell.
bool is_trusted(const std::string& root) {
  try {
    const auto read = read_settings(find_project(root), settings_places());
    const auto* const settings = std::get_if<Settings>(&read);
    return settings == nullptr || settings->note.empty();
  } catch (const Failure&) {
    return true;
  }
}

void add_events(const CallPointer& call, const std::string& root, std::optional<std::int64_t> since, object status,
                std::function<void(object)> then) {
  DaemonLink::Channel channel = call->services().desk.link(root).try_connect();
  if (!channel) return then(std::move(status));
  const std::optional<std::uint64_t> from = since ? std::optional(static_cast<std::uint64_t>(*since)) : std::nullopt;
  const auto replay = std::make_shared<std::unique_ptr<EventReplay>>();
  transport::Loop& loop = call->services().loop;
  *replay = std::make_unique<EventReplay>(
      loop, std::move(channel), from,
      [call, &loop, replay, status = std::move(status), then = std::move(then)](auto result) mutable {
        loop.defer([replay] { replay->reset(); });  // it is in the middle of this call
        if (result) {
          for (object& event : result->events) status["events"].as_array().push_back(std::move(event));
          status["next_event"] = result->next;
        }
        if (!call->is_over()) then(std::move(status));
      });
}

}  // namespace

void read_status(const CallPointer& call, std::optional<std::int64_t> since, const std::function<void(object)>& then) {
  const std::string root = call->home();
  if (root.empty()) return;
  Call::How how{.may_start = false, .keeps_refusals = true};
  how.on_failure = [root, then](const ToolError&) { then(status_without_daemon(root, is_trusted(root))); };
  call->ask(
      root,
      {{"daemon.status", {}}, {"agent.list", {}}, {"lsp.list", {}}, {"task.stats", {}}, {"automation.status", {}}}, how,
      [=](const Call::Parts& parts) {
        StatusParts told;
        const std::array<value*, 5> places{&told.daemon, &told.agents, &told.servers, &told.counts, &told.automation};
        for (std::size_t i = 0; i < places.size(); ++i) {
          if (parts[i]) *places[i] = *parts[i];
        }
        const OfferedAgents offered =
            told.agents.is_object() ? offered_agents(call->services(), told.agents) : OfferedAgents();
        object status = status_of_parts(told, root);
        status["agents"] = array(offered.names.begin(), offered.names.end());
        if (!offered.usual.empty()) status["default_agent"] = offered.usual;
        add_events(call, root, since, std::move(status), then);
      });
}

void run_project_status(const CallPointer& call, const Arguments& arguments) {
  read_status(call, arguments.number("since"),
              [call, arguments](const object& status) { call->finish(status_answer(status, arguments.max_bytes())); });
}

void run_tool(const Tool& tool, const CallPointer& call, const Arguments& arguments) {
  switch (tool.id) {
    case Tool::Name::code_symbols:
      return run_code_symbols(call, arguments);
    case Tool::Name::code_definition:
      return run_code_definition(call, arguments);
    case Tool::Name::code_references:
      return run_code_references(call, arguments);
    case Tool::Name::code_diagnostics:
      return run_code_diagnostics(call, arguments);
    case Tool::Name::task_run:
      return run_task_run(call, arguments);
    case Tool::Name::task_get:
      return run_task_get(call, arguments);
    case Tool::Name::task_list:
      return run_task_list(call, arguments);
    case Tool::Name::task_output:
      return run_task_output(call, arguments);
    case Tool::Name::task_cancel:
      return run_task_cancel(call, arguments);
    case Tool::Name::project_status:
      return run_project_status(call, arguments);
  }
}

}  // namespace duet::app::mcp
