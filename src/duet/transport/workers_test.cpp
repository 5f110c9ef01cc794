#include "duet/transport/workers.h"

#include <signal.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <system_error>
#include <thread>

#include <gtest/gtest.h>

#include "duet/transport/await_test.h"

namespace duet::transport {
namespace {

TEST(ThreadsWorkers, DoesWhatIsGivenWithAFewThreads) {
  std::mutex mutex;
  std::set<std::thread::id> threads;
  std::atomic<int> done = 0;
  {
    Workers workers({.threads = 3});
    for (int i = 0; i < 100; ++i) {
      workers.give([&] {
        const std::lock_guard lock(mutex);
        threads.insert(std::this_thread::get_id());
        ++done;
      });
    }
    EXPECT_TRUE(await([&] { return done == 100; }));
  }
  EXPECT_LE(threads.size(), 3U);
  EXPECT_FALSE(threads.contains(std::this_thread::get_id()));
}

TEST(ThreadsWorkers, WorksAreDoneAtTheSameTime) {
  std::atomic<int> there = 0;
  Workers workers({.threads = 2});
  for (int i = 0; i < 2; ++i) {
    workers.give([&] {
      ++there;
      EXPECT_TRUE(await([&] { return there == 2; }));
    });
  }
  EXPECT_TRUE(await([&] { return there == 2; }));
}

TEST(ThreadsWorkers, TheEndWaitsForWhatHasBegunAndDropsTheRest) {
  std::atomic<bool> begun = false;
  std::atomic<bool> other_given = false;
  std::atomic<int> done = 0;
  const auto held = std::make_shared<int>();
  std::optional<Workers> workers(Workers::Limits{.threads = 1});
  workers->give([&] {
    begun = true;
    EXPECT_TRUE(await([&] { return other_given && held.use_count() == 1; }));  // the other one has been dropped
    ++done;
  });
  workers->give([&, held] { ++done; });
  other_given = true;
  EXPECT_TRUE(await([&] { return begun.load(); }));
  workers.reset();
  EXPECT_EQ(done, 1);
}

TEST(ThreadsWorkers, TooMuchIsRefused) {
  std::atomic<bool> begun = false;
  std::atomic<bool> go_on = false;
  Workers workers({.threads = 1, .waiting = 1});
  workers.give([&] {
    begun = true;
    EXPECT_TRUE(await([&] { return go_on.load(); }));
  });
  EXPECT_TRUE(await([&] { return begun.load(); }));
  workers.give([] {});
  EXPECT_THROW(workers.give([] {}), std::system_error);
  go_on = true;
}

TEST(ThreadsWorkers, ItsThreadsGetNoSignals) {
  std::atomic<int> blocked = -1;
  Workers workers({});
  workers.give([&] {
    sigset_t now;
    pthread_sigmask(SIG_BLOCK, nullptr, &now);
    blocked = sigismember(&now, SIGTERM);
  });
  EXPECT_TRUE(await([&] { return blocked == 1; }));
}

}  // namespace
}  // namespace duet::transport
