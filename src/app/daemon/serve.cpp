#include "app/daemon/serve.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <system_error>
#include <utility>

#include "app/daemon/daemon_end.h"
#include "app/daemon/running_daemon.h"
#include "app/daemon/service_manager.h"
#include "app/daemon/signals.h"
#include "app/daemon/socket_guard.h"
#include "app/daemon/state_folder.h"
#include "app/event_history.h"
#include "app/event_hub.h"
#include "app/failure.h"
#include "app/log_setup.h"
#include "app/methods/daemon_methods.h"
#include "app/text_style.h"
#include "app/trace.h"
#include "duet/base/log.h"
#include "duet/base/utc_text.h"
#include "duet/peer/server.h"
#include "duet/transport/loop.h"
#include "duet/version.h"

namespace duet::app {
namespace {

using boost::json::object;

// Tells whoever started a detached daemon how that went.
class Starter {
 public:
  explicit Starter(base::Fd pipe) : pipe_(std::move(pipe)), detached_(pipe_) {}

  bool is_waiting() const { return detached_; }
  void tell(const std::string& text) {
    const std::string line = text + '\n';
    [[maybe_unused]] const ssize_t written = pipe_ ? write(pipe_.get(), line.data(), line.size()) : 0;
    pipe_.reset();
  }

 private:
  base::Fd pipe_;
  bool detached_;
};

LogSetup daemon_log(const CommandLine& line, const StateFolder& folder, bool detached) {
  const std::string own = folder.path_of(log_name);
  const bool coloured = colour_wanted(STDERR_FILENO, line.no_color);
  LogSetup setup = set_up_log(detached ? own.c_str() : std::getenv("DUET_RPC_LOG"), line.log_level, coloured);
  if (!line.log_level) setup.level = base::Level::info;
  if (detached) setup.sink_name = log_name;
  return setup;
}

// The address where clients look, and what people are told about it.
struct Address {
  std::string path;
  std::string shown;
};

Address address_of(const CommandLine& line, const StateFolder& folder) {
  if (const std::optional<std::string> given = line.text("socket")) return {*given, *given};
  return {folder.path_of(socket_name), std::string(state_path) + '/' + socket_name};
}

void listen(peer::Server& server, const Address& address) {
  try {
    server.start(address.path);
  } catch (const std::system_error& error) {
    const int code = error.code().value();
    const std::string where = "cannot listen at " + address.shown + ": ";
    if (code == EADDRINUSE)
      throw Failure(where + "something that is no stale socket is there: move it away, or use --socket");
    if (code == EPERM || code == EOPNOTSUPP || code == ENOSYS) {
      throw Failure(where + "this file system refuses sockets: choose a place elsewhere with --socket");
    }
    throw Failure(where + error.code().message());
  }
}

class Problems {
 public:
  void set(const std::string& subsystem, std::string message) { known_[subsystem] = std::move(message); }
  void clear(const std::string& subsystem) { known_.erase(subsystem); }
  bool empty() const { return known_.empty(); }
  boost::json::array list() const {
    boost::json::array all;
    for (const auto& [subsystem, message] : known_) {
      all.push_back({{"subsystem", subsystem}, {"message", message}});
    }
    return all;
  }

 private:
  std::map<std::string, std::string> known_;
};

}  // namespace

int serve_project(const CommandLine& line, base::Fd ready) {
  Starter starter(std::move(ready));
  ServiceManager manager;
  const mode_t mask_of_tasks = umask(077);
  static_cast<void>(mask_of_tasks);
  signal(SIGPIPE, SIG_IGN);
  try {
    const Project project = find_project(line.text("project"));
    const StateFolder folder = StateFolder::make(project);
    const DaemonLock lock = take_lock_or_fail(folder);
    folder.write_small(pid_name, std::to_string(getpid()) + '\n');
    folder.write_small(version_name, std::string(kVersion) + '\n');

    LogSetup setup = daemon_log(line, folder, starter.is_waiting());
    base::Log log(std::move(setup.sink), setup.level);
    announce(log, setup);

    transport::Loop loop;
    peer::Server server(loop, log);
    if (line.flag("trace") || trace_wanted(std::getenv("AIWG_IPC_DEBUG"))) {
      server.wrap_channel = [&log](std::unique_ptr<transport::Channel> channel, const peer::Peer& peer) {
        return traced(std::move(channel), log, peer.connection);
      };
    }
    EventHistory history(folder.descriptor(), "events.log", log);
    EventHub hub(loop, server, history);
    DaemonEnd end(loop, log, server, hub, manager);
    Problems problems;

    const base::UtcTime started_at = loop.clock().utc();
    const base::TimePoint started = loop.now();
    const auto status = [&] {
      return object{{"pid", getpid()},
                    {"version", kVersion},
                    {"started_at", base::utc_text(started_at)},
                    {"uptime_seconds", std::chrono::floor<std::chrono::seconds>(loop.now() - started).count()},
                    {"health", problems.empty() ? "healthy" : "degraded"},
                    {"problems", problems.list()},
                    {"subsystems", {{"ipc", {{"clients", server.client_count()}}}}}};
    };
    const auto stop = [&end](StopRequest request) { end.begin("asked by a client", request); };
    add_daemon_methods(server.methods(), loop.clock(), {.status = status, .stop = stop});
    server.methods().add(hub.subscribe_method());

    const Signals signals(loop, {SIGTERM, SIGINT, SIGHUP}, [&](int signal) {
      if (signal != SIGHUP) end.begin(signal == SIGTERM ? "SIGTERM" : "SIGINT", {});
    });

    const Address address = address_of(line, folder);
    if (base::Fd listener = manager.take_listener()) {
      server.start(std::move(listener));
    } else {
      listen(server, address);
    }
    const SocketGuard guard(loop, log, project, folder, [&] {
      if (end.has_begun()) return true;
      if (!lock.is_in_place(project)) {
        log.error("the state folder of the project was removed or replaced");
        end.begin("the state folder was removed or replaced", {.force = true});
        return true;
      }
      if (server.is_reachable()) return true;
      try {
        listen(server, address);
        log.warn("the socket file was removed; it is back");
        problems.clear("ipc");
      } catch (const Failure& failure) {
        log.warn("the socket file was removed and cannot be put back", {{"reason", failure.what()}});
        problems.set("ipc", failure.what());
        return false;
      }
      return true;
    });
    if (!guard.problem().empty()) problems.set("watch", guard.problem());

    log.info("listening", {{"socket", address.shown}});
    manager.tell("READY=1\nMAINPID=" + std::to_string(getpid()));
    starter.tell("ready");
    loop.run();

    history.close();
    if (lock.is_in_place(project)) folder.remove(pid_name);
    log.info("stopped");
    if (!log.flush()) std::_Exit(0);  // a log that is stuck holds nobody
    return 0;
  } catch (const std::exception& fault) {
    if (!starter.is_waiting()) throw;
    starter.tell(fault.what());
    return exit_code::failed;
  }
}

}  // namespace duet::app
