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
#include "process/launch.h"
#include "task/agents.h"

namespace duet::app::mcp {
namespace {

using boost::json::array;
using boost::json::object;
using boost::json::value;

// None: they are faulty, which is for the start to tell.
std::optional<Settings> settings_of(const std::string& root) {
  try {
    auto read = read_settings(find_project(root), settings_places());
    auto* const settings = std::get_if<Settings>(&read);
    return settings != nullptr ? std::optional(std::move(*settings)) : std::nullopt;
  } catch (const Failure&) {
    return std::nullopt;
  }
}

void add_agents(object& status, const OfferedAgents& offered) {
  status["agents"] = array(offered.names.begin(), offered.names.end());
  if (!offered.usual.empty()) status["default_agent"] = offered.usual;
}

// The settings tell whether the project's file counts, and which agents the daemon would have.
object status_by_settings(Services& services, const std::string& root) {
  const std::optional<Settings> settings = settings_of(root);
  const bool is_trusted = !settings || settings->note.empty();
  object status = status_without_daemon(root, is_trusted, services.desk.link(root).refusal_to_start());
  if (!settings) return status;
  const task::Agents agents(settings->tasks, process::current_environment(), [root] { return root; });
  const std::string usual = agents.usual().value_or("");
  array list;
  for (const auto& [name, agent] : agents.all()) list.push_back(object{{"name", name}, {"isDefault", name == usual}});
  add_agents(status, offered_agents(services, object{{"agents", std::move(list)}}));
  return status;
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
  how.on_failure = [call, root, then](const ToolError&) { then(status_by_settings(call->services(), root)); };
  call->ask(
      root,
      {{"daemon.status", {}}, {"agent.list", {}}, {"lsp.list", {}}, {"task.stats", {}}, {"automation.status", {}}}, how,
      [=](const Call::Parts& parts) {
        StatusParts told;
        const std::array<value*, 5> places{&told.daemon, &told.agents, &told.servers, &told.counts, &told.automation};
        for (std::size_t i = 0; i < places.size(); ++i) {
          if (parts[i]) *places[i] = *parts[i];
        }
        object status = status_of_parts(told, root);
        if (told.agents.is_object()) add_agents(status, offered_agents(call->services(), told.agents));
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
