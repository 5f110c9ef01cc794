#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <utility>

#include "app/daemon/serve.h"
#include "app/daemon/shared_queue.h"
#include "app/log/trace.h"
#include "app/project/failure.h"
#include "app/project/running_daemon.h"
#include "app/project/state_folder.h"
#include "app/settings/settings.h"
#include "duet/base/log_line.h"
#include "process/descriptor_limit.h"
#include "process/launch.h"

namespace duet::app {
namespace {

constexpr const char* ready_variable = "DUET_RPC_READY_FD";
constexpr int ready_descriptor = 3;
constexpr std::chrono::milliseconds default_patience = std::chrono::seconds(30);

// The daemon works in the project's folder, so that the one it was started in may go.
std::string absolute(const std::string& path) { return path.empty() ? path : std::filesystem::absolute(path).string(); }

std::vector<std::string> arguments_of(const CommandLine& line, const Project& project) {
  std::vector<std::string> words{"duet-rpc", "daemon", "start", "--foreground", "--project", project.root};
  if (const auto socket = line.text("socket")) words.insert(words.end(), {"--socket", absolute(*socket)});
  if (line.log_level) words.insert(words.end(), {"--log-level", std::string(base::level_name(*line.log_level))});
  for (const char* const name : {"http", "tls", "idle", "started-by"}) {  // of `daemon start`, and no other command
    if (find_option(line.command, name) == nullptr) continue;
    if (const auto value = line.text(name)) words.push_back("--" + std::string(name) + '=' + *value);
  }
  if (line.flag("trace")) words.emplace_back("--trace");
  return words;
}

process::Environment environment_of_daemon() {
  process::Environment environment = process::current_environment();
  environment[ready_variable] = std::to_string(ready_descriptor);
  for (const char* name : {"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES", "NOTIFY_SOCKET", "WATCHDOG_PID",
                           "WATCHDOG_USEC", "DUET_TASK_ID", "DUET_TASK_MARK", "DUET_TASK_FENCE", "DUET_TASK_WORKER"}) {
    environment.erase(name);  // it is no part of the service or the task that starts it (task/outsider.h)
  }
  const auto settings = environment.find("DUET_RPC_CONFIG");
  if (settings != environment.end()) settings->second = absolute(settings->second);
  return environment;
}

base::Fd open_log(const StateFolder& folder) {
  base::Fd log(openat(folder.descriptor(), log_name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!log) throw folder.unusable(log_name, errno);
  return log;
}

// The arguments of this process, with the project where it is now: it may have been moved.
std::vector<std::string> own_arguments(const std::string& project) {
  constexpr std::string_view option = "--project";
  std::ifstream own("/proc/self/cmdline");
  std::vector<std::string> arguments;
  for (std::string word; std::getline(own, word, '\0');) {
    const bool is_value = !arguments.empty() && arguments.back() == option;
    const bool has_value = word.starts_with(std::string(option) + '=');
    if (!project.empty() && is_value) word = project;
    if (!project.empty() && has_value) word = std::string(option) + '=' + project;
    arguments.push_back(word);
  }
  return arguments;
}

// What the daemon says before it closes the pipe, or as much of it as comes in time.
std::string read_until_closed(int pipe, std::chrono::milliseconds patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  std::string text;
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    pollfd wanted{.fd = pipe, .events = POLLIN, .revents = 0};
    const int count = left.count() > 0 ? poll(&wanted, 1, static_cast<int>(left.count())) : 0;
    if (count == 0) {
      throw Failure("the daemon did not start in time: see 'duet-rpc daemon logs'", exit_code::no_answer);
    }
    if (count < 0) continue;  // a signal
    std::array<char, 4096> room;
    const ssize_t got = read(pipe, room.data(), room.size());
    if (got <= 0) return text;
    text.append(room.data(), static_cast<std::size_t>(got));
    if (text.ends_with('\n')) return text;
  }
}

}  // namespace

pid_t start_detached(const CommandLine& line) {
  const Project project = find_project(line.text("project"));
  const StatePlace place = state_place(settings_places());
  refuse_second_daemon(project, place);
  const StateFolder folder = StateFolder::make(project, place);
  const base::Fd log = open_log(folder);
  const base::Fd program(base::check_call(open("/proc/self/exe", O_RDONLY | O_CLOEXEC), "/proc/self/exe"));
  base::Pipe pipe = base::make_pipe();
  const bool was_copy = is_copied_worker(folder);

  const process::Child daemon =
      process::launch({.arguments = arguments_of(line, project),
                       .environment = environment_of_daemon(),
                       .directory = "/proc/self/fd/" + std::to_string(project.directory.get()),
                       .standard = {-1, -1, log.get()},
                       .further = {{pipe.write_end.get(), ready_descriptor}},
                       .executable = program.get()});
  pipe.write_end.reset();
  std::string said = read_until_closed(pipe.read_end.get(), line.duration("timeout").value_or(default_patience));
  if (said == "ready\n") {
    const bool has_joined = was_copy && !is_copied_worker(folder);
    const std::string note = has_joined ? std::string(line.program) + ": " + copied_worker_text + '\n' : "";
    [[maybe_unused]] const bool written = base::write_all(STDERR_FILENO, note);
    return daemon.pid;
  }
  const process::ExitStatus status = process::reap(daemon);
  if (said.empty()) throw Failure("the daemon ended at once: see 'duet-rpc daemon logs'");
  said.pop_back();
  throw Failure(said, status.code == exit_code::try_again ? status.code : exit_code::failed);
}

void go_on_as(const base::Fd& program, const Project& project, const StateFolder* log) {
  std::vector<std::string> arguments = own_arguments(present_path(project));
  std::vector<char*> pointers;
  pointers.reserve(arguments.size() + 1);
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  const base::Fd out_of_the_way(fcntl(program.get(), F_DUPFD_CLOEXEC, ready_descriptor + 1));
  const base::Pipe nobody = base::make_pipe();
  if (log != nullptr) {
    if (dup2(nobody.write_end.get(), ready_descriptor) == ready_descriptor) {
      setenv(ready_variable, std::to_string(ready_descriptor).c_str(), 1);
    }
    const base::Fd present_log = open_log(*log);  // the one we were given may have been rotated away
    dup2(present_log.get(), STDERR_FILENO);
  }
  const process::OriginalDescriptorLimit limit;
  fexecve(out_of_the_way.get(), pointers.data(), environ);
}

base::Fd take_ready_pipe() {
  const char* const value = std::getenv(ready_variable);
  const bool is_set = value != nullptr && std::string_view(value) == std::to_string(ready_descriptor);
  unsetenv(ready_variable);
  if (!is_set || fcntl(ready_descriptor, F_SETFD, FD_CLOEXEC) != 0) return {};
  return base::Fd(ready_descriptor);
}

}  // namespace duet::app
