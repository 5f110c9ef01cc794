#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <string>
#include <thread>

#include <boost/json/object.hpp>

#include "app/client/daemon_client.h"
#include "app/commands/commands.h"
#include "app/daemon/serve.h"
#include "app/project/failure.h"
#include "app/view/text_style.h"
#include "duet/rpc/value.h"

namespace duet::app {
namespace {

using boost::json::object;
using boost::json::value;

int tell(const CommandLine& line, const object& result, const std::string& text) {
  return print_text((line.flag("json") ? rpc::to_text(result) : text) + '\n');
}

// The daemon's own word, since the other end of the socket may be a service manager's.
pid_t pid_of(DaemonClient& daemon) { return daemon.call("daemon.status").at("pid").to_number<pid_t>(); }

void wait_for_end(pid_t pid, const base::Fd& process, std::chrono::milliseconds patience) {
  pollfd wanted{.fd = process.get(), .events = POLLIN, .revents = 0};
  int count = 0;
  do {
    count = poll(&wanted, 1, static_cast<int>(patience.count()));
  } while (count < 0 && errno == EINTR);
  if (count == 0) {
    throw Failure("the daemon, pid " + std::to_string(pid) + ", is still stopping; --force ends its tasks at once",
                  exit_code::no_answer);
  }
}

// Returns the pid it had. Running tasks get 15 seconds and are ended then, which takes up to 5 more.
pid_t stop_daemon(DaemonClient& daemon, const object& params) {
  const pid_t pid = pid_of(daemon);
  const base::Fd process(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  daemon.call("daemon.stop", params);
  if (process) wait_for_end(pid, process, daemon.patience());
  return pid;
}

pid_t start_daemon(const CommandLine& line) {
  const pid_t pid = start_detached(line);
  DaemonClient(line).call_raw("ping");
  return pid;
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

// A task would have the daemon end with it, or inherit its context; a service manager would lose it.
bool stays_in_its_process(const value& status) {
  return std::getenv("DUET_TASK_ID") != nullptr || status.as_object().contains("managed");
}

}  // namespace

int run_daemon_start(const CommandLine& line) {
  base::Fd ready = take_ready_pipe();
  if (line.flag("foreground")) return serve_project(line, std::move(ready));
  const pid_t pid = start_daemon(line);
  return tell(line, {{"started", true}, {"pid", pid}}, "started, pid " + std::to_string(pid));
}

int run_daemon_stop(const CommandLine& line) {
  DaemonClient daemon(line);
  const pid_t pid = stop_daemon(daemon, {{"force", line.flag("force")}});
  return tell(line, {{"stopped", true}, {"pid", pid}}, "stopped, pid " + std::to_string(pid));
}

int run_daemon_restart(const CommandLine& line) {
  bool was_running = true;
  std::optional<pid_t> pid;
  try {
    DaemonClient daemon(line);
    const value status = daemon.call("daemon.status");
    if (stays_in_its_process(status)) {
      pid = restart_in_place(daemon, status, line);
    } else {
      check_settings(line);  // before the one that works is gone
      stop_daemon(daemon, {{"leaveTasks", true}});
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
