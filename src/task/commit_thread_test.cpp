#include "task/commit_thread.h"

#include <signal.h>

#include <future>
#include <thread>

#include <gtest/gtest.h>

namespace duet::task {
namespace {

TEST(CommitThread, DoesWhatItIsGivenOnAThreadOfItsOwn) {
  CommitThread thread;
  for (int i = 0; i < 3; ++i) {
    std::promise<std::thread::id> promise;
    thread.give([&] { promise.set_value(std::this_thread::get_id()); });
    EXPECT_NE(promise.get_future().get(), std::this_thread::get_id());
  }
}

TEST(CommitThread, FinishesItsWorkBeforeItEnds) {
  int done = 0;
  {
    CommitThread thread;
    thread.give([&] { done = 1; });
  }
  EXPECT_EQ(done, 1);
}

TEST(CommitThread, TakesNoSignalsButThoseOfItsOwnFaults) {
  CommitThread thread;
  std::promise<sigset_t> promise;
  thread.give([&] {
    sigset_t blocked;
    pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
    promise.set_value(blocked);
  });
  const sigset_t blocked = promise.get_future().get();
  EXPECT_EQ(sigismember(&blocked, SIGTERM), 1);
  EXPECT_EQ(sigismember(&blocked, SIGSEGV), 0);
}

}  // namespace
}  // namespace duet::task
