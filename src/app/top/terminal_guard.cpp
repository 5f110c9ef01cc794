#include "app/top/terminal_guard.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <initializer_list>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "duet/base/fd.h"
#include "process/launch.h"

namespace duet::app::top {
namespace {

constexpr int signal_base = 128;
constexpr int guard_socket = 3;
constexpr const char* guard_name = "duet-terminal";  // `pkill duet-rpc` does not mean it

sigset_t set_of(std::initializer_list<int> signals) {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : signals) sigaddset(&set, signal);
  return set;
}

void block(std::initializer_list<int> signals) {
  const sigset_t set = set_of(signals);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

/// The terminal as it was, and how to make it so again.
struct Before {
  termios modes{};
  std::string leaving;

  void restore() const {
    block({SIGTTOU});  // a process in the background may do it
    [[maybe_unused]] const bool written = base::write_all(STDOUT_FILENO, leaving);
    tcflush(STDOUT_FILENO, TCIFLUSH);  // keys that were meant for us are no commands for a shell
    tcsetattr(STDOUT_FILENO, TCSANOW, &modes);
  }

  // No shell turns signals of keys off, as we do.
  static bool has_our_modes() {
    termios now{};
    return tcgetattr(STDOUT_FILENO, &now) == 0 && (now.c_lflag & ISIG) == 0;
  }

  // When the process that it waited for is gone, a shell has its own modes, and may be reading a line already.
  void restore_what_is_ours() const {
    if (has_our_modes()) return restore();
    block({SIGTTOU});
    [[maybe_unused]] const bool written = base::write_all(STDOUT_FILENO, leaving);
  }
};

/// Our end of the way to the guard. The child has a copy: the guard acts when both are closed without a word.
class Guard {
 public:
  explicit Guard(const Before& before) {
    std::array<int, 2> ends{};
    base::check_call(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()), "socketpair");
    socket_.reset(ends[0]);
    const base::Fd other(ends[1]);
    const base::Fd program(base::check_call(open("/proc/self/exe", O_RDONLY | O_CLOEXEC), "/proc/self/exe"));
    child_ = process::launch({.arguments = {guard_name, std::string(guard_argument)},
                              .standard = {-1, STDOUT_FILENO, -1},
                              .further = {{other.get(), guard_socket}},
                              .executable = program.get(),
                              .new_session = false});
    std::string packet(reinterpret_cast<const char*>(&before.modes), sizeof before.modes);
    packet += before.leaving;
    [[maybe_unused]] const ssize_t sent = send(socket_.get(), packet.data(), packet.size(), MSG_NOSIGNAL);
  }
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;
  ~Guard() = default;

  /// The terminal is in order.
  void dismiss() const { [[maybe_unused]] const ssize_t sent = send(socket_.get(), "", 1, MSG_NOSIGNAL); }
  /// The same for the process that has started it.
  void end() const {
    kill(child_.pid, SIGKILL);
    process::reap(child_);
  }

 private:
  base::Fd socket_;
  process::Child child_;
};

std::optional<int> ended(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, WNOHANG | WUNTRACED) == child) {
    if (!WIFSTOPPED(status)) return status;
    raise(SIGSTOP);  // for the shell, which knows only us; it goes on from here
    kill(child, SIGCONT);
  }
  return std::nullopt;
}

int await(pid_t child) {
  const sigset_t heard = set_of({SIGCHLD, SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGTSTP});
  for (;;) {
    if (const auto status = ended(child)) return *status;
    const int signal = sigwaitinfo(&heard, nullptr);
    if (signal > 0 && signal != SIGCHLD) kill(child, signal);
  }
}

int code_of(int status, const Before& before) {
  if (WIFEXITED(status)) {
    if (Before::has_our_modes()) before.restore();  // something ended it in the middle, a sanitizer say
    return WEXITSTATUS(status);
  }
  before.restore();
  const std::string line = "duet-rpc: top was ended by " + process::signal_name(WTERMSIG(status)) + "\n";
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line.data(), line.size());
  return signal_base + WTERMSIG(status);
}

}  // namespace

int draw_under_guard(std::string_view leaving, const std::function<int(const Drawing&)>& draw) {
  Before before{.leaving = std::string(leaving)};
  base::check_call(tcgetattr(STDOUT_FILENO, &before.modes), "tcgetattr");
  const base::Fd self(base::check_call(static_cast<int>(syscall(SYS_pidfd_open, getpid(), 0)), "pidfd_open"));
  const Guard guard(before);
  block({SIGCHLD, SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGTSTP});
  const pid_t child = base::check_call(fork(), "fork");
  if (child == 0) {
    return draw({.parent = self.get(), .abandon = [&] {
                   before.restore_what_is_ours();
                   guard.dismiss();
                   _exit(1);
                 }});
  }
  const int code = code_of(await(child), before);
  guard.end();
  return code;
}

int run_terminal_guard() {
  prctl(PR_SET_NAME, guard_name);
  block({SIGINT, SIGQUIT, SIGTSTP, SIGTTIN, SIGTTOU});
  std::array<char, 4096> packet{};
  const ssize_t size = recv(guard_socket, packet.data(), packet.size(), 0);
  Before before;
  if (size < static_cast<ssize_t>(sizeof before.modes)) return 1;
  std::memcpy(&before.modes, packet.data(), sizeof before.modes);
  before.leaving.assign(packet.data() + sizeof before.modes, static_cast<std::size_t>(size) - sizeof before.modes);
  char word = 0;
  if (recv(guard_socket, &word, 1, 0) == 0) before.restore_what_is_ours();
  return 0;
}

}  // namespace duet::app::top
