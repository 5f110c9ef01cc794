#include <unistd.h>

#include <string>
#include <vector>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "app/client/daemon_client.h"
#include "app/client/daemon_stop.h"
#include "app/commands/commands.h"
#include "app/project/failure.h"
#include "app/project/last_end.h"
#include "app/project/state_owner.h"
#include "app/view/display_text.h"
#include "app/view/text_style.h"
#include "app/words/duration.h"
#include "duet/rpc/value.h"

namespace duet::app {
namespace {

using boost::json::object;
using boost::json::value;

const object& section(const object& fields, std::string_view name) {
  static const object none;
  const value* const found = fields.if_contains(name);
  return found != nullptr && found->is_object() ? found->get_object() : none;
}

std::string shown(const object& fields, std::string_view name) {
  const value* const found = fields.if_contains(name);
  if (found == nullptr) return "?";
  return one_line(found->is_string() ? std::string(found->as_string()) : rpc::to_text(*found));
}

std::string uptime(const object& status) {
  const value* const seconds = status.if_contains("uptime_seconds");
  if (seconds == nullptr || !seconds->is_number()) return "?";
  const std::chrono::seconds up(seconds->to_number<std::int64_t>());
  return up.count() == 0 ? "less than a second" : readable_duration(up);
}

std::string page(const object& status, const std::string& waits_for, const TextStyle& style) {
  const object& subsystems = section(status, "subsystems");
  std::string text;
  const auto row = [&](std::string_view name, const std::string& content) {
    text += style.name(name) + std::string(12 - name.size(), ' ') + content + '\n';
  };
  const bool stops = status.contains("stopping");
  row("daemon", (stops ? style.fault("stopping") : "running") + ", pid " + shown(status, "pid") + ", version " +
                    shown(status, "version"));
  if (!waits_for.empty()) row("waits for", waits_for);
  row("up", uptime(status) + ", since " + shown(status, "started_at"));
  if (status.contains("startedBy")) row("started by", shown(status, "startedBy"));
  row("health", shown(status, "health"));
  row("clients", shown(section(subsystems, "ipc"), "clients"));
  if (const object& http = section(subsystems, "http"); !http.empty()) row("http", shown(http, "url"));
  if (const object& tls = section(subsystems, "tls"); !tls.empty())
    row("tls", shown(tls, "address") + ", certificate until " + shown(tls, "expiresAt"));
  if (const object& supervisor = section(subsystems, "supervisor"); !supervisor.empty()) {
    row("tasks", shown(supervisor, "running") + " running, " + shown(supervisor, "queued") + " queued, at most " +
                     shown(supervisor, "maxRunning") + " at once");
  }
  if (const object& automation = section(subsystems, "automation"); !automation.empty()) {
    const bool enabled = shown(automation, "enabled") == "true";
    const std::string rules = shown(automation, "ruleCount");
    row("automation", (enabled ? "on, " : "off, ") + rules + (rules == "1" ? " rule" : " rules"));
  }
  if (const object& last = section(status, "last_end"); !last.empty()) {
    const std::string at = last.contains("at") ? " at " + shown(last, "at") : "";
    row("before", "the last one, pid " + shown(last, "pid") + ", " + shown(last, "how") + at);
  }
  const value* const problems = status.if_contains("problems");
  if (problems == nullptr || !problems->is_array()) return text;
  for (const value& problem : problems->get_array()) {
    const object& fields = problem.as_object();
    text += style.fault("problem") + "     " + shown(fields, "subsystem") + ": " + shown(fields, "message") + '\n';
  }
  return text;
}

std::string ask(DaemonClient& daemon) {
  try {
    return daemon.call_raw("daemon.status");
  } catch (const Failure& failure) {
    if (failure.code() != exit_code::no_daemon || daemon.folder() == nullptr) throw;
    if (why_not_our_state(*daemon.project(), *daemon.folder())) throw;  // they would be the words of somebody else
    const std::optional<LastEnd> last = read_last_end(*daemon.folder());
    if (!last) throw;
    throw Failure(std::string(failure.what()) + "; " + to_text(*last) + ", 'duet-rpc daemon logs' may tell more",
                  exit_code::no_daemon);
  }
}

}  // namespace

int run_daemon_status(const CommandLine& line) {
  DaemonClient daemon(line);
  daemon.leave_settings_to_me();  // they are among the problems
  const std::string result = ask(daemon);
  if (line.flag("json")) return print_text(result + '\n');
  const value status = rpc::parse_value(result);
  const std::string waits_for =
      status.as_object().contains("stopping") ? in_words(running_tasks(daemon)) : std::string();
  return print_text(page(status.as_object(), waits_for, TextStyle(colour_wanted(STDOUT_FILENO, line.no_color))));
}

}  // namespace duet::app
