#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "app/client/daemon_client.h"
#include "app/commands/commands.h"
#include "app/project/failure.h"
#include "app/project/project.h"
#include "app/view/display_text.h"
#include "app/view/table.h"
#include "app/view/task_view.h"
#include "app/words/number.h"
#include "duet/rpc/json_text.h"
#include "duet/rpc/value.h"

namespace duet::app {
namespace {

using boost::json::array;
using boost::json::object;

// A file of the command line, from the project's root: it is meant from where its user stands, if that is in the
// project.
std::string path_in_project(const DaemonClient& daemon, const std::string& path) {
  namespace fs = std::filesystem;
  if (daemon.project() == nullptr) return path;  // of a project that only its daemon knows
  const fs::path root = daemon.project()->root;
  const fs::path here = working_directory();
  const fs::path from_root = here.lexically_relative(root);
  const bool is_outside = from_root.empty() || *from_root.begin() == "..";
  const fs::path file = ((is_outside ? root : here) / path).lexically_normal().lexically_relative(root);
  if (file.empty() || *file.begin() == "..") throw Failure(one_line(path) + " is not in the project " + root.string());
  return file.string();
}

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
  Table table({"ID", "WHEN", "RULE", "OUTCOME", "COUNT", "TASK", "CAUSE", "REASON"});
  for (const boost::json::value& entry : firings) {
    const object& firing = entry.as_object();
    const std::string outcome = member_text(firing, "outcome");
    table.add({{member_text(firing, "id")},
               {relative_time(member_text(firing, "at"), now)},
               {member_text(firing, "ruleId")},
               {outcome, outcome == "fired" ? Table::Paint::good : Table::Paint::none},
               {member_text(firing, "count")},
               {member_text(firing, "taskId")},
               {one_line(member_text(firing, "cause"))},
               {member_text(firing, "reason")}});
  }
  return table;
}

// In quotes where it would not be seen as one word.
std::string command_word(std::string_view word) {
  const bool plain = !word.empty() && word.find_first_of(" \t\n\r\"\\") == std::string_view::npos;
  return one_line(plain ? std::string(word) : rpc::quoted(word));
}

// Line ends stay, since they decide what a shell does; further lines stand further in.
std::string prompt_text(std::string_view prompt) {
  std::string out;
  for (const char c : harmless_lines(prompt)) out += c == '\n' ? std::string("\n      ") : std::string(1, c);
  return out;
}

std::string work_text(const object& would) {
  const std::string action = member_text(would, "action");
  if (action == "notify") return "tell: " + one_line(member_text(would, "message"));
  if (action == "agent") {
    return "ask " + one_line(member_text(would, "agent")) + ": " + prompt_text(member_text(would, "prompt"));
  }
  std::string out = "run";
  for (const boost::json::value& word : list_in(would, "command")) {
    if (word.is_string()) out += " " + command_word(word.get_string());
  }
  return out;
}

// What waits for somebody to decide, with what it would do and why.
std::string approvals_in(const array& firings) {
  std::string out;
  for (const boost::json::value& entry : firings) {
    const object& firing = entry.as_object();
    const boost::json::value* const would = firing.if_contains("would");
    if (would == nullptr || !would->is_object() || member_text(firing, "reason") != "approval") continue;
    const std::string id = member_text(firing, "id");
    out.append("\n").append(id).append(" waits for approval (").append(one_line(member_text(firing, "ruleId")));
    out.append(", ");
    out.append(one_line(member_text(firing, "cause"))).append(")\n  it would ").append(work_text(would->get_object()));
    out.append("\n  duet-rpc automation approve ").append(id).append(", or duet-rpc automation deny ").append(id);
    out += '\n';
  }
  return out;
}

std::string test_page(const object& result, const TextStyle& style) {
  const bool fires = member_text(result, "fires") == "true";
  std::string out =
      "rule " + one_line(member_text(result, "ruleId")) + (fires ? " would fire" : " would not fire") + "\n";
  for (const boost::json::value& entry : list_in(result, "conditions")) {
    const object& condition = entry.as_object();
    const bool holds = member_text(condition, "holds") == "true";
    out += "  " + (holds ? std::string("yes") : style.fault("no ")) + "  " + one_line(member_text(condition, "asks")) +
           "\n";
  }
  const std::string hindrance = member_text(result, "hindrance");
  if (!hindrance.empty()) out += "  " + style.fault("no ") + "  " + one_line(hindrance) + "\n";
  if (const boost::json::value* would = result.if_contains("would"); would != nullptr && would->is_object()) {
    const bool asks = member_text(result, "requiresApproval") == "true";
    out +=
        std::string("it would ") + (asks ? "wait for approval, and then " : "") + work_text(would->get_object()) + "\n";
  }
  const std::string next = member_text(result, "nextAt");
  return next.empty() ? out : out + "its next time is " + next + "\n";
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
           one_line(problem.is_string() ? std::string(problem.get_string()) : rpc::to_text(problem)) + '\n';
  }
  if (!rules.empty()) out += '\n' + rule_table(rules, now).text(style, width);
  if (!recent.empty()) out += '\n' + firing_table(recent, now).text(style, width);
  return out + approvals_in(recent);
}

// A rule that is not known may be one of a file that is not trusted.
std::string ask_about_rule(DaemonClient& daemon, const char* method, const object& params) {
  const peer::Outcome outcome = daemon.ask(method, rpc::to_text(params), daemon.patience());
  if (outcome.cause == peer::Outcome::Cause::answered) return outcome.result;
  const Failure failure = DaemonClient::failure_of(method, outcome);
  const bool is_unknown = outcome.error && outcome.error->code() == rpc::code::invalid_params;
  const std::string note = is_unknown ? untrusted_note(daemon) : std::string();
  if (note.empty()) throw failure;
  throw Failure(std::string(failure.what()) + "; " + note, failure.code());
}

int switch_automation(const CommandLine& line, const char* method, const char* state) {
  object params;
  if (!line.arguments.empty()) params["ruleId"] = line.arguments.front();
  DaemonClient daemon(line);
  const std::string result = ask_about_rule(daemon, method, params);
  if (line.flag("json")) return print_text(result + '\n');
  const std::string what = line.arguments.empty() ? "automation" : "rule " + line.arguments.front();
  return print_text(what + " is " + state + '\n');
}

array recent_firings(DaemonClient& daemon) { return list_in(daemon.call("automation.status").as_object(), "recent"); }

// `7` is firing-7, and a rule stands for all of its firings that wait, the first one first.
std::vector<std::string> firings_meant(DaemonClient& daemon, const std::string& word) {
  if (parse_number(word)) return {"firing-" + word};
  if (word.starts_with("firing-")) return {word};
  std::vector<std::string> ids;
  for (const boost::json::value& entry : recent_firings(daemon)) {
    const object& firing = entry.as_object();
    const bool waits = member_text(firing, "reason") == "approval" && member_text(firing, "ruleId") == word;
    if (waits) ids.insert(ids.begin(), member_text(firing, "id"));
  }
  if (ids.empty()) throw Failure("nothing waits for approval under the name '" + one_line(word) + "'");
  return ids;
}

// `: task-15`, what was let go.
std::string task_let_go(DaemonClient& daemon, const std::string& id) {
  for (const boost::json::value& entry : recent_firings(daemon)) {
    if (member_text(entry.as_object(), "id") != id) continue;
    const std::string task = member_text(entry.as_object(), "taskId");
    return task.empty() ? "" : ": " + task;
  }
  return {};
}

// Each is told by itself: one that is refused does not hide those before it.
int decide_firings(const CommandLine& line, const char* method, const std::string& done) {
  DaemonClient daemon(line);
  for (const std::string& word : line.arguments) {
    for (const std::string& id : firings_meant(daemon, word)) {
      const std::string result = daemon.call_raw(method, rpc::to_text(object{{"id", id}}));
      const int printed = print_text((line.flag("json") ? result : id + done + task_let_go(daemon, id)) + '\n');
      if (printed != 0) return printed;
    }
  }
  return 0;
}

}  // namespace

int run_automation_status(const CommandLine& line) {
  DaemonClient daemon(line);
  const std::string result = daemon.call_raw("automation.status");
  if (line.flag("json")) return print_text(result + '\n');
  const boost::json::value status = rpc::parse_value(result);
  tell_untrusted(daemon);
  return print_text(page_of(status.as_object(), TextStyle(colour_wanted(STDOUT_FILENO, line.no_color))));
}

int run_automation_enable(const CommandLine& line) { return switch_automation(line, "automation.enable", "on"); }
int run_automation_disable(const CommandLine& line) { return switch_automation(line, "automation.disable", "off"); }

int run_automation_approve(const CommandLine& line) { return decide_firings(line, "automation.approve", " approved"); }
int run_automation_deny(const CommandLine& line) { return decide_firings(line, "automation.deny", " denied"); }

int run_automation_test(const CommandLine& line) {
  DaemonClient daemon(line);
  object params{{"ruleId", line.arguments.front()}};
  if (const auto path = line.text("path")) params["path"] = path_in_project(daemon, *path);
  if (const auto task = line.text("task")) params["taskId"] = *task;
  if (const auto time = line.text("time")) params["time"] = *time;
  const std::string text = ask_about_rule(daemon, "automation.test", params);
  const boost::json::value result = rpc::parse_value(text);
  const TextStyle style(colour_wanted(STDOUT_FILENO, line.no_color));
  const int printed = print_text(line.flag("json") ? text + '\n' : test_page(result.as_object(), style));
  return printed != 0 || member_text(result.as_object(), "fires") == "true" ? printed : 1;
}

int run_automation_fire(const CommandLine& line) {
  DaemonClient daemon(line);
  object params{{"ruleId", line.arguments.front()}};
  if (const auto path = line.text("path")) params["path"] = path_in_project(daemon, *path);
  const std::string text = ask_about_rule(daemon, "automation.fire", params);
  const boost::json::value parsed = rpc::parse_value(text);
  const object& result = parsed.as_object();
  const bool fired = member_text(result, "outcome") == "fired";
  const std::string task = member_text(result, "taskId");
  const std::string id = member_text(result, "id");
  const std::string reason = member_text(result, "reason");
  std::string what = fired ? " fired" + (task.empty() ? "" : ": " + task) : " was held back: " + one_line(reason);
  if (reason == "approval") what = " waits for '" + std::string(line.program) + " automation approve " + id + "'";
  const int printed = print_text(line.flag("json") ? text + '\n' : id + what + '\n');
  return printed != 0 || fired ? printed : 1;
}

int run_automation_history(const CommandLine& line) {
  DaemonClient daemon(line);
  const std::string text = ask_about_rule(daemon, "automation.history", {{"ruleId", line.arguments.front()}});
  if (line.flag("json")) return print_text(text + '\n');
  const boost::json::value result = rpc::parse_value(text);
  const array& firings = list_in(result.as_object(), "firings");
  if (firings.empty()) return print_text("rule " + line.arguments.front() + " has not fired\n");
  const TextStyle style(colour_wanted(STDOUT_FILENO, line.no_color));
  return print_text(firing_table(firings, base::system_clock().utc()).text(style, terminal_width(STDOUT_FILENO)));
}

}  // namespace duet::app
