#include "app/daemon/serve.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <new>
#include <optional>
#include <system_error>
#include <utility>
#include <variant>

#include "app/daemon/descriptors.h"
#include "app/daemon/last_words.h"
#include "app/daemon/project_daemon.h"
#include "app/daemon/service_manager.h"
#include "app/doors/tls_files.h"
#include "app/log/log_setup.h"
#include "app/log/trace.h"
#include "app/project/failure.h"
#include "app/project/last_end.h"
#include "app/project/running_daemon.h"
#include "app/project/state_folder.h"
#include "app/project/state_owner.h"
#include "app/settings/settings.h"
#include "app/view/text_style.h"
#include "automation/engine.h"
#include "duet/base/disk_full.h"
#include "duet/base/log.h"
#include "duet/base/log_line.h"
#include "duet/version.h"
#include "process/cgroup.h"
#include "process/descriptor_limit.h"

namespace duet::app {
namespace {

// Tells whoever started a detached daemon how that went.
class Starter {
 public:
  explicit Starter(base::Fd pipe) : pipe_(std::move(pipe)), detached_(pipe_) {}

  bool is_waiting() const { return detached_; }
  /// False: nobody hears it.
  bool tell(const std::string& text) {
    const bool told = pipe_ && base::write_all(pipe_.get(), text + '\n');
    pipe_.reset();
    return told;
  }

 private:
  base::Fd pipe_;
  bool detached_;
};

LogSetup daemon_log(const CommandLine& line, const StateFolder& folder, bool detached,
                    std::shared_ptr<const std::atomic<bool>> makes_no_file) {
  const std::string own = folder.path_of(log_name);
  const bool coloured = colour_wanted(STDERR_FILENO, line.no_color);
  const char* const file = detached ? own.c_str() : std::getenv("DUET_RPC_LOG");
  // A line for each task: tens of thousands a second must not be as many system calls.
  LogSetup setup =
      set_up_log(file, line.log_level, coloured, {.joins_lines = true, .makes_no_file = std::move(makes_no_file)});
  if (!line.log_level) setup.level = base::Level::info;
  if (detached) setup.sink_name = log_name;
  return setup;
}

// daemon.pid, until the daemon is stopped: whoever finds it afterwards knows that it was not. A daemon that could not
// start leaves what it found.
class PidFile {
 public:
  explicit PidFile(const StateFolder& folder) : folder_(folder), before_(folder.read_small(pid_name)) {
    folder_.write_small(pid_name, std::to_string(getpid()) + '\n');
  }
  PidFile(const PidFile&) = delete;
  PidFile& operator=(const PidFile&) = delete;
  ~PidFile() {
    if (written_pid(folder_) != getpid()) return;  // the lock was replaced, and another daemon is here
    if (stopped_ || before_.empty()) {
      folder_.remove(pid_name);
      folder_.remove(last_words_name);
      return;
    }
    try {
      folder_.write_small(pid_name, before_);
    } catch (const Failure&) {
      // The next start knows a little less.
    }
  }

  void stopped() { stopped_ = true; }

 private:
  const StateFolder& folder_;
  std::string before_;
  bool stopped_ = false;
};

// A line of the log where there is none, or none any more: stderr of a detached daemon is its log.
void complain(std::string_view message, const std::string& reason) {
  std::string line;
  base::LineFormat().append(line, std::chrono::system_clock::now(), base::Level::error, message, {{"reason", reason}});
  [[maybe_unused]] const bool written = base::write_all(STDERR_FILENO, line);
}

// One that was to go on does so, as the program it was if need be.
[[noreturn]] void go_on(const base::Fd& program, const Project& project, const StateFolder* log) {
  go_on_as(program, project, log);
  const std::string reason = std::generic_category().message(errno);
  complain("cannot go on as the program of whoever asked for it; going on as before", reason);
  go_on_as(base::Fd(open("/proc/self/exe", O_RDONLY | O_CLOEXEC)), project, log);
  throw Failure("cannot go on as another program: " + reason, exit_code::try_again);
}

DaemonAddress address_of(const CommandLine& line, const StateFolder& folder) {
  if (const std::optional<std::string> given = line.text("socket")) return {*given, *given, true};
  return {folder.path_of(socket_name), folder.shown() + '/' + socket_name};
}

Settings settings_or_fail(const Project& project, const SettingsPlaces& places) {
  auto read = read_settings(project, places);
  if (const auto* error = std::get_if<SettingsError>(&read)) throw Failure(error->text);
  return std::move(std::get<Settings>(read));
}

// What the command line says goes over the settings for this daemon.
std::optional<transport::TcpAddress> http_address(const CommandLine& line) {
  const std::optional<std::string> given = line.text("http");
  if (!given) return std::nullopt;
  const auto address = transport::TcpAddress::parse(*given);
  if (!address) throw Failure("--http '" + *given + "' is not an address and a port, such as 127.0.0.1:8123");
  const std::string why = why_not_http(*address);
  if (!why.empty()) throw Failure("--http must be " + why);
  return address;
}

std::optional<transport::TcpAddress> tls_address(const CommandLine& line) {
  const std::optional<std::string> given = line.text("tls");
  if (!given) return std::nullopt;
  const auto address = transport::TcpAddress::parse(*given);
  if (!address) throw Failure("--tls '" + *given + "' is not an address and a port, such as 0.0.0.0:7443");
  return address;
}

int serve(const CommandLine& line, Starter& starter, mode_t mask) {
  if (starter.is_waiting()) process::leave_cgroup_of_tree();  // as is said in task/outsider.h
  const DescriptorBudget descriptors = DescriptorBudget::of(process::raise_descriptor_limit());
  ServiceManager manager;
  const Project project = find_project(line.text("project"));
  const SettingsPlaces places = settings_places();
  Settings settings = settings_or_fail(project, places);
  refuse_second_daemon(project, settings.daemon.state);
  const StateFolder folder = StateFolder::make(project, settings.daemon.state);
  const DaemonLock lock = take_lock_or_fail(folder);
  if (const auto why = why_not_our_state(project, folder)) throw Failure(*why);
  const std::optional<LastEnd> last_end = read_last_end(folder);
  std::optional<PidFile> pid_file(std::in_place, folder);
  folder.write_small(version_name, std::string(kVersion) + '\n');

  const bool detached = starter.is_waiting();
  const auto makes_no_file = std::make_shared<std::atomic<bool>>(false);
  LogSetup setup = daemon_log(line, folder, detached, makes_no_file);
  const bool in_file = setup.sink_name != "stderr";
  const LastWords last_words(folder, detached ? folder.path_of(log_name) : in_file ? setup.sink_name : "");
  base::Log log(std::move(setup.sink), setup.level);
  announce(log, setup);
  if (last_end) log.warn("the daemon before was not stopped", {{"what", to_text(*last_end)}});
  const bool trace = line.flag("trace") || trace_wanted(std::getenv("AIWG_IPC_DEBUG"));
  std::shared_ptr<const base::Fd> successor;
  try {
    ProjectDaemon daemon({.project = project,
                          .folder = folder,
                          .lock = lock,
                          .manager = manager,
                          .log = log,
                          .places = places,
                          .address = address_of(line, folder),
                          .http = http_address(line),
                          .tls = tls_address(line),
                          .umask_of_tasks = mask,
                          .trace = trace,
                          .descriptors = descriptors,
                          .last_end = last_end,
                          .idle = line.duration("idle"),
                          .started_by = line.text("started-by"),
                          .makes_no_file = makes_no_file},
                         std::move(settings));
    daemon.open();
    last_words.forget_earlier();
    manager.tell("READY=1\nMAINPID=" + std::to_string(getpid()));
    starter.tell("ready");
    daemon.run();
    successor = daemon.successor();
  } catch (const std::exception& fault) {
    if (in_file) log.error("the daemon cannot start", {{"reason", fault.what()}});
    throw;
  }
  pid_file->stopped();
  pid_file.reset();
  log.info("stopped");
  const bool flushed = log.flush();
  if (successor) {
    manager.hand_on();
    lock.hand_on();
    umask(mask);
    go_on(*successor, project, detached ? &folder : nullptr);
  }
  if (!flushed) std::_Exit(0);  // a log that is stuck holds nobody
  return 0;
}

// A daemon that comes up short later, for a thread or a sync, helps nobody.
void check_memory() {
  constexpr rlim_t least = 64U * 1024;  // KiB of address space
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur / 1024 >= least) return;
  throw Failure("too little memory: this process may have " + std::to_string(limit.rlim_cur / 1024) +
                " KiB, and a daemon needs " + std::to_string(least) + "; raise the limit ('ulimit -v')");
}

Failure no_memory(const std::string& reason) {
  return Failure("not enough memory for a daemon (" + reason +
                     "): 'ulimit -a' shows the limits, -v the one of memory, -u the one of processes and threads",
                 exit_code::try_again);
}

int serve_or_explain(const CommandLine& line, Starter& starter, mode_t mask) {
  check_memory();
  try {
    return serve(line, starter, mask);
  } catch (const std::bad_alloc& fault) {
    throw no_memory(fault.what());
  } catch (const std::system_error& fault) {
    if (base::is_disk_full(fault.code().value())) {
      throw Failure(std::string(fault.what()) + ": make room on the disk", exit_code::try_again);
    }
    const bool is_memory =
        fault.code() == std::errc::resource_unavailable_try_again || fault.code() == std::errc::not_enough_memory;
    if (!is_memory) throw;
    throw no_memory(fault.code().message());
  }
}

}  // namespace

int serve_project(const CommandLine& line, base::Fd ready) {
  Starter starter(std::move(ready));
  const mode_t mask = umask(077);
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);  // a file that may not grow ('ulimit -f') is as a full disk
  // Else the commands of its tasks would ask a daemon of another machine, as the user.
  for (const char* const name : {"DUET_RPC_CONNECT", "DUET_RPC_IDENTITY"}) unsetenv(name);
  try {
    return serve_or_explain(line, starter, mask);
  } catch (const std::exception& fault) {
    if (!starter.is_waiting()) throw;
    if (!starter.tell(fault.what())) complain("the daemon has ended", fault.what());
    const auto* const failure = dynamic_cast<const Failure*>(&fault);
    return failure == nullptr ? exit_code::failed : failure->code();
  }
}

void check_next_start(const CommandLine& line, bool has_tls_door) {
  const Project project = find_project(line.text("project"));
  const SettingsPlaces places = settings_places();
  const Settings settings = settings_or_fail(project, places);
  const auto plan = automation::Engine::prepare(settings.rules, settings.watch);
  if (!plan) throw Failure(plan.error());
  const auto folder = StateFolder::find(project, settings.daemon.state);
  const auto why = folder ? why_not_our_state(project, *folder) : std::nullopt;
  if (why) throw Failure(*why);
  if (!has_tls_door && !settings.tls.listen) return;
  const std::string closed = why_no_tls_door(settings.tls, tls_folder(places));
  if (!closed.empty()) throw Failure(closed);
}

}  // namespace duet::app
