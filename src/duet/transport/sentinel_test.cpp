#include "duet/transport/sentinel.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "duet/transport/await_test.h"
#include "duet/transport/temporary_folder_test.h"

namespace duet::transport {
namespace {

using namespace std::chrono_literals;

/// Stands still until it is told; knows how often the sentinel's thread has looked at it.
class WatchedClock final : public base::Clock {
 public:
  base::TimePoint now() const override {
    if (std::this_thread::get_id() != owner_) ++looks_;
    return base::TimePoint(base::Duration(now_));
  }
  base::UtcTime utc() const override { return {}; }
  void advance(base::Duration step) { now_ += step.count(); }
  bool await_looks(int more) const {
    const int before = looks_;
    return await([&] { return looks_ >= before + more; });
  }

 private:
  void doze(std::unique_lock<std::mutex>&, std::condition_variable&, base::TimePoint) override {}
  const std::thread::id owner_ = std::this_thread::get_id();
  std::atomic<base::Duration::rep> now_ = 1'000'000'000;
  mutable std::atomic<int> looks_ = 0;
};

/// A loop with a blocking input, a sentinel, and a thread that plays the world outside.
class Setting {
 public:
  explicit Setting(int input = -1, bool has_input = true) : input_(input >= 0 ? input : pipe.read_end.get()) {
    pthread_sigmask(SIG_BLOCK, nullptr, &mask_before_);
    if (has_input) loop.set_blocking_input(input_, watcher_);
    start(has_input ? input_ : -1);
  }
  Setting(const Setting&) = delete;
  Setting& operator=(const Setting&) = delete;
  ~Setting() {
    join_world();
    sentinel.reset();
    pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
  }

  /// Something that happens outside once the loop waits in the kernel.
  void when_asleep(std::function<void()> happens) {
    world_ = std::thread([this, happens = std::move(happens)] {
      EXPECT_TRUE(await_asleep(loop_thread_));
      happens();
    });
  }
  /// A handler that blocks the loop until `release`.
  void block_loop() {
    loop.defer([this] { EXPECT_TRUE(await([this] { return release.load(); })); });
  }
  void in_world(std::function<void()> happens) { world_ = std::thread(std::move(happens)); }
  void join_world() {
    if (world_.joinable()) world_.join();
  }
  bool await_overdue(base::Duration step) {
    return await([&] {
      if (overdue > 0) return true;
      clock.advance(step);
      return false;
    });
  }

  WatchedClock clock;
  Loop loop{clock};
  base::Pipe pipe = base::make_pipe();
  std::string text;
  std::vector<int> signals;
  std::atomic<int> noted = 0;
  std::atomic<int> overdue = 0;
  std::atomic<base::TimePoint> overdue_at{base::TimePoint{}};
  std::atomic<bool> release = false;
  std::unique_ptr<Sentinel> sentinel;

  static constexpr auto patience = 2s;

 private:
  struct Front final : Loop::Watcher {
    explicit Front(Setting& owner) : setting(owner) {}
    void on_ready(std::uint32_t) override { setting.read(); }
    Setting& setting;
  };

  void start(int input) {
    sentinel = std::make_unique<Sentinel>(loop, Sentinel::Duties{.signals = {SIGUSR1, SIGUSR2},
                                                                 .on_signal =
                                                                     [this](int signal) {
                                                                       EXPECT_EQ(gettid(), loop_thread_);
                                                                       signals.push_back(signal);
                                                                       loop.stop();
                                                                     },
                                                                 .note_signal =
                                                                     [this](int signal) {
                                                                       EXPECT_NE(gettid(), loop_thread_);
                                                                       noted = signal;
                                                                     },
                                                                 .patience = patience,
                                                                 .on_overdue =
                                                                     [this] {
                                                                       overdue_at = clock.now();
                                                                       ++overdue;
                                                                       release = true;
                                                                     },
                                                                 .input = input});
  }
  void read() {
    std::array<char, 64> room;
    const ssize_t count = loop.read_blocking_input(room);
    if (count > 0) text.append(room.data(), static_cast<std::size_t>(count));
    if (count == 0) loop.stop();
  }

  int input_;
  Front watcher_{*this};
  pid_t loop_thread_ = gettid();
  sigset_t mask_before_{};
  std::thread world_;
};

long naps_so_far() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  return used.ru_nvcsw;
}

TEST(ThreadsSentinel, TheFrontIsReadInOneBlockingCall) {
  Setting s;
  s.when_asleep([&] { EXPECT_EQ(write(s.pipe.write_end.get(), "hello", 5), 5); });
  s.loop.turn();
  EXPECT_EQ(s.text, "hello");
}

// A loop that stops leaves a descriptor ready, for which the sentinel would go on knocking at a door nobody opens.
// Counted in naps, since time is nothing to rely on; on a busy machine this thread may be held up before it ends the
// sentinel, but not in each round.
TEST(ThreadsSentinel, EndsAtOnceAlthoughTheLoopHasNotTakenWhatIsReady) {
  long least = 1000;
  for (int round = 0; round < 20; ++round) {
    Setting s;
    s.when_asleep([&] { s.pipe.write_end.reset(); });
    s.loop.run();
    s.join_world();
    s.sentinel->expect_progress();
    s.loop.stop();
    ASSERT_TRUE(s.clock.await_looks(2));  // after the second it knocks
    const long before = naps_so_far();
    s.sentinel.reset();
    least = std::min(least, naps_so_far() - before);
  }
  EXPECT_LT(least, 25);
}

TEST(ThreadsSentinel, ASignalInterruptsTheBlockingRead) {
  Setting s;
  s.when_asleep([] { kill(getpid(), SIGUSR1); });
  s.loop.run();
  EXPECT_EQ(s.signals, std::vector<int>{SIGUSR1});
  EXPECT_EQ(s.noted, SIGUSR1);
}

TEST(ThreadsSentinel, InterruptsTheReadThoughTheProcessWasStartedWithItsOwnSignalBlocked) {
  sigset_t urgent;
  sigset_t before;
  sigemptyset(&urgent);
  sigaddset(&urgent, SIGURG);
  pthread_sigmask(SIG_BLOCK, &urgent, &before);
  std::atomic<bool> ended = false;
  {
    Setting s;
    s.when_asleep([&] {
      kill(getpid(), SIGUSR1);
      const bool interrupted = await([&] { return ended.load(); });
      EXPECT_TRUE(interrupted);
      if (!interrupted) s.pipe.write_end.reset();  // or it would hang for ever
    });
    s.loop.run();
    ended = true;
    EXPECT_EQ(s.signals, std::vector<int>{SIGUSR1});
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

TEST(ThreadsSentinel, ASignalReachesALoopWithoutAFront) {
  Setting s(-1, false);
  s.when_asleep([] { kill(getpid(), SIGUSR2); });
  s.loop.run();
  EXPECT_EQ(s.signals, std::vector<int>{SIGUSR2});
}

TEST(ThreadsSentinel, APostInterruptsTheBlockingRead) {
  Setting s;
  s.when_asleep([&] { s.loop.post([&] { s.loop.stop(); }); });
  s.loop.run();
}

TEST(ThreadsSentinel, AnotherDescriptorInterruptsTheBlockingRead) {
  struct Other final : Loop::Watcher {
    explicit Other(Loop& stopped) : loop(stopped) {}
    void on_ready(std::uint32_t) override { loop.stop(); }
    Loop& loop;
  };
  Setting s;
  const base::Pipe other = base::make_pipe();
  Other watcher(s.loop);
  const Loop::Watch watch = s.loop.watch(other.read_end.get(), EPOLLIN, watcher);
  s.when_asleep([&] { EXPECT_EQ(write(other.write_end.get(), "x", 1), 1); });
  s.loop.run();
  s.join_world();
}

TEST(ThreadsSentinel, PostsAndInputBothArriveHoweverTheyMeet) {
  Setting s;
  constexpr int rounds = 300;
  int posted = 0;
  s.in_world([&] {
    for (int i = 0; i < rounds; ++i) {
      s.loop.post([&] { ++posted; });
      EXPECT_EQ(write(s.pipe.write_end.get(), "x", 1), 1);
    }
    s.pipe.write_end.reset();
  });
  s.loop.run();
  s.loop.turn(s.loop.now());  // what was posted with the last byte
  EXPECT_EQ(s.text.size(), std::size_t{rounds});
  EXPECT_EQ(posted, rounds);
}

TEST(ThreadsSentinel, AHandlerThatBlocksAfterASignalIsOverdueWhenPatienceIsOver) {
  Setting s;
  s.block_loop();
  s.in_world([&] {
    kill(getpid(), SIGUSR1);
    EXPECT_TRUE(await([&] { return s.noted == SIGUSR1; }));
    s.sentinel->expect_end();  // has the sentinel look
    EXPECT_TRUE(s.clock.await_looks(1));
    EXPECT_EQ(s.overdue, 0);
    s.clock.advance(Setting::patience);
    s.sentinel->expect_end();
  });
  s.loop.defer([&] { s.loop.stop(); });
  s.loop.run();
  EXPECT_EQ(s.overdue, 1);
}

TEST(ThreadsSentinel, TheEndThatWasExpectedIsOverdueOnce) {
  Setting s;
  s.block_loop();
  const base::TimePoint asked = s.clock.now();
  s.in_world([&] {
    s.sentinel->expect_end();
    EXPECT_TRUE(await([&] {
      s.clock.advance(500ms);
      s.sentinel->expect_end();
      return s.overdue > 0;
    }));
    s.clock.advance(10 * Setting::patience);
    s.sentinel->expect_end();
  });
  s.loop.turn(s.loop.now());
  s.join_world();
  s.sentinel.reset();
  EXPECT_EQ(s.overdue, 1);
  EXPECT_GE(s.overdue_at.load() - asked, Setting::patience);
}

TEST(ThreadsSentinel, AnEndInTimeIsNotOverdue) {
  Setting s;
  s.sentinel->expect_end();
  s.clock.advance(Setting::patience - 1ms);
  s.sentinel.reset();
  EXPECT_EQ(s.overdue, 0);
}

TEST(ThreadsSentinel, AHandlerThatBlocksWhenTheInputHangsUpIsOverdue) {
  Setting s;
  s.block_loop();
  const base::TimePoint closed = s.clock.now();
  s.in_world([&] {
    s.pipe.write_end.reset();
    EXPECT_TRUE(s.await_overdue(100ms));
  });
  s.loop.turn(s.loop.now());
  EXPECT_GE(s.overdue_at.load() - closed, Setting::patience);
}

TEST(ThreadsSentinel, AHandlerThatBlocksWithAFileAsInputIsOverdue) {
  const TemporaryFolder folder;
  const base::Fd file(open(folder.file("session").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  Setting s(file.get());
  s.block_loop();
  s.in_world([&] { EXPECT_TRUE(s.await_overdue(100ms)); });
  s.loop.turn(s.loop.now());
  EXPECT_EQ(s.overdue, 1);
}

TEST(ThreadsSentinel, ALoopThatWaitsForAnOutputNobodyReadsIsOverdueOnceTheInputHasHungUp) {
  Setting s;
  s.loop.want_blocking_input(false);
  s.when_asleep([&] {
    s.pipe.write_end.reset();
    EXPECT_TRUE(s.await_overdue(100ms));
    s.loop.stop();
  });
  s.loop.run();
  EXPECT_EQ(s.overdue, 1);
}

TEST(ThreadsSentinel, ALoopOfWhichProgressIsExpectedIsOverdueWhenNothingMoves) {
  Setting s;
  s.loop.want_blocking_input(false);
  s.when_asleep([&] {
    s.sentinel->expect_progress();
    EXPECT_TRUE(s.await_overdue(100ms));
    s.loop.stop();
  });
  s.loop.run();
  EXPECT_EQ(s.overdue, 1);
}

TEST(ThreadsSentinel, ALoopThatMovesIsNotOverdueHoweverLongItTakes) {
  Setting s;
  s.loop.want_blocking_input(false);
  s.pipe.write_end.reset();
  std::atomic<int> moves = 0;
  std::function<void()> move = [&] {
    ++moves;
    if (!s.release) s.loop.defer(move);
  };
  s.loop.defer(move);
  s.in_world([&] {
    for (int i = 0; i < 9; ++i) {
      const int before = moves;
      EXPECT_TRUE(await([&] { return moves > before + 1; }));
      EXPECT_TRUE(s.clock.await_looks(2));  // the second has begun after the move
      s.clock.advance(Setting::patience / 3);
    }
    s.release = true;
    s.loop.stop();
  });
  s.loop.run();
  EXPECT_EQ(s.overdue, 0);
}

TEST(ThreadsSentinel, ALoopThatHasLostItsSentinelAsksBeforeItReads) {
  Setting s;
  s.sentinel.reset();
  s.loop.turn(s.loop.now());
  EXPECT_EQ(write(s.pipe.write_end.get(), "hello", 5), 5);
  s.loop.turn();
  EXPECT_EQ(s.text, "hello");
}

void note_urgency(int) {}

TEST(Sentinel, LeavesTheSignalsAsItFoundThem) {
  sigset_t urgent;
  sigemptyset(&urgent);
  sigaddset(&urgent, SIGURG);
  sigset_t original;
  pthread_sigmask(SIG_BLOCK, &urgent, &original);
  struct sigaction old {};
  struct sigaction ours {};
  ours.sa_handler = note_urgency;
  sigaction(SIGURG, &ours, &old);
  Loop loop;
  std::make_unique<Sentinel>(
      loop, Sentinel::Duties{.signals = {SIGUSR1}, .on_signal = [](int) {}, .patience = 1s, .on_overdue = [] {}})
      .reset();
  sigset_t after;
  struct sigaction found {};
  pthread_sigmask(SIG_SETMASK, &original, &after);
  sigaction(SIGURG, &old, &found);
  EXPECT_FALSE(sigismember(&after, SIGUSR1));
  EXPECT_TRUE(sigismember(&after, SIGURG));
  EXPECT_EQ(found.sa_handler, note_urgency);
}

TEST(Sentinel, TellsOfNoSignalWhenItIsGone) {
  Loop loop;
  std::atomic<bool> noted = false;
  bool told = false;
  {
    const Sentinel sentinel(loop, {.signals = {SIGUSR1},
                                   .on_signal = [&](int) { told = true; },
                                   .note_signal = [&](int) { noted = true; },
                                   .patience = 100s,
                                   .on_overdue = [] {}});
    kill(getpid(), SIGUSR1);
    EXPECT_TRUE(await([&] { return noted.load(); }));
  }
  loop.turn(loop.now());
  EXPECT_FALSE(told);
}

}  // namespace
}  // namespace duet::transport
