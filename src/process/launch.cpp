#include "process/launch.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/prctl.h>
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

// Why a forked child has become no program.
struct ForkFault {
  int error = 0;
  bool is_of_cgroup = false;
};

[[noreturn]] void end_child(int report, const ForkFault& fault) {
  [[maybe_unused]] const ssize_t told = write(report, &fault, sizeof fault);
  _exit(127);
}

// The same at once, in a forked child. The descriptor that it reports by stays open.
class ActionsNow {
 public:
  explicit ActionsNow(int report) : report_(report) {}

  void enter(int folder) const { check(fchdir(folder)); }
  void close(int fd) const { ::close(fd); }
  void close_from(int fd) const {
    for (; fd < report_; ++fd) ::close(fd);
    closefrom(report_ + 1);
  }
  void put(int fd, int number) const { check(dup2(fd, number)); }
  void put_null(int number) const {
    const int null = open("/dev/null", O_RDWR);
    check(null);
    if (null == number) return;
    put(null, number);
    ::close(null);
  }

 private:
  void check(int result) const {
    if (result < 0) end_child(report_, {.error = errno});
  }

  int report_;
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

  // When all are known, and before they are put anywhere.
  void settle() {
    for (auto& wanted : wanted_) wanted.first = out_of_the_way(wanted.first);
  }

  template <typename Actions>
  void add_to(Actions& actions) const {
    for (int number = 0; number < end_; ++number) {
      const auto found =
          std::find_if(wanted_.begin(), wanted_.end(), [&](auto& each) { return each.second == number; });
      if (found != wanted_.end()) {
        actions.put(found->first, number);
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

// What is executed, and where.
struct Program {
  const Launch& launch;
  int folder = AT_FDCWD;
  std::string path = {};
  std::vector<std::string> arguments = launch.arguments;
  std::vector<std::string> environment = assignments_of(launch.environment);
};

pid_t spawn_here(Program& program, const Placement& placement) {
  FileActions actions;
  if (program.folder != AT_FDCWD) actions.enter(program.folder);
  placement.add_to(actions);
  const Attributes attributes(program.launch.new_session);
  pid_t pid = 0;
  const int error = [&] {
    const OriginalDescriptorLimit limit;
    return posix_spawn(&pid, program.path.c_str(), actions.get(), attributes.get(),
                       pointers_to(program.arguments).data(), pointers_to(program.environment).data());
  }();
  if (error != 0) refuse_exec(program.launch, program.folder, program.path, error);
  return pid;
}

// No signal is pending in a child. What is caught becomes default with the program.
void take_default_signals() {
  for (int each = 1; each < NSIG; ++each) signal(each, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

// A parent that has ended before the kernel was asked will not end again: whoever has another one by then ends itself.
void die_with(pid_t parent, int report) {
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) end_child(report, {.error = errno});
  if (getppid() != parent) _exit(127);
}

[[noreturn]] void become(Program& program, const Placement& placement, pid_t parent, int report) {
  const Launch& launch = program.launch;
  if (launch.dies_with_us) die_with(parent, report);
  if (launch.cgroup >= 0 && write(launch.cgroup, "0", 1) != 1) {
    end_child(report, {.error = errno, .is_of_cgroup = true});
  }
  take_default_signals();
  if (launch.new_session) {
    setsid();
  } else {
    setpgid(0, 0);
  }
  const ActionsNow actions(report);
  if (program.folder != AT_FDCWD) actions.enter(program.folder);
  placement.add_to(actions);
  const OriginalDescriptorLimit limit;
  execve(program.path.c_str(), pointers_to(program.arguments).data(), pointers_to(program.environment).data());
  end_child(report, {.error = errno});
}

// For what posix_spawn() cannot do: a cgroup, and an end together with ours. Were this process in the cgroup while it
// starts the program, whatever uses up the memory there before it has left would end it, too.
pid_t fork_and_become(Program& program, const Placement& placement) {
  std::array<int, 2> pipe{-1, -1};
  if (pipe2(pipe.data(), O_CLOEXEC) != 0) refuse(Cause::exec_failed, errno, "a pipe");
  const base::Fd answer(pipe[0]);
  base::Fd report(pipe[1]);
  report.reset(fcntl(report.get(), F_DUPFD_CLOEXEC, placement.end()));
  if (!report) refuse(Cause::exec_failed, errno, "a descriptor for the program");
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) refuse(Cause::exec_failed, errno, "fork");
  if (pid == 0) become(program, placement, parent, report.get());
  report.reset();
  ForkFault fault;
  ssize_t count = 0;
  do count = read(answer.get(), &fault, sizeof fault);
  while (count < 0 && errno == EINTR);
  if (count != sizeof fault) return pid;  // the program runs, or was killed before: its status says so
  waitpid(pid, nullptr, 0);
  if (fault.is_of_cgroup) refuse(Cause::exec_failed, fault.error, "the cgroup for the limits cannot be entered");
  refuse_exec(program.launch, program.folder, program.path, fault.error);
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
  Placement placement;
  Program program{.launch = launch, .folder = folder ? folder->get() : AT_FDCWD};
  for (int number = 0; number < first_further; ++number) {
    const int source = launch.standard.at(static_cast<std::size_t>(number));
    if (source >= 0) placement.want(source, number);
  }
  for (const auto& [source, number] : launch.further) placement.want(source, number);
  if (launch.executable < 0) {
    program.path = path_of(launch, program.folder);
  } else {
    program.path = "/proc/self/fd/" + std::to_string(placement.end());
    placement.want(launch.executable, placement.end());
  }
  placement.settle();
  const bool needs_fork = launch.cgroup >= 0 || launch.dies_with_us;
  return needs_fork ? fork_and_become(program, placement) : spawn_here(program, placement);
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
