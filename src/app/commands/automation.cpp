#include <unistd.h>

#include <string>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "app/client/daemon_client.h"
#include "app/commands/commands.h"
#include "app/view/table.h"
#include "app/view/task_view.h"
#include "duet/rpc/value.h"

namespace duet::app {
namespace {

using boost::json::array;
using boost::json::object;

const array& list_in(const object& fields, std::string_view name) {
  static const array none;
  const boost::json::value* const found = fields.if_contains(name);
  return found != nullptr && found->is_array() ? found->get_array() : none;
}

// What the rule waits for, in a few words.
std::string trigger_of(const object& rule) {
  std::string out;
  for (const std::string_view name : {"type", "pattern", "cron"}) {
    const std::string text = member_text(rule, name);
    if (!text.empty()) out += (out.empty() ? "" : " ") + text;
  }
  return out.empty() ? member_text(rule, "source") : out;
}

Table rule_table(const array& rules, base::UtcTime now) {
  Table table({"RULE", "STATE", "LAST", "NEXT", "TRIGGER"});
  for (const boost::json::value& entry : rules) {
    const object& rule = entry.as_object();
    const bool on = member_text(rule, "enabled") == "true";
    const std::string next = member_text(rule, "nextAt");
    const std::string last = member_text(rule, "lastFiredAt");
    table.add({{member_text(rule, "id")},
               {on ? "on" : "off", on ? Table::Paint::good : Table::Paint::faint},
               {last.empty() ? "" : relative_time(last, now)},
               {next.empty() ? "" : relative_time(next, now)},
               {trigger_of(rule)}});
  }
  return table;
}

Table firing_table(const array& firings, base::UtcTime now) {
  Table table({"ID", "WHEN", "RULE", "OUTCOME", "COUNT", "TASK", "REASON"});
  for (const boost::json::value& entry : firings) {
    const object& firing = entry.as_object();
    const std::string outcome = member_text(firing, "outcome");
    table.add({{member_text(firing, "id")},
               {relative_time(member_text(firing, "at"), now)},
               {member_text(firing, "ruleId")},
               {outcome, outcome == "fired" ? Table::Paint::good : Table::Paint::none},
               {member_text(firing, "count")},
               {member_text(firing, "taskId")},
               {member_text(firing, "reason")}});
  }
  return table;
}

std::string page_of(const object& status, const TextStyle& style) {
  const base::UtcTime now = base::system_clock().utc();
  const auto width = terminal_width(STDOUT_FILENO);
  const array& rules = list_in(status, "rules");
  const array& recent = list_in(status, "recent");
  const bool on = member_text(status, "enabled") == "true";
  std::string out = std::string("automation is ") + (on ? "on" : "off") + ", with " + std::to_string(rules.size()) +
                    (rules.size() == 1 ? " rule\n" : " rules\n");
  for (const boost::json::value& problem : list_in(status, "problems")) {
    out += style.fault("problem:") + " " +
           (problem.is_string() ? std::string(problem.get_string()) : rpc::to_text(problem)) + '\n';
  }
  if (!rules.empty()) out += '\n' + rule_table(rules, now).text(style, width);
  if (!recent.empty()) out += '\n' + firing_table(recent, now).text(style, width);
  return out;
}

int switch_automation(const CommandLine& line, const char* method, const char* state) {
  object params;
  if (!line.arguments.empty()) params["ruleId"] = line.arguments.front();
  DaemonClient daemon(line);
  const std::string result = daemon.call_raw(method, rpc::to_text(params));
  if (line.flag("json")) return print_text(result + '\n');
  const std::string what = line.arguments.empty() ? "automation" : "rule " + line.arguments.front();
  return print_text(what + " is " + state + '\n');
}

}  // namespace

int run_automation_status(const CommandLine& line) {
  DaemonClient daemon(line);
  const std::string result = daemon.call_raw("automation.status");
  if (line.flag("json")) return print_text(result + '\n');
  const boost::json::value status = rpc::parse_value(result);
  return print_text(page_of(status.as_object(), TextStyle(colour_wanted(STDOUT_FILENO, line.no_color))));
}

int run_automation_enable(const CommandLine& line) { return switch_automation(line, "automation.enable", "on"); }
int run_automation_disable(const CommandLine& line) { return switch_automation(line, "automation.disable", "off"); }

int run_automation_approve(const CommandLine& line) {
  DaemonClient daemon(line);
  const std::string result =
      daemon.call_raw("automation.approve", rpc::to_text(object{{"id", line.arguments.front()}}));
  return print_text(line.flag("json") ? result + '\n' : line.arguments.front() + " approved\n");
}

}  // namespace duet::app
