#include "app/mcp/refusals.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include "app/mcp/code_answers.h"
#include "app/words/number.h"
#include "duet/rpc/utf8.h"
#include "duet/rpc/value.h"

namespace duet::app::mcp {
namespace {

using boost::json::array;
using boost::json::object;
using boost::json::value;

std::vector<std::string> told_names(const object& data, std::string_view name) {
  std::vector<std::string> names;
  const value* const list = data.if_contains(name);
  if (list == nullptr || !list->is_array()) return names;
  for (const value& entry : list->get_array()) {
    if (entry.is_string()) names.emplace_back(entry.get_string());
  }
  return names;
}

std::string listed(const object& data, std::string_view name) {
  std::string text;
  for (const std::string& entry : told_names(data, name)) text += (text.empty() ? "" : ", ") + entry;
  return text;
}

// The daemon's names of parameters, as the tools have them.
std::string argument_named(const std::string& param) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 3> names{
      {{"taskId", "task_id"}, {"timeoutSeconds", "time_limit_seconds"}, {"waitSeconds", "wait_seconds"}}};
  const auto* const found =
      std::ranges::find(names, std::string_view(param), &std::pair<std::string_view, std::string_view>::first);
  return found != names.end() ? std::string(found->second) : param;
}

std::string candidates_in(const object& data, std::string_view root) {
  std::string text;
  const value* const list = data.if_contains("candidates");
  if (list == nullptr || !list->is_array()) return text;
  for (const value& entry : list->get_array()) {
    const object& candidate = entry.as_object();
    text += (text.empty() ? "" : ", ") + member_text(candidate, "path") + ' ' + member_text(candidate, "kind") + ' ' +
            shown_file(member_text(candidate, "file"), root) + ':' + member_text(candidate, "line");
  }
  return text;
}

ToolError about_symbol(const object& data, std::string_view root) {
  const std::string name = member_text(data, "received");
  if (member_text(data, "reason") == "ambiguous") {
    return {.code = "ambiguous",
            .problem = "'" + name + "' names " + member_text(data, "count") + " symbols",
            .remedy = "one of these as symbol: " + candidates_in(data, root)};
  }
  const std::string near = listed(data, "near");
  return {.code = "not-found",
          .problem = "no symbol is named '" + name + "'",
          .remedy = near.empty() ? "code_symbols with a part of the name as query" : "one of these: " + near};
}

ToolError about_key(const object& data) {
  std::string differs;
  for (const std::string& param : told_names(data, "differs")) {
    differs += (differs.empty() ? "" : ", ") + argument_named(param);
  }
  return bad_argument("'key' belongs to " + member_text(data, "taskId") + " already" +
                          (differs.empty() ? "" : ", where another is " + differs),
                      "another key, or task_get " + member_text(data, "taskId"));
}

ToolError about_param(const object& data) {
  const std::string param = argument_named(member_text(data, "param"));
  if (param == "file" && member_text(data, "expected") == "a file that can be read") {
    return {.code = "not-found", .problem = "the file cannot be read", .remedy = "a path from the project's root"};
  }
  if (param == "agent") {
    return {.code = "agent-not-offered",
            .problem = "there is no agent '" + member_text(data, "received") + "'",
            .remedy = "one of " + listed(data, "accepted")};
  }
  if (param.empty()) return bad_argument("an argument is not accepted", "other arguments");
  const std::string accepted = listed(data, "accepted");
  constexpr std::array<std::string_view, 4> types = {"string", "number", "array", "object"};
  const std::string received = member_text(data, "received");
  const bool is_type = std::ranges::find(types, std::string_view(received)) != types.end();  // which was right
  return bad_argument("'" + param + "' is " + (is_type ? "not accepted" : received),
                      "give " + member_text(data, "expected") + (accepted.empty() ? "" : ": " + accepted));
}

ToolError invalid_params(const object& data, std::string_view root) {
  const std::string param = member_text(data, "param");
  if (param == "symbol" && data.contains("reason")) return about_symbol(data, root);
  if (param == "key" && data.contains("taskId")) return about_key(data);
  return about_param(data);
}

std::string last_lines(const std::string& text) {
  constexpr std::size_t most = 600;
  std::string end(rpc::last_bytes(text, most));
  while (end.ends_with('\n')) end.pop_back();
  return end;
}

ToolError server_failed(const rpc::Error& error, const object& data) {
  if (member_text(data, "cause") == "timeout") {
    return {.code = "timeout", .problem = error.message(), .remedy = "the same call again, it may be warm by then"};
  }
  const std::string said = last_lines(member_text(data, "stderr"));
  return {
      .code = "server-failed",
      .problem = error.message() + " (" + member_text(data, "cause") + ")" + (said.empty() ? "" : "; it said: " + said),
      .remedy = "the same call again in a moment; if it fails again, tell the user what the server said"};
}

ToolError missing(const rpc::Error& error, const object& data) {
  const std::string reason = member_text(data, "reason");
  const std::string subsystem = member_text(data, "subsystem");
  if (reason == "too-deep") {
    return {.code = "too-deep",
            .problem = "tasks that submit tasks have come to their limit of 5",
            .remedy = "do the work in this task"};
  }
  if (data.contains("cause")) {
    const std::string server = member_text(data, "server");
    if (error.message().find("give a file") != std::string::npos) {
      return {.code = "no-server",
              .problem = error.message(),
              .remedy = server.empty() ? "code_symbols with a file of that language, which starts its server; then the "
                                         "same call again"
                                       : "the same call with the file to look in as 'file', or code_symbols with a "
                                         "file of another language; else search the text"};
    }
    const std::string which = server.empty() ? "a language server for this kind of file" : server;
    return {.code = "no-server",
            .problem = error.message(),
            .remedy = "ask the user to install " + which + ", or to set its command in [lsp." +
                      (server.empty() ? "NAME" : server) + "] of the settings; else search the text"};
  }
  if (reason == "untrusted") {
    return {.code = "agent-not-offered",
            .problem = error.message(),
            .remedy = "ask the user, a person, to run 'duet-rpc trust' in the project"};
  }
  if (subsystem == "agents") {
    return {.code = "agent-not-offered", .problem = error.message(), .remedy = "an agent of project_status"};
  }
  if (subsystem == "store") {
    return {.code = "store", .problem = error.message(), .remedy = "ask the user to look at the disk"};
  }
  if (error.message().find("stopping") != std::string::npos) {
    return {.code = "daemon-stopped",
            .problem = "the daemon is stopping",
            .remedy = "ask the user to run 'duet-rpc daemon start'"};
  }
  return {.code = "internal", .problem = error.message(), .remedy = "project_status for what is wrong"};
}

}  // namespace

ToolError tool_error_of(const rpc::Error& error, std::string_view root) {
  const value parsed = error.data().empty() ? value(object()) : rpc::parse_value(error.data());
  const object data = parsed.is_object() ? parsed.get_object() : object();
  switch (error.code()) {
    case daemon_code::unknown_task:
      return {.code = "not-found",
              .problem = "there is no task " + member_text(data, "taskId"),
              .remedy = "task_list shows which there are"};
    case daemon_code::wrong_state:
      return bad_argument(error.message(), "task_get for the task's state");
    case daemon_code::queue_full:
      return {.code = "queue-full",
              .problem = member_text(data, "capacity") + " tasks are queued already",
              .remedy = "wait with task_get, or cancel with task_cancel what is not needed"};
    case daemon_code::missing:
      return missing(error, data);
    case daemon_code::server_failed:
      return server_failed(error, data);
    case daemon_code::content_modified:
      return {.code = "server-failed",
              .problem = "the file changes faster than the server reads it",
              .remedy = "the same call when it is at rest"};
    case rpc::code::invalid_params:
      return invalid_params(data, root);
    case rpc::code::method_not_found:
      return {.code = "internal",
              .problem = "the daemon is of another version",
              .remedy = "ask the user to run 'duet-rpc daemon restart'"};
    default:
      return {
          .code = "internal", .problem = "the daemon could not do it", .remedy = "project_status for what is wrong"};
  }
}

}  // namespace duet::app::mcp
