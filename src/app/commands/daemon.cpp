#include <chrono>
#include <cstdlib>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value_from.hpp>

#include "app/client/daemon_client.h"
#include "app/client/daemon_stop.h"
#include "app/client/far_place.h"
#include "app/commands/cluster_place.h"
#include "app/commands/commands.h"
#include "app/daemon/serve.h"
#include "app/project/failure.h"
#include "app/settings/settings.h"
#include "app/view/text_style.h"
#include "duet/rpc/value.h"
#include "task/store_folder.h"

namespace duet::app {
namespace {

using boost::json::object;
using boost::json::value;

int tell(const CommandLine& line, const object& result, const std::string& text) {
  return print_text((line.flag("json") ? rpc::to_text(result) : text) + '\n');
}

pid_t start_daemon(const CommandLine& line) {
  const pid_t pid = start_detached(line);
  DaemonClient daemon(line);
  tell_untrusted(daemon);
  return pid;
}

// Of the one that is there already. One that stops takes no work any more: its end is waited for.
std::optional<pid_t> running_pid(const CommandLine& line) {
  try {
    DaemonClient daemon(line);
    const value status = daemon.call("daemon.status");
    const pid_t pid = status.at("pid").to_number<pid_t>();
    if (!status.as_object().contains("stopping")) return pid;
    wait_until_stopped(daemon, pid, daemon.patience());
    return std::nullopt;
  } catch (const Failure& failure) {
    if (failure.code() != exit_code::no_daemon) throw;
    return std::nullopt;
  }
}

int tell_running(const CommandLine& line, pid_t pid) {
  return tell(line, {{"started", false}, {"pid", pid}}, "already running, pid " + std::to_string(pid));
}

object stop_params(const CommandLine& line) {
  object params{{"force", line.flag("force")}, {"leaveTasks", line.flag("leave-tasks")}};
  if (!line.flag("drain")) return params;
  params["drain"] = true;
  if (const auto limit = line.duration("timeout")) {
    params["timeoutSeconds"] = std::chrono::duration<double>(*limit).count();
  }
  return params;
}

// Tasks that a drain did not wait for have to be ended, which takes some seconds more.
base::Duration stop_patience(const CommandLine& line, const DaemonClient& daemon) {
  constexpr std::chrono::seconds until_ended{15};
  if (!line.flag("drain")) return daemon.patience();
  return line.duration("timeout") ? daemon.patience() + until_ended : base::Duration::max();
}

// Another daemon than `before`, which was asked to go on anew in its process; none as long as it has not.
std::optional<pid_t> successor_of(const value& before, const CommandLine& line) {
  try {
    const value now = DaemonClient(line).call("daemon.status");
    if (now.at("started_at") != before.at("started_at")) return now.at("pid").to_number<pid_t>();
  } catch (const Failure& failure) {
    if (failure.code() != exit_code::no_daemon) throw;
  }
  return std::nullopt;
}

// The one that runs goes on as this program, which it refuses if the settings are wrong.
pid_t restart_in_place(DaemonClient& daemon, const value& before, const CommandLine& line) {
  daemon.call("daemon.stop", {{"restart", true}});
  daemon.client().disconnect();
  const auto deadline = std::chrono::steady_clock::now() + daemon.patience();
  while (std::chrono::steady_clock::now() < deadline) {
    if (const std::optional<pid_t> pid = successor_of(before, line)) return *pid;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  throw Failure("the daemon did not come back in time: see 'duet-rpc daemon logs'", exit_code::no_answer);
}

// A daemon of an older version says nothing of it.
bool has_tls_door(const value& status) {
  const value* const tls = status.at("subsystems").as_object().if_contains("tls");
  return tls != nullptr && !tls->is_null();
}

// A task would have the daemon end with it, or inherit its context; a service manager would lose it.
bool stays_in_its_process(const value& status) {
  return std::getenv("DUET_TASK_ID") != nullptr || status.as_object().contains("managed");
}

// A next daemon that shares a queue would refuse to start for the same reasons.
void check_next_queue(const CommandLine& line, const value& status) {
  const Project project = find_project(line.text("project"));
  const auto read = read_settings(project, settings_places());
  const Settings* const settings = std::get_if<Settings>(&read);
  if (settings == nullptr || !settings->cluster.store) return;
  const object& tasks = status.at("subsystems").at("supervisor").as_object();
  const std::int64_t unfinished =
      tasks.at("running").to_number<std::int64_t>() + tasks.at("queued").to_number<std::int64_t>();
  if (!status.as_object().contains("worker") && unfinished > 0) throw Failure(task::unfinished_text(unfinished));
  check_queue(line, settings->cluster);
}

}  // namespace

int run_daemon_start(const CommandLine& line) {
  base::Fd ready = take_ready_pipe();
  far_place(line);  // refuses what leads to another machine
  const bool may_run = line.flag("if-needed");
  if (const std::optional<pid_t> pid = may_run ? running_pid(line) : std::nullopt) return tell_running(line, *pid);
  if (line.flag("foreground")) return serve_project(line, std::move(ready));
  try {
    const pid_t pid = start_daemon(line);
    return tell(line, {{"started", true}, {"pid", pid}}, "started, pid " + std::to_string(pid));
  } catch (const Failure&) {
    const std::optional<pid_t> pid = may_run ? running_pid(line) : std::nullopt;
    if (!pid) throw;
    return tell_running(line, *pid);  // another command was quicker
  }
}

int run_daemon_reload(const CommandLine& line) {
  DaemonClient daemon(line);
  daemon.leave_settings_to_me();
  const std::string result = daemon.call_raw("daemon.reload");
  if (line.flag("json")) return print_text(result + '\n');
  const value read = rpc::parse_value(result);
  std::string text;
  for (const std::string_view how : {"added", "removed", "changed"}) {
    for (const value& name : read.at(how).as_array()) {
      text += std::string(how) + std::string(9 - how.size(), ' ') + std::string(name.as_string()) + '\n';
    }
  }
  if (const value* const note = read.as_object().if_contains("note")) daemon.tell_user(std::string(note->as_string()));
  return print_text(text.empty() ? "no setting has changed\n" : text);
}

int run_daemon_stop(const CommandLine& line) {
  const bool leaves = line.flag("leave-tasks");
  if (line.flag("force") + leaves + line.flag("drain") > 1) {
    throw Failure("--force ends running tasks, --leave-tasks leaves them, --drain waits for them: give one");
  }
  DaemonClient daemon(line);
  try {
    daemon.connect();
    const std::vector<std::string> left = leaves ? running_tasks(daemon) : std::vector<std::string>();
    const pid_t pid = stop_daemon(daemon, stop_params(line), stop_patience(line, daemon));
    object result{{"stopped", true}, {"pid", pid}};
    if (leaves) result["left"] = boost::json::value_from(left);
    const std::string who = left.empty() ? "" : "; " + in_words(left) + (left.size() == 1 ? " goes on" : " go on");
    return tell(line, result, "stopped, pid " + std::to_string(pid) + who);
  } catch (const Failure& failure) {
    if (failure.code() != exit_code::no_daemon || !line.flag("if-running")) throw;
  }
  return tell(line, {{"stopped", false}}, "no daemon is running");
}

int run_daemon_restart(const CommandLine& line) {
  bool was_running = true;
  std::optional<pid_t> pid;
  try {
    DaemonClient daemon(line);
    daemon.leave_settings_to_me();  // faulty ones are refused below
    const value status = daemon.call("daemon.status");
    if (stays_in_its_process(status)) {
      pid = restart_in_place(daemon, status, line);
    } else {
      check_next_start(line, has_tls_door(status));  // before the one that works is gone
      check_next_queue(line, status);
      stop_daemon(daemon, {{"leaveTasks", true}, {"restarting", true}}, daemon.patience());
    }
  } catch (const Failure& failure) {
    if (failure.code() != exit_code::no_daemon) throw;
    was_running = false;
  }
  if (!pid) pid = start_daemon(line);
  const std::string what = was_running ? "restarted" : "started";
  return tell(line, {{"started", true}, {"pid", *pid}}, what + ", pid " + std::to_string(*pid));
}

}  // namespace duet::app
