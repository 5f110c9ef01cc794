#include "app/mcp/status_answer.h"

#include <algorithm>
#include <string>
#include <utility>

#include <boost/json/array.hpp>

#include "duet/rpc/value.h"

namespace duet::app::mcp {
namespace {

using boost::json::array;
using boost::json::object;
using boost::json::value;

constexpr std::size_t most_problems = 20;
constexpr std::size_t most_listed = 50;
constexpr std::size_t most_of_message = 300;  // characters

object daemon_part(const value& told) {
  object out{{"running", true}};
  const object& daemon = told.as_object();
  for (const std::string_view name : {"pid", "version", "health"}) {
    if (const value* const found = daemon.if_contains(name)) out[name] = *found;
  }
  array problems;
  for (const value& problem : daemon.at("problems").as_array()) {
    if (problems.size() == most_problems) break;
    problems.push_back(object{{"subsystem", problem.at("subsystem")},
                              {"message", one_line(problem.at("message").as_string(), most_of_message)}});
  }
  out["problems"] = std::move(problems);
  if (const value* const by = daemon.if_contains("startedBy"); by != nullptr && by->is_string())
    out["started_by"] = *by;
  return out;
}

array servers_part(const value& told) {
  array out;
  if (!told.is_object()) return out;
  for (const value& entry : told.at("servers").as_array()) {
    const object& server = entry.as_object();
    const value* const indexing = server.if_contains("indexing");
    if (out.size() == most_listed) break;
    out.push_back(object{{"name", server.at("name")},
                         {"state", server.at("state")},
                         {"root", server.at("root")},
                         {"indexing", indexing != nullptr && !indexing->is_null()}});
  }
  return out;
}

// A firing that says what it would do waits for a person.
object automation_part(const value& told) {
  if (!told.is_object()) return {};
  array waiting;
  for (const value& entry : told.at("recent").as_array()) {
    const object& firing = entry.as_object();
    const value* const would = firing.if_contains("would");
    if (would == nullptr || would->is_null() || waiting.size() == most_listed) continue;
    waiting.push_back(object{
        {"id", member_text(firing, "id")}, {"rule", member_text(firing, "ruleId")}, {"at", member_text(firing, "at")}});
  }
  return {
      {"enabled", told.at("enabled")}, {"rules", told.at("ruleCount")}, {"waiting_for_approval", std::move(waiting)}};
}

std::string name_list(const value& list) {
  std::string text;
  for (const value& name : list.as_array()) text += (text.empty() ? "" : ", ") + std::string(name.as_string());
  return text.empty() ? "none" : text;
}

std::string daemon_lines(const object& daemon) {
  const array& problems = daemon.at("problems").as_array();
  const bool is_running = daemon.at("running").as_bool();
  std::string text = is_running ? "daemon running" : "daemon not running";
  for (const std::string_view name : {"pid", "version", "health"}) {
    if (daemon.contains(name)) text += ", " + std::string(name) + ' ' + member_text(daemon, name);
  }
  if (daemon.contains("started_by"))
    text += ", started by " + member_text(daemon, "started_by") + ", with its environment";
  if (!is_running && problems.empty()) text += "; the first call of a code or task tool starts it";
  text += '\n';
  for (const value& problem : problems) {
    text += "problem: " + member_text(problem.as_object(), "subsystem") + ": " +
            member_text(problem.as_object(), "message") + '\n';
  }
  return text;
}

std::string trust_line(bool trusted) {
  if (trusted) return "trusted: true\n";
  return "trusted: false; the project's settings do not count until a person runs 'duet-rpc trust' in the project\n";
}

std::string server_lines(const array& servers) {
  std::string text;
  for (const value& entry : servers) {
    const object& server = entry.as_object();
    text += "language server " + member_text(server, "name") + ", " + member_text(server, "state") + ", root " +
            member_text(server, "root") + (server.at("indexing").as_bool() ? ", indexing" : "") + '\n';
  }
  return text.empty() ? "no language server has been used\n" : text;
}

std::string task_line(const object& tasks) {
  if (tasks.at("counts").as_object().empty()) return "tasks: not known\n";
  std::string text = "tasks:";
  for (const auto& count : tasks.at("counts").as_object()) {
    text += ' ' + std::string(count.key()) + ' ' + rpc::to_text(count.value());
  }
  return text + '\n';
}

std::string automation_lines(const object& automation) {
  if (automation.empty()) return "automation: not known\n";
  std::string text = "automation " + std::string(automation.at("enabled").as_bool() ? "enabled" : "disabled") + ", " +
                     member_text(automation, "rules") + " rules\n";
  for (const value& entry : automation.at("waiting_for_approval").as_array()) {
    const object& firing = entry.as_object();
    text += "waits for approval: " + member_text(firing, "id") + " of rule " + member_text(firing, "rule") + " at " +
            member_text(firing, "at") + "; a person decides with 'duet-rpc automation approve " +
            member_text(firing, "id") + "'\n";
  }
  return text;
}

std::string status_text(const object& status) {
  std::string text = daemon_lines(status.at("daemon").as_object()) + trust_line(status.at("trusted").as_bool());
  if (status.contains("agents")) text += "agents: " + name_list(status.at("agents")) + '\n';
  if (status.contains("default_agent")) text += "default agent: " + member_text(status, "default_agent") + '\n';
  text += server_lines(status.at("language_servers").as_array()) + task_line(status.at("tasks").as_object()) +
          automation_lines(status.at("automation").as_object());
  for (const value& event : status.at("events").as_array()) {
    const object& told = event.as_object();
    text += "event " + member_text(told, "seq") + ' ' + member_text(told, "kind") +
            (told.contains("task_id") ? ' ' + member_text(told, "task_id") : std::string()) + '\n';
  }
  if (status.contains("next_event")) text += "next event " + member_text(status, "next_event") + '\n';
  return text + "root " + member_text(status, "root");
}

// The one that can be cut next; null: all are empty.
array* longest_list(object& status) {
  array* const events = status["events"].if_array();
  if (!events->empty()) return events;
  array* longest = events;
  for (value* const list :
       {status["daemon"].as_object().if_contains("problems"), status.if_contains("language_servers"),
        status.if_contains("agents"), status["automation"].as_object().if_contains("waiting_for_approval")}) {
    if (list != nullptr && list->as_array().size() > longest->size()) longest = list->if_array();
  }
  return longest->empty() ? nullptr : longest;
}

}  // namespace

bool is_untrusted(const value& daemon) {
  const array& problems = daemon.at("problems").as_array();
  return std::ranges::any_of(problems, [](const value& problem) { return problem.at("subsystem") == "trust"; });
}

object status_of_parts(const StatusParts& parts, std::string_view root) {
  object status{{"daemon", parts.daemon.is_object() ? daemon_part(parts.daemon)
                                                    : object{{"running", true}, {"problems", array()}}},
                {"trusted", !parts.daemon.is_object() || !is_untrusted(parts.daemon)},
                {"language_servers", servers_part(parts.servers)}};
  status["tasks"] = object{{"counts", parts.counts.is_object() ? parts.counts : value(object())}};
  status["automation"] = automation_part(parts.automation);
  status["events"] = array();
  status["root"] = root;
  return status;
}

object status_without_daemon(std::string_view root, bool is_trusted, const std::optional<ToolError>& refusal) {
  array problems;
  if (refusal) {
    problems.push_back(object{{"subsystem", "daemon"}, {"message", refusal->problem + ": " + refusal->remedy}});
  }
  object status = status_of_parts({}, root);
  status["daemon"] = object{{"running", false}, {"problems", std::move(problems)}};
  status["trusted"] = is_trusted;
  return status;
}

// Events come first: what is left of them is for the next call. Then whatever list is longest gives way.
ToolResult status_answer(object status, std::size_t max_bytes) {
  for (;;) {
    std::string text = status_text(status);
    const bool fits = text.size() <= max_bytes && rpc::to_text(status).size() <= max_bytes;
    array* const list = fits ? nullptr : longest_list(status);
    if (list == nullptr) return {.text = std::move(text), .structured = std::move(status)};
    const std::size_t left = list->size() * 3 / 4;
    if (list == status["events"].if_array()) status["next_event"] = list->at(left).at("seq");
    list->resize(left);
  }
}

}  // namespace duet::app::mcp
