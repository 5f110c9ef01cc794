#include "duet/base/quiet_writer.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "duet/base/fd.h"

namespace duet::base {
namespace {

std::atomic<int> raised = 0;

/// While it lives SIGPIPE does `action`; SIG_ERR: it is counted in `raised`.
class PipeSignal {
 public:
  explicit PipeSignal(void (*action)(int)) {
    raised = 0;
    struct sigaction wanted {};
    wanted.sa_handler = action == SIG_ERR ? [](int) { ++raised; } : action;
    sigaction(SIGPIPE, &wanted, &before_);
    sigset_t signal;
    sigemptyset(&signal);
    sigaddset(&signal, SIGPIPE);
    pthread_sigmask(SIG_UNBLOCK, &signal, &mask_before_);
  }
  PipeSignal(const PipeSignal&) = delete;
  PipeSignal& operator=(const PipeSignal&) = delete;
  ~PipeSignal() {
    pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);  // what waits is counted, and ends nothing
    sigaction(SIGPIPE, &before_, nullptr);
  }

 private:
  struct sigaction before_ {};
  sigset_t mask_before_{};
};

bool is_blocked() {
  sigset_t now;
  pthread_sigmask(SIG_BLOCK, nullptr, &now);
  return sigismember(&now, SIGPIPE) == 1;
}

bool is_pending() {
  sigset_t now;
  sigpending(&now);
  return sigismember(&now, SIGPIPE) == 1;
}

void block_pipe_signal() {
  sigset_t signal;
  sigemptyset(&signal);
  sigaddset(&signal, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &signal, nullptr);
}

/// The end of a pipe that nobody reads.
Fd broken_pipe() { return std::move(make_pipe().write_end); }

TEST(QuietWriter, AReaderThatIsGoneIsAnErrorAndNoSignal) {
  const Fd pipe = broken_pipe();
  for (void (*action)(int) : {SIG_ERR, SIG_DFL, SIG_IGN}) {
    const PipeSignal signal(action);
    EXPECT_EQ(QuietWriter().write(pipe.get(), "text"), -1);
    EXPECT_EQ(errno, EPIPE);
    EXPECT_EQ(raised, 0);
    EXPECT_FALSE(is_blocked());
    EXPECT_FALSE(is_pending());
  }
}

TEST(QuietWriter, MadeWhileTheSignalIsNotIgnoredItIsQuietWhateverBecomesOfThat) {
  const Fd pipe = broken_pipe();
  const PipeSignal signal(SIG_DFL);
  const QuietWriter writer;
  for (void (*action)(int) : {SIG_IGN, SIG_ERR, SIG_DFL}) {
    const PipeSignal changed(action);
    EXPECT_EQ(writer.write(pipe.get(), "text"), -1);
    EXPECT_EQ(errno, EPIPE);
    EXPECT_EQ(raised, 0);
  }
}

TEST(QuietWriter, WritesLikeAnyOther) {
  const PipeSignal signal(SIG_ERR);
  const Pipe pipe = make_pipe();
  EXPECT_EQ(QuietWriter().write(pipe.write_end.get(), "text"), 4);
  std::string got(4, ' ');
  EXPECT_EQ(read(pipe.read_end.get(), got.data(), got.size()), 4);
  EXPECT_EQ(got, "text");
  EXPECT_FALSE(is_blocked());
}

TEST(QuietWriter, AThreadThatBlocksTheSignalGoesOnBlockingIt) {
  const PipeSignal signal(SIG_ERR);
  block_pipe_signal();
  EXPECT_EQ(QuietWriter().write(broken_pipe().get(), "text"), -1);
  EXPECT_TRUE(is_blocked());
  EXPECT_FALSE(is_pending()) << "it was ours";
}

TEST(QuietWriter, ASignalThatWaitedBeforeStillWaits) {
  const PipeSignal signal(SIG_ERR);
  block_pipe_signal();
  raise(SIGPIPE);
  EXPECT_EQ(QuietWriter().write(broken_pipe().get(), "text"), -1);
  EXPECT_TRUE(is_pending());
}

}  // namespace
}  // namespace duet::base
