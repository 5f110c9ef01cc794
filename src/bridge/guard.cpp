#include "bridge/guard.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "duet/base/clock.h"
#include "process/launch.h"
#include "process/process_tree.h"

namespace duet::bridge {
namespace {

constexpr std::chrono::seconds time_to_end{2};
constexpr std::chrono::seconds time_to_end_alone{1};  // when we are gone, nobody waits for a clean end
constexpr std::chrono::milliseconds between_kills{50};

class Guard {
 public:
  int run(std::span<const char* const> command);

 private:
  bool start(std::span<const char* const> command);
  void wait();
  void take_order();
  bool reap();
  void end_tree(int signal);
  void tell(const std::string& packet) { send(guard_control, packet.data(), packet.size(), MSG_NOSIGNAL); }

  base::Fd signals_;
  pid_t server_ = 0;
  bool can_hear_ = true;
  std::optional<base::TimePoint> kill_at_;
};

int Guard::run(std::span<const char* const> command) {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  sigset_t wanted;
  sigemptyset(&wanted);
  for (const int signal : {SIGCHLD, SIGTERM, SIGINT, SIGHUP}) sigaddset(&wanted, signal);
  sigprocmask(SIG_BLOCK, &wanted, nullptr);
  signals_.reset(base::check_call(signalfd(-1, &wanted, SFD_CLOEXEC), "signalfd"));
  if (!start(command)) return 1;
  while (reap()) wait();
  return 0;
}

bool Guard::start(std::span<const char* const> command) {
  try {
    server_ = process::launch({.arguments = {command.begin(), command.end()},
                               .environment = process::current_environment(),
                               .standard = {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}})
                  .pid;
  } catch (const process::LaunchError& error) {
    tell("failed " + std::to_string(static_cast<int>(error.cause())) + ' ' + error.what());
    return false;
  }
  tell("started " + std::to_string(server_));
  // The streams are the server's alone, so that their end is seen.
  const base::Fd nothing(base::check_call(open("/dev/null", O_RDWR | O_CLOEXEC), "open /dev/null"));
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) base::check_call(dup2(nothing.get(), fd), "dup2");
  return true;
}

void Guard::wait() {
  std::array<pollfd, 2> ready{{{signals_.get(), POLLIN, 0}, {can_hear_ ? guard_control : -1, POLLIN, 0}}};
  int timeout = -1;
  if (kill_at_) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(*kill_at_ - base::system_clock().now());
    timeout = static_cast<int>(std::max<std::int64_t>(left.count(), 0));
  }
  poll(ready.data(), ready.size(), timeout);
  if (ready[0].revents != 0) {
    signalfd_siginfo arrived{};
    const bool got = read(signals_.get(), &arrived, sizeof arrived) == sizeof arrived;
    if (got && arrived.ssi_signo != SIGCHLD) end_tree(SIGTERM);
  }
  if (ready[1].revents != 0) take_order();
  if (kill_at_ && base::system_clock().now() >= *kill_at_) end_tree(SIGKILL);
}

void Guard::take_order() {
  std::array<char, 16> room{};
  const ssize_t count = recv(guard_control, room.data(), room.size(), 0);
  can_hear_ = count > 0;
  const std::string_view order(room.data(), can_hear_ ? static_cast<std::size_t>(count) : 0);
  end_tree(order == "kill" ? SIGKILL : SIGTERM);
  if (!can_hear_) kill_at_ = std::min(*kill_at_, base::system_clock().now() + time_to_end_alone);
}

// False: no process of the tree is left.
bool Guard::reap() {
  for (;;) {
    int status = 0;
    const pid_t pid = waitpid(-1, &status, WNOHANG);
    if (pid < 0) return false;
    if (pid == 0) return true;
    if (pid != server_) continue;
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
    const int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    tell("ended " + std::to_string(code) + ' ' + std::to_string(signal));
    end_tree(SIGTERM);
  }
}

// The first TERM sets the time of the KILL; KILL is repeated, since killed processes may have left children to us.
void Guard::end_tree(int signal) {
  const base::TimePoint now = base::system_clock().now();
  if (signal == SIGTERM && kill_at_) return;
  process::signal_descendants(signal);
  kill_at_ = signal == SIGTERM ? now + time_to_end : now + between_kills;
}

}  // namespace

int run_guard(std::span<const char* const> command) { return Guard().run(command); }

}  // namespace duet::bridge
