#include "duet/base/quiet_writer.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>

namespace duet::base {
namespace {

/// Blocks SIGPIPE for this thread. One that arises meanwhile is taken away; one that was there before stays.
class BlockedPipeSignal {
 public:
  BlockedPipeSignal() {
    sigemptyset(&signal_);
    sigaddset(&signal_, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &signal_, &before_);
    // Only a signal that was blocked already can be pending.
    if (sigismember(&before_, SIGPIPE) != 1) return;
    was_blocked_ = true;
    sigset_t pending;
    sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGPIPE) == 1;
  }
  BlockedPipeSignal(const BlockedPipeSignal&) = delete;
  BlockedPipeSignal& operator=(const BlockedPipeSignal&) = delete;
  ~BlockedPipeSignal() {
    if (!was_blocked_) pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

  void discard_raised() const {
    if (was_pending_) return;
    const timespec at_once{};
    while (sigtimedwait(&signal_, nullptr, &at_once) < 0 && errno == EINTR) continue;
  }

 private:
  sigset_t signal_;
  sigset_t before_;
  bool was_blocked_ = false;
  bool was_pending_ = false;
};

bool is_ignored(int signal) {
  struct sigaction action {};
  return sigaction(signal, nullptr, &action) == 0 && (action.sa_flags & SA_SIGINFO) == 0 &&
         action.sa_handler == SIG_IGN;
}

}  // namespace

QuietWriter::QuietWriter() : signal_is_ignored_(is_ignored(SIGPIPE)) {}

ssize_t QuietWriter::write(int fd, std::string_view bytes) const {
  if (signal_is_ignored_) return ::write(fd, bytes.data(), bytes.size());
  const BlockedPipeSignal blocked;
  const ssize_t count = ::write(fd, bytes.data(), bytes.size());
  if (count < 0 && errno == EPIPE) {
    blocked.discard_raised();
    errno = EPIPE;
  }
  return count;
}

}  // namespace duet::base
