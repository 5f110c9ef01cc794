#include "app/daemon/serve.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <optional>
#include <utility>
#include <variant>

#include "app/daemon/project_daemon.h"
#include "app/daemon/service_manager.h"
#include "app/log/log_setup.h"
#include "app/log/trace.h"
#include "app/project/failure.h"
#include "app/project/running_daemon.h"
#include "app/project/state_folder.h"
#include "app/settings/settings.h"
#include "app/view/text_style.h"
#include "duet/base/log.h"
#include "duet/version.h"

namespace duet::app {
namespace {

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

// daemon.pid, as long as there is a daemon: one that could not start leaves none.
class PidFile {
 public:
  PidFile(const Project& project, const StateFolder& folder, const DaemonLock& lock)
      : project_(project), folder_(folder), lock_(lock) {
    folder_.write_small(pid_name, std::to_string(getpid()) + '\n');
  }
  PidFile(const PidFile&) = delete;
  PidFile& operator=(const PidFile&) = delete;
  ~PidFile() {
    if (lock_.is_in_place(project_)) folder_.remove(pid_name);
  }

 private:
  const Project& project_;
  const StateFolder& folder_;
  const DaemonLock& lock_;
};

DaemonAddress address_of(const CommandLine& line, const StateFolder& folder) {
  if (const std::optional<std::string> given = line.text("socket")) return {*given, *given, true};
  return {folder.path_of(socket_name), std::string(state_path) + '/' + socket_name};
}

Settings settings_or_fail(const Project& project, const SettingsPlaces& places) {
  auto read = read_settings(project, places);
  if (const auto* error = std::get_if<SettingsError>(&read)) throw Failure(error->text);
  return std::move(std::get<Settings>(read));
}

int serve(const CommandLine& line, Starter& starter, mode_t mask) {
  ServiceManager manager;
  const Project project = find_project(line.text("project"));
  const SettingsPlaces places = settings_places();
  Settings settings = settings_or_fail(project, places);
  const StateFolder folder = StateFolder::make(project);
  const DaemonLock lock = take_lock_or_fail(folder);
  std::optional<PidFile> pid_file(std::in_place, project, folder, lock);
  folder.write_small(version_name, std::string(kVersion) + '\n');

  LogSetup setup = daemon_log(line, folder, starter.is_waiting());
  base::Log log(std::move(setup.sink), setup.level);
  announce(log, setup);
  const bool trace = line.flag("trace") || trace_wanted(std::getenv("AIWG_IPC_DEBUG"));
  {
    ProjectDaemon daemon({.project = project,
                          .folder = folder,
                          .lock = lock,
                          .manager = manager,
                          .log = log,
                          .places = places,
                          .address = address_of(line, folder),
                          .umask_of_tasks = mask,
                          .trace = trace},
                         std::move(settings));
    daemon.open();
    manager.tell("READY=1\nMAINPID=" + std::to_string(getpid()));
    starter.tell("ready");
    daemon.run();
  }
  pid_file.reset();
  log.info("stopped");
  if (!log.flush()) std::_Exit(0);  // a log that is stuck holds nobody
  return 0;
}

}  // namespace

int serve_project(const CommandLine& line, base::Fd ready) {
  Starter starter(std::move(ready));
  const mode_t mask = umask(077);
  signal(SIGPIPE, SIG_IGN);
  try {
    return serve(line, starter, mask);
  } catch (const std::exception& fault) {
    if (!starter.is_waiting()) throw;
    starter.tell(fault.what());
    return exit_code::failed;
  }
}

}  // namespace duet::app
