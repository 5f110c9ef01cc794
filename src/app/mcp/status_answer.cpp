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

std::string shown(const object& from, std::string_view name) {
  const value* const found = from.if_contains(name);
  if (found == nullptr || found->is_null()) return {};
  return found->is_string() ? std::string(found->get_string()) : rpc::to_text(*found);
}

bool is_untrusted(const value& daemon) {
  const array& problems = daemon.at("problems").as_array();
  return std::ranges::any_of(problems, [](const value& problem) { return problem.at("subsystem") == "trust"; });
}

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
  array waiting;
  if (!told.is_object()) return {{"enabled", false}, {"rules", 0}, {"waiting_for_approval", std::move(waiting)}};
  for (const value& entry : told.at("recent").as_array()) {
    const object& firing = entry.as_object();
    const value* const would = firing.if_contains("would");
    if (would == nullptr || would->is_null() || waiting.size() == most_listed) continue;
    waiting.push_back(
        object{{"id", shown(firing, "id")}, {"rule", shown(firing, "ruleId")}, {"at", shown(firing, "at")}});
  }
  return {
      {"enabled", told.at("enabled")}, {"rules", told.at("ruleCount")}, {"waiting_for_approval", std::move(waiting)}};
}

std::string names_in(const value& list) {
  std::string text;
  for (const value& name : list.as_array()) text += (text.empty() ? "" : ", ") + std::string(name.as_string());
  return text.empty() ? "none" : text;
}

std::string daemon_lines(const object& daemon) {
  if (!daemon.at("running").as_bool()) return "daemon not running; the first call of a code or task tool starts it\n";
  std::string text = "daemon running, pid " + shown(daemon, "pid") + ", version " + shown(daemon, "version") + ", " +
                     shown(daemon, "health");
  if (daemon.contains("started_by")) text += ", started by " + shown(daemon, "started_by") + ", with its environment";
  text += '\n';
  for (const value& problem : daemon.at("problems").as_array()) {
    text += "problem: " + shown(problem.as_object(), "subsystem") + ": " + shown(problem.as_object(), "message") + '\n';
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
    text += "language server " + shown(server, "name") + ", " + shown(server, "state") + ", root " +
            shown(server, "root") + (server.at("indexing").as_bool() ? ", indexing" : "") + '\n';
  }
  return text.empty() ? "no language server has been used\n" : text;
}

std::string task_line(const object& tasks) {
  std::string text = "tasks:";
  for (const auto& count : tasks.at("counts").as_object()) {
    text += ' ' + std::string(count.key()) + ' ' + rpc::to_text(count.value());
  }
  return text + '\n';
}

std::string automation_lines(const object& automation) {
  std::string text = "automation " + std::string(automation.at("enabled").as_bool() ? "enabled" : "disabled") + ", " +
                     shown(automation, "rules") + " rules\n";
  for (const value& entry : automation.at("waiting_for_approval").as_array()) {
    const object& firing = entry.as_object();
    text += "waits for approval: " + shown(firing, "id") + " of rule " + shown(firing, "rule") + " at " +
            shown(firing, "at") + "; a person decides with 'duet-rpc automation approve " + shown(firing, "id") + "'\n";
  }
  return text;
}

std::string status_text(const object& status) {
  std::string text = daemon_lines(status.at("daemon").as_object()) + trust_line(status.at("trusted").as_bool());
  text += "agents: " + names_in(status.at("agents")) + '\n';
  if (status.contains("default_agent")) text += "default agent: " + shown(status, "default_agent") + '\n';
  text += server_lines(status.at("language_servers").as_array()) + task_line(status.at("tasks").as_object()) +
          automation_lines(status.at("automation").as_object());
  for (const value& event : status.at("events").as_array()) {
    const object& told = event.as_object();
    text += "event " + shown(told, "seq") + ' ' + shown(told, "kind") +
            (told.contains("task_id") ? ' ' + shown(told, "task_id") : std::string()) + '\n';
  }
  if (status.contains("next_event")) text += "next event " + shown(status, "next_event") + '\n';
  return text + "root " + shown(status, "root");
}

object with(object status, std::string_view name, array list) {
  status[name] = std::move(list);
  return status;
}

}  // namespace

object status_of_parts(const StatusParts& parts, std::string_view root) {
  object status{{"daemon", parts.daemon.is_object() ? daemon_part(parts.daemon)
                                                    : object{{"running", true}, {"problems", array()}}},
                {"trusted", !parts.daemon.is_object() || !is_untrusted(parts.daemon)},
                {"agents", array()},
                {"language_servers", servers_part(parts.servers)}};
  status["tasks"] = object{{"counts", parts.counts.is_object() ? parts.counts : value(object())}};
  status["automation"] = automation_part(parts.automation);
  status["events"] = array();
  status["root"] = root;
  return status;
}

object status_without_daemon(std::string_view root, bool is_trusted) {
  object status = status_of_parts({}, root);
  status["daemon"] = object{{"running", false}, {"problems", array()}};
  status["trusted"] = is_trusted;
  return status;
}

// Events are the only part that can be long; what else has no end is cut when it is made.
ToolResult status_answer(object status, std::size_t max_bytes) {
  array events = std::move(status["events"].as_array());
  for (;;) {
    status = with(std::move(status), "events", events);
    std::string text = status_text(status);
    const bool fits = text.size() <= max_bytes && rpc::to_text(status).size() <= max_bytes;
    if (fits || events.empty()) return {.text = std::move(text), .structured = std::move(status)};
    const std::size_t left = events.size() * 3 / 4;
    status["next_event"] = events[left].at("seq");
    events.resize(left);
  }
}

}  // namespace duet::app::mcp
