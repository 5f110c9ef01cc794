#include "bridge/server_process.h"

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>

#include <array>
#include <charconv>
#include <chrono>
#include <utility>

namespace duet::bridge {
namespace {

constexpr int most_wait_ms = 2000;                         // for a guard that has been told to kill
constexpr std::chrono::seconds time_for_server_to_end{3};  // for one that has been told to end: it gives the server 2
constexpr std::chrono::seconds time_to_kill{1};            // for one that was helped on

struct SocketPair {
  base::Fd ours;
  base::Fd theirs;
};

SocketPair make_socket_pair() {
  std::array<int, 2> ends{};
  base::check_call(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()), "socketpair");
  return {base::Fd(ends[0]), base::Fd(ends[1])};
}

// Takes a word and the blank behind it from the front.
std::string_view take_word(std::string_view& text) {
  const std::string_view word = text.substr(0, text.find(' '));
  text.remove_prefix(std::min(word.size() + 1, text.size()));
  return word;
}

int take_number(std::string_view& text) {
  const std::string_view word = take_word(text);
  int number = 0;
  std::from_chars(word.data(), word.data() + word.size(), number);
  return number;
}

}  // namespace

ServerProcess::ServerProcess(transport::Loop& loop, const GuardProgram& guard, process::Launch launch, Events events)
    : loop_(loop), events_(std::move(events)) {
  SocketPair pair = make_socket_pair();
  launch.arguments.insert(launch.arguments.begin(), guard.arguments.begin(), guard.arguments.end());
  launch.executable = guard.executable;
  launch.further = {{pair.theirs.get(), guard_control}};
  child_ = std::make_unique<process::PipedChild>(loop, std::move(launch),
                                                 [this](process::ExitStatus) { guard_has_ended(); });
  control_ = std::move(pair.ours);
  watch_ = loop_.watch(control_.get(), EPOLLIN, watcher_);
  hearing_ = true;
}

ServerProcess::~ServerProcess() {
  stop_hearing();
  if (!child_->is_running()) return;
  help_guard();
  pollfd ended{child_->pidfd(), POLLIN, 0};
  if (poll(&ended, 1, most_wait_ms) == 0) process::kill_descendants(guard_pid());  // and the guard goes with the child
}

bool ServerProcess::server_has_ended() const {
  if (phase_ != Phase::running) return phase_ == Phase::ended;
  const auto now = process::read_process(pid_);
  return !server_ || !now || now->start_ticks != server_->start_ticks || now->is_zombie();
}

void ServerProcess::end() {
  order("end");
  expect_end();
}

void ServerProcess::expect_end() {
  if (end_timer_) return;
  end_timer_ = loop_.after(time_for_server_to_end, [this] {
    help_guard();
    end_timer_ = loop_.after(time_to_kill, [this] { do_without_guard(); });
  });
}

// It may have been stopped, by the server for one.
void ServerProcess::help_guard() {
  order("kill");
  child_->signal_group(SIGCONT);
}

void ServerProcess::do_without_guard() {
  process::kill_descendants(guard_pid());
  child_->signal_group(SIGKILL);
}

void ServerProcess::order(std::string_view word) {
  if (control_) send(control_.get(), word.data(), word.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
}

void ServerProcess::hear() {
  std::array<char, 4096> room;
  while (hearing_) {
    const ssize_t count = recv(control_.get(), room.data(), room.size(), MSG_DONTWAIT);
    if (count < 0) return;
    if (count == 0) return stop_hearing();
    take({room.data(), static_cast<std::size_t>(count)});
  }
}

void ServerProcess::take(std::string_view packet) {
  const std::string_view what = take_word(packet);
  if (what == "started") {
    pid_ = take_number(packet);
    server_ = process::read_process(pid_);
    if (server_ && server_->parent != guard_pid()) server_.reset();
    phase_ = Phase::running;
    events_.started();
  } else if (what == "failed") {
    const auto cause = static_cast<process::LaunchError::Cause>(take_number(packet));
    phase_ = Phase::ended;
    expect_end();
    events_.not_started(cause, packet);
  } else if (what == "ended") {
    const int code = take_number(packet);
    phase_ = Phase::ended;
    expect_end();
    events_.ended({.code = code, .signal = take_number(packet)});
  }
}

void ServerProcess::guard_has_ended() {
  hear();
  stop_hearing();
  end_timer_.cancel();
  const Phase phase = std::exchange(phase_, Phase::ended);
  if (phase == Phase::running) {
    // The guard was killed, and the server with whatever it started may live on: what is in its group goes.
    if (server_) process::kill_group(*server_);
    events_.ended({.code = 0, .signal = SIGKILL});
  } else if (phase == Phase::starting) {
    events_.not_started(process::LaunchError::Cause::exec_failed, "the guard has ended");
  }
  const std::function<void()> tell = std::move(events_.gone);
  tell();
}

void ServerProcess::stop_hearing() {
  hearing_ = false;
  watch_.cancel();
}

}  // namespace duet::bridge
