#include "app/commands/password.h"

#include <poll.h>
#include <signal.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <optional>

#include "app/client/task_end.h"
#include "app/project/failure.h"

namespace duet::app {
namespace {

constexpr std::size_t longest_password = 1024;
constexpr int ending_signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

volatile std::sig_atomic_t signal_that_came = 0;

void remember_signal(int number) { signal_that_came = number; }

/// A terminal that does not show what is typed. A signal that would end the program comes while it waits, and does its
/// work when the terminal is as it was.
class QuietTerminal {
 public:
  QuietTerminal() {
    sigset_t ending;
    sigemptyset(&ending);
    for (const int number : ending_signals) sigaddset(&ending, number);
    sigprocmask(SIG_BLOCK, &ending, &unblocked_);
    struct sigaction remember {};
    remember.sa_handler = remember_signal;
    for (std::size_t i = 0; i < std::size(ending_signals); ++i) {
      sigaction(ending_signals[i], &remember, &before_[i]);
      if (before_[i].sa_handler == SIG_IGN) sigaction(ending_signals[i], &before_[i], nullptr);
    }
    tcgetattr(STDIN_FILENO, &shown_);
    termios quiet = shown_;
    quiet.c_lflag &= ~static_cast<tcflag_t>(ECHO);
    quiet.c_lflag |= ECHONL;
    quiet.c_cc[VSUSP] = _POSIX_VDISABLE;
    tcsetattr(STDIN_FILENO, TCSAFLUSH, &quiet);
  }
  QuietTerminal(const QuietTerminal&) = delete;
  QuietTerminal& operator=(const QuietTerminal&) = delete;
  ~QuietTerminal() {
    tcsetattr(STDIN_FILENO, TCSAFLUSH, &shown_);
    for (std::size_t i = 0; i < std::size(ending_signals); ++i) sigaction(ending_signals[i], &before_[i], nullptr);
    if (signal_that_came != 0) raise(signal_that_came);
    sigprocmask(SIG_SETMASK, &unblocked_, nullptr);
  }

  /// False: a signal came first.
  bool await_input() const {
    pollfd input{STDIN_FILENO, POLLIN, 0};
    while (signal_that_came == 0) {
      if (ppoll(&input, 1, nullptr, &unblocked_) >= 0) return true;
      if (errno != EINTR) return true;  // the read will tell
    }
    return false;
  }

 private:
  termios shown_{};
  sigset_t unblocked_{};
  struct sigaction before_[std::size(ending_signals)] = {};
};

// None: stdin ended before it, or a signal came. A terminal is waited for before each byte, since a read would not end
// at a signal, and Ctrl-D after some characters makes one more necessary.
std::optional<std::string> next_line(const QuietTerminal* terminal) {
  std::string line;
  while (line.size() <= longest_password) {
    char c = 0;
    if (terminal != nullptr && !terminal->await_input()) return std::nullopt;
    const ssize_t count = read(STDIN_FILENO, &c, 1);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return line.empty() ? std::nullopt : std::optional(line);
    if (c == '\n') return line;
    line += c;
  }
  throw Failure("a password has at most " + std::to_string(longest_password) + " bytes");
}

std::optional<std::string> asked_line(const QuietTerminal& terminal, const std::string& question) {
  print_aside(question);
  return next_line(&terminal);
}

std::string without_return(std::string line) {
  if (line.ends_with('\r')) line.pop_back();
  return line;
}

}  // namespace

std::string new_password(const std::string& what) {
  std::optional<std::string> first;
  std::optional<std::string> second;
  if (isatty(STDIN_FILENO) == 1) {
    const QuietTerminal quiet;
    first = asked_line(quiet, "Password for " + what + ": ");
    if (first && !first->empty()) second = asked_line(quiet, "The same again: ");
    if (!second) second = "";
  } else {
    first = next_line(nullptr);
  }
  if (!first || without_return(*first).empty()) {
    throw Failure(what + " needs a password: type one, or give it as the first line of stdin");
  }
  if (second && without_return(*second) != without_return(*first)) throw Failure("the two passwords are not the same");
  if (first->find('\0') != first->npos) throw Failure("a password cannot have a NUL in it");
  return without_return(*first);
}

}  // namespace duet::app
