#include "duet/transport/sentinel.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

namespace duet::transport {
namespace {

using std::chrono::milliseconds;

constexpr auto look_every = milliseconds(50);
constexpr auto knock_every = milliseconds(1);

sigset_t set_of(const std::vector<int>& signals) {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : signals) sigaddset(&set, signal);
  return set;
}

void ignore_politely(int) {}

// Without SA_RESTART, so that a blocking read returns; and let in, whatever the process was started with.
void install_knock() {
  struct sigaction action {};
  action.sa_handler = ignore_politely;
  base::check_call(sigaction(SIGURG, &action, nullptr), "sigaction");
  const sigset_t knock = set_of({SIGURG});
  pthread_sigmask(SIG_UNBLOCK, &knock, nullptr);
}

bool never_hangs_up(int fd) {
  struct stat status {};
  return fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
}

}  // namespace

Sentinel::SignalsBefore::SignalsBefore() {
  pthread_sigmask(SIG_BLOCK, nullptr, &mask_);
  sigaction(SIGURG, nullptr, &urgent_);
}

Sentinel::SignalsBefore::~SignalsBefore() {
  sigaction(SIGURG, &urgent_, nullptr);
  pthread_sigmask(SIG_SETMASK, &mask_, nullptr);
}

Sentinel::Sentinel(Loop& loop, Duties duties)
    : loop_(loop),
      duties_(std::move(duties)),
      loop_thread_(pthread_self()),
      wake_(base::check_call(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "eventfd")) {
  const sigset_t ours = set_of(duties_.signals);
  pthread_sigmask(SIG_BLOCK, &ours, nullptr);
  signals_ = base::Fd(base::check_call(signalfd(-1, &ours, SFD_CLOEXEC | SFD_NONBLOCK), "signalfd"));
  install_knock();
  input_gone_ = duties_.input >= 0 && never_hangs_up(duties_.input);
  turn_seen_at_ = loop_.now();

  sigset_t everything;
  sigset_t before;
  sigfillset(&everything);
  pthread_sigmask(SIG_SETMASK, &everything, &before);
  thread_ = std::thread([this] { run(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  loop_.guarded_ = true;
}

Sentinel::~Sentinel() {
  loop_.guarded_ = false;
  done_ = true;
  expect_end();
  thread_.join();
}

void Sentinel::expect_end() {
  end_expected_ = true;
  wake();
}

void Sentinel::expect_progress() {
  progress_expected_ = true;
  wake();
}

void Sentinel::wake() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(wake_.get(), &one, sizeof one);
}

void Sentinel::run() {
  while (!done_) {
    const int input = input_gone_ ? -1 : duties_.input;
    const int others = duties_.input >= 0 ? loop_.epoll_.get() : -1;  // without it the loop waits for them itself
    std::array<pollfd, 4> ready{
        {{wake_.get(), POLLIN, 0}, {signals_.get(), POLLIN, 0}, {others, POLLIN, 0}, {input, POLLRDHUP, 0}}};
    poll(ready.data(), ready.size(), timeout_ms());
    if (ready[0].revents != 0) {
      std::uint64_t count = 0;
      [[maybe_unused]] const ssize_t got = read(wake_.get(), &count, sizeof count);
    }
    if (ready[1].revents != 0) handle_signal();
    if (ready[3].revents != 0 || progress_expected_) input_gone_ = hung_up_ = true;
    if (end_expected_ && !deadline_) deadline_ = loop_.now() + duties_.patience;
    if (input_gone_ && !deadline_) look_whether_stuck();
    if (deadline_ && loop_.now() >= *deadline_ && !done_) {
      duties_.on_overdue();
      deadline_ = base::TimePoint::max();
    }
    if (ready[2].revents != 0 && !done_) knock();
  }
}

int Sentinel::timeout_ms() const {
  if (deadline_ == base::TimePoint::max()) return -1;
  if (deadline_) {
    const auto left = std::chrono::ceil<milliseconds>(*deadline_ - loop_.now());
    return static_cast<int>(std::max(left, milliseconds(0)).count());
  }
  return input_gone_ ? static_cast<int>(look_every.count()) : -1;
}

void Sentinel::handle_signal() {
  signalfd_siginfo info{};
  if (read(signals_.get(), &info, sizeof info) != sizeof info) return;
  const int signal = static_cast<int>(info.ssi_signo);
  end_expected_ = true;
  if (duties_.note_signal) duties_.note_signal(signal);
  loop_.post([this, alive = std::weak_ptr(alive_), signal] {
    if (!alive.expired()) duties_.on_signal(signal);
  });
}

// A signal that comes just before the read begins is lost, so one is sent again and again.
void Sentinel::knock() {
  loop_.attention_ = true;
  for (auto spent = milliseconds(0); loop_.attention_ && spent < look_every; spent += knock_every) {
    if (loop_.in_blocking_read_) pthread_kill(loop_thread_, SIGURG);
    std::array<pollfd, 2> ready{{{wake_.get(), POLLIN, 0}, {signals_.get(), POLLIN, 0}}};
    if (poll(ready.data(), ready.size(), static_cast<int>(knock_every.count())) > 0) return;
  }
}

bool Sentinel::loop_is_handling() const { return !loop_.waiting_ && !loop_.in_blocking_read_; }

void Sentinel::look_whether_stuck() {
  const std::uint64_t turn = loop_.turns_;
  const base::TimePoint now = loop_.now();
  // A loop that waits while it does not want its input has too much to write, and nobody reads it.
  const bool held_up = loop_is_handling() || (hung_up_ && !loop_.input_wanted_);
  if (turn != turn_seen_ || !held_up) {
    turn_seen_ = turn;
    turn_seen_at_ = now;
  }
  if (now - turn_seen_at_ >= duties_.patience) deadline_ = now;
}

}  // namespace duet::transport
