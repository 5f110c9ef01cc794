#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "app/client/daemon_client.h"
#include "app/commands/commands.h"
#include "app/view/display_text.h"
#include "app/view/local_time.h"
#include "app/view/table.h"
#include "app/view/task_view.h"
#include "duet/rpc/value.h"

namespace duet::app {
namespace {

using boost::json::array;
using boost::json::object;

bool is_true(const object& fields, std::string_view name) { return member_text(fields, name) == "true"; }

std::string group_params(const CommandLine& line) {
  object params;
  if (!line.arguments.empty()) params["group"] = line.arguments.front();
  return rpc::to_text(params);
}

std::string queue_name(const CommandLine& line) {
  return line.arguments.empty() ? "the queue" : "group " + line.arguments.front();
}

// `2`, or `2 of 3` where there is a limit.
std::string running_of(const object& fields) {
  const std::string most = member_text(fields, "maxRunning");
  return member_text(fields, "running") + (most.empty() ? "" : " of " + most);
}

Table group_table(const array& groups) {
  Table table({"GROUP", "STATE", "RUNNING", "QUEUED"});
  for (const boost::json::value& entry : groups) {
    const object& group = entry.as_object();
    const bool paused = is_true(group, "paused");
    table.add({{member_text(group, "name")},
               {paused ? "paused" : "open", paused ? Table::Paint::fault : Table::Paint::good},
               {running_of(group)},
               {member_text(group, "queued")}});
  }
  return table;
}

std::string queue_page(const object& status, const array& groups, const TextStyle& style) {
  const base::UtcTime now = base::system_clock().utc();
  const std::string state = is_true(status, "stopping") ? style.fault("stopping")
                            : is_true(status, "paused") ? style.fault("paused")
                                                        : style.good("open");
  std::string out =
      "the queue is " + state + ": " + running_of(status) + " running, " + member_text(status, "queued") + " queued\n";
  for (const boost::json::value& entry : status.at("heldAgents").as_array()) {
    const object& held = entry.as_object();
    out += "agent " + one_line(member_text(held, "agent")) + " is held until " +
           with_local_times(member_text(held, "until"), now) + '\n';
  }
  return out + '\n' + group_table(groups).text(style, terminal_width(STDOUT_FILENO));
}

// All of them, or the one that the command line names.
array groups_wanted(const object& status, const CommandLine& line) {
  const array& all = status.at("groups").as_array();
  if (line.arguments.empty()) return all;
  array out;
  std::string names;
  for (const boost::json::value& group : all) {
    const std::string name = member_text(group.as_object(), "name");
    names += (names.empty() ? "" : ", ") + name;
    if (name == line.arguments.front()) out.push_back(group);
  }
  if (out.empty()) throw Failure("there is no group '" + line.arguments.front() + "'; there are " + names);
  return out;
}

Table agent_table(const array& agents) {
  const base::UtcTime now = base::system_clock().utc();
  Table table({"AGENT", "STATE", "RUNNING", "QUEUED", "GROUP", "PROGRAM"});
  for (const boost::json::value& entry : agents) {
    const object& agent = entry.as_object();
    const std::string until = member_text(agent, "heldUntil");
    const std::string usual = is_true(agent, "isDefault") ? "default" : "";
    const bool is_missing = member_text(agent, "available") == "false";
    const Table::Cell state =
        is_missing ? Table::Cell{"not found", Table::Paint::fault} : Table::Cell{usual, Table::Paint::good};
    table.add({{member_text(agent, "name")},
               until.empty() ? state : Table::Cell{"held until " + with_local_times(until, now), Table::Paint::fault},
               {running_of(agent)},
               {member_text(agent, "queued")},
               {member_text(agent, "group")},
               {member_text(agent, "program")}});
  }
  return table;
}

}  // namespace

int run_queue_pause(const CommandLine& line) {
  DaemonClient daemon(line);
  const std::string answer = daemon.call_raw("queue.pause", group_params(line));
  if (line.flag("json")) return print_text(answer + '\n');
  const bool changed = is_true(rpc::parse_value(answer).as_object(), "changed");
  return print_text(queue_name(line) +
                    (changed ? " is paused: what runs goes on, nothing new starts\n" : " is paused already\n"));
}

int run_queue_resume(const CommandLine& line) {
  DaemonClient daemon(line);
  const std::string answer = daemon.call_raw("queue.resume", group_params(line));
  if (line.flag("json")) return print_text(answer + '\n');
  const object result = rpc::parse_value(answer).as_object();
  std::string out = queue_name(line) + (is_true(result, "changed") ? " is open again\n" : " was not paused\n");
  const boost::json::value* const paused = result.if_contains("pausedGroups");
  if (line.arguments.empty() && paused != nullptr && paused->is_array()) {
    for (const boost::json::value& group : paused->get_array()) {
      if (group.is_string()) out += "group " + one_line(group.get_string()) + " is still paused\n";
    }
  }
  return print_text(out);
}

int run_queue_status(const CommandLine& line) {
  DaemonClient daemon(line);
  const std::string answer = daemon.call_raw("queue.status");
  const object status = rpc::parse_value(answer).as_object();
  const array groups = groups_wanted(status, line);
  if (line.flag("json")) return print_text(answer + '\n');
  tell_untrusted(daemon);
  const TextStyle style(colour_wanted(STDOUT_FILENO, line.no_color));
  return print_text(queue_page(status, groups, style));
}

int run_agent_list(const CommandLine& line) {
  DaemonClient daemon(line);
  const std::string answer = daemon.call_raw("agent.list");
  if (line.flag("json")) return print_text(answer + '\n');
  tell_untrusted(daemon);
  const TextStyle style(colour_wanted(STDOUT_FILENO, line.no_color));
  return print_text(
      agent_table(rpc::parse_value(answer).at("agents").as_array()).text(style, terminal_width(STDOUT_FILENO)));
}

int run_agent_release(const CommandLine& line) {
  DaemonClient daemon(line);
  const std::string& name = line.arguments.front();
  const std::string answer = daemon.call_raw("agent.release", rpc::to_text(object{{"name", name}}));
  if (line.flag("json")) return print_text(answer + '\n');
  const bool released = is_true(rpc::parse_value(answer).as_object(), "released");
  return print_text("agent " + name + (released ? " is released\n" : " was not held\n"));
}

}  // namespace duet::app
