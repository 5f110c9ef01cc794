#include "process/launch.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <system_error>

#include "process/descriptor_limit.h"

namespace duet::process {
namespace {

constexpr int first_further = 3;

using Cause = LaunchError::Cause;

[[noreturn]] void refuse(Cause cause, int error, const std::string& text) {
  throw LaunchError(cause, error, text + ": " + std::generic_category().message(error));
}

void check_spawn(int error, const char* what) {
  if (error != 0) refuse(Cause::exec_failed, error, what);
}

class FileActions {
 public:
  FileActions() { check_spawn(posix_spawn_file_actions_init(&actions_), "posix_spawn_file_actions_init"); }
  FileActions(const FileActions&) = delete;
  FileActions& operator=(const FileActions&) = delete;
  ~FileActions() { posix_spawn_file_actions_destroy(&actions_); }

  const posix_spawn_file_actions_t* get() const { return &actions_; }
  void enter(int folder) { check_spawn(posix_spawn_file_actions_addfchdir_np(&actions_, folder), "addfchdir"); }
  void close(int fd) { check_spawn(posix_spawn_file_actions_addclose(&actions_, fd), "addclose"); }
  void close_from(int fd) { check_spawn(posix_spawn_file_actions_addclosefrom_np(&actions_, fd), "addclosefrom"); }
  void put(int fd, int number) { check_spawn(posix_spawn_file_actions_adddup2(&actions_, fd, number), "adddup2"); }
  void put_null(int number) {
    check_spawn(posix_spawn_file_actions_addopen(&actions_, number, "/dev/null", O_RDWR, 0), "addopen");
  }

 private:
  posix_spawn_file_actions_t actions_;
};

class Attributes {
 public:
  explicit Attributes(bool new_session) {
    check_spawn(posix_spawnattr_init(&attributes_), "posix_spawnattr_init");
    sigset_t signals;
    memset(&signals, 0xff, sizeof signals);  // sigfillset leaves out 32 and 33, which would be ignored in the program
    posix_spawnattr_setsigdefault(&attributes_, &signals);
    sigemptyset(&signals);
    posix_spawnattr_setsigmask(&attributes_, &signals);
    const int own = new_session ? POSIX_SPAWN_SETSID : POSIX_SPAWN_SETPGROUP;
    posix_spawnattr_setflags(&attributes_, static_cast<short>(POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | own));
  }
  Attributes(const Attributes&) = delete;
  Attributes& operator=(const Attributes&) = delete;
  ~Attributes() { posix_spawnattr_destroy(&attributes_); }

  const posix_spawnattr_t* get() const { return &attributes_; }

 private:
  posix_spawnattr_t attributes_;
};

// What the child's descriptors become. Sources among the numbers that are given out are moved out of the way first.
class Placement {
 public:
  void want(int source, int number) {
    wanted_.emplace_back(source, number);
    end_ = std::max(end_, number + 1);
  }

  int end() const { return end_; }

  void add_to(FileActions& actions) {
    for (int number = 0; number < end_; ++number) {
      const auto found =
          std::find_if(wanted_.begin(), wanted_.end(), [&](auto& each) { return each.second == number; });
      if (found != wanted_.end()) {
        actions.put(out_of_the_way(found->first), number);
      } else if (number < first_further) {
        actions.put_null(number);
      } else {
        actions.close(number);
      }
    }
    actions.close_from(end_);
  }

 private:
  int out_of_the_way(int source) {
    if (source >= end_) return source;
    base::Fd& moved = moved_.emplace_back(fcntl(source, F_DUPFD_CLOEXEC, end_));
    if (!moved) refuse(Cause::exec_failed, errno, "a descriptor for the program");
    return moved.get();
  }

  std::vector<std::pair<int, int>> wanted_;
  std::vector<base::Fd> moved_;
  int end_ = first_further;
};

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

std::vector<std::string> assignments_of(const Environment& environment) {
  std::vector<std::string> texts;
  texts.reserve(environment.size());
  for (const auto& [name, value] : environment) texts.emplace_back(name).append("=").append(value);
  return texts;
}

bool is_program(int folder, const std::string& path) {
  struct stat status {};
  return fstatat(folder, path.c_str(), &status, 0) == 0 && S_ISREG(status.st_mode) &&
         faccessat(folder, path.c_str(), X_OK, AT_EACCESS) == 0;
}

// Names that are not absolute are looked up from `folder`, where the program is going to start.
std::string find_program_from(int folder, const std::string& program, std::string_view path) {
  if (program.empty()) return {};
  if (program.find('/') != std::string::npos) return is_program(folder, program) ? program : std::string();
  while (true) {
    const std::size_t colon = path.find(':');
    std::string candidate(path.substr(0, colon));
    if (candidate.empty()) candidate = '.';
    candidate += '/' + program;
    if (is_program(folder, candidate)) return candidate;
    if (colon == std::string_view::npos) return {};
    path.remove_prefix(colon + 1);
  }
}

std::optional<base::Fd> open_directory(const Launch& launch) {
  if (launch.directory.empty()) return std::nullopt;
  base::Fd folder(open(launch.directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!folder || faccessat(folder.get(), ".", X_OK, AT_EACCESS) != 0) {
    refuse(Cause::directory_missing, errno, "the working directory cannot be entered");
  }
  return folder;
}

std::string path_of(const Launch& launch, int folder) {
  const std::string& program = launch.arguments.at(0);
  if (program.find('/') != std::string::npos) return program;
  const auto path = launch.environment.find("PATH");
  std::string_view folders = "/usr/local/bin:/usr/bin:/bin";
  if (path != launch.environment.end()) folders = path->second;
  std::string found = find_program_from(folder, program, folders);
  if (found.empty()) throw LaunchError(Cause::not_found, ENOENT, program + ": not found on the PATH");
  return found;
}

[[noreturn]] void refuse_exec(const Launch& launch, int folder, const std::string& path, int error) {
  const bool missing = launch.executable < 0 && faccessat(folder, path.c_str(), F_OK, 0) != 0 && errno == ENOENT;
  refuse(missing ? Cause::not_found : Cause::exec_failed, error, launch.arguments.at(0));
}

base::Fd open_pidfd(pid_t pid) {
  base::Fd pidfd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (pidfd) return pidfd;
  const int error = errno;
  kill(pid, SIGKILL);
  waitpid(pid, nullptr, 0);
  refuse(Cause::exec_failed, error, "pidfd_open");
}

}  // namespace

Environment current_environment() {
  Environment environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::size_t equals = text.find('=');
    if (equals != std::string_view::npos) environment.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return environment;
}

Child launch(const Launch& launch) {
  const pid_t pid = spawn(launch);
  return {pid, open_pidfd(pid)};
}

pid_t spawn(const Launch& launch) {
  const std::optional<base::Fd> folder = open_directory(launch);
  const int from = folder ? folder->get() : AT_FDCWD;
  Placement placement;
  for (int number = 0; number < first_further; ++number) {
    const int source = launch.standard.at(static_cast<std::size_t>(number));
    if (source >= 0) placement.want(source, number);
  }
  for (const auto& [source, number] : launch.further) placement.want(source, number);
  std::string path;
  if (launch.executable < 0) {
    path = path_of(launch, from);
  } else {
    path = "/proc/self/fd/" + std::to_string(placement.end());
    placement.want(launch.executable, placement.end());
  }
  FileActions actions;
  if (folder) actions.enter(from);
  placement.add_to(actions);

  std::vector<std::string> arguments = launch.arguments;
  std::vector<std::string> environment = assignments_of(launch.environment);
  const Attributes attributes(launch.new_session);
  pid_t pid = 0;
  const int error = [&] {
    const OriginalDescriptorLimit limit;
    return posix_spawn(&pid, path.c_str(), actions.get(), attributes.get(), pointers_to(arguments).data(),
                       pointers_to(environment).data());
  }();
  if (error != 0) refuse_exec(launch, from, path, error);
  return pid;
}

std::string find_program(const std::string& program, std::string_view path) {
  return find_program_from(AT_FDCWD, program, path);
}

ExitStatus reap(const Child& child) {
  int status = 0;
  pid_t pid = -1;
  do {
    pid = waitpid(child.pid, &status, 0);
  } while (pid < 0 && errno == EINTR);
  if (pid < 0) return {.is_known = false};  // SIGCHLD is ignored, and the kernel has reaped it
  if (WIFSIGNALED(status)) return {.code = 0, .signal = WTERMSIG(status)};
  return {.code = WEXITSTATUS(status), .signal = 0};
}

std::string signal_name(int signal) {
  const char* name = sigabbrev_np(signal);
  return "SIG" + (name != nullptr ? std::string(name) : std::to_string(signal));
}

}  // namespace duet::process
