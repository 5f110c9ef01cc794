#include "duet/transport/loop.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "duet/transport/await_test.h"
#include "duet/transport/temporary_folder_test.h"

namespace duet::transport {
namespace {

using namespace std::chrono_literals;
using Names = std::vector<std::string>;

struct Setting {
  base::VirtualClock clock;
  Loop loop{clock};

  /// What is there to do now, without waiting.
  void turn() { loop.turn(loop.now()); }
  void advance(base::Duration step) {
    clock.advance(step);
    turn();
  }
};

/// Calls a function when its descriptor is ready.
struct Watch final : Loop::Watcher {
  explicit Watch(std::function<void(std::uint32_t)> then) : act(std::move(then)) {}
  void on_ready(std::uint32_t events) override {
    ++calls;
    act(events);
  }
  std::function<void(std::uint32_t)> act;
  int calls = 0;
};

/// A pipe with a byte in it.
base::Pipe readable_pipe() {
  base::Pipe pipe = base::make_pipe(O_NONBLOCK);
  EXPECT_EQ(write(pipe.write_end.get(), "x", 1), 1);
  return pipe;
}

const auto nothing = [](std::uint32_t) {};

TEST(Loop, RunsTimersInTheOrderOfTheirTimes) {
  Setting s;
  Names ran;
  s.loop.at(s.loop.now() + 3s, [&] { ran.emplace_back("late"); });
  s.loop.at(s.loop.now() + 1s, [&] { ran.emplace_back("early"); });
  s.loop.at(s.loop.now() + 1s, [&] { ran.emplace_back("early, made later"); });
  s.turn();
  EXPECT_EQ(ran, Names{});
  s.advance(1s);
  EXPECT_EQ(ran, (Names{"early", "early, made later"}));
  s.advance(2s);
  EXPECT_EQ(ran, (Names{"early", "early, made later", "late"}));
}

TEST(Loop, ACancelledTimerDoesNotRun) {
  Setting s;
  int ran = 0;
  const Loop::Timer second = s.loop.at(s.loop.now() + 2s, [&] { ++ran; });
  s.loop.at(s.loop.now() + 1s, [&] { s.loop.cancel(second); });
  s.advance(5s);
  s.turn();
  EXPECT_EQ(ran, 0);
}

TEST(Loop, ATimerThatATimerMakesForNowRunsInTheNextTurn) {
  Setting s;
  int ran = 0;
  std::function<void()> again = [&] {
    if (++ran < 3) s.loop.at(s.loop.now(), again);
  };
  s.loop.at(s.loop.now(), again);
  for (const int expected : {1, 2, 3, 3}) {
    s.turn();
    EXPECT_EQ(ran, expected);
  }
}

TEST(Loop, AWaitWithoutEndIsNoTimerInThePast) {
  Setting s;
  s.clock.advance(1s);
  int ran = 0;
  s.loop.after(base::Duration::max(), [&] { ++ran; });
  s.loop.after(1s, [&] { ran += 10; });
  s.turn();
  EXPECT_EQ(ran, 0);
  s.advance(1s);
  EXPECT_EQ(ran, 10);
}

TEST(Loop, DeferredTasksRunAtTheEndOfTheTurn) {
  Setting s;
  Names ran;
  s.loop.at(s.loop.now(), [&] {
    s.loop.defer([&] {
      ran.emplace_back("deferred");
      s.loop.defer([&] { ran.emplace_back("deferred by a deferred one"); });
    });
    ran.emplace_back("timer");
  });
  s.turn();
  EXPECT_EQ(ran, (Names{"timer", "deferred"}));
  s.loop.turn();  // does not wait: there is something to do
  EXPECT_EQ(ran, (Names{"timer", "deferred", "deferred by a deferred one"}));
}

TEST(Loop, WhatATaskThrowsLeavesTheTurnAndTheOthersToTheNext) {
  Setting s;
  int ran = 0;
  s.loop.defer([] { throw std::runtime_error("oops"); });
  s.loop.defer([&] { ++ran; });
  s.loop.post([] { throw std::runtime_error("oops"); });
  s.loop.post([&] { ++ran; });
  s.loop.at(s.loop.now(), [] { throw std::runtime_error("oops"); });
  s.loop.at(s.loop.now(), [&] { ++ran; });
  for (int i = 0; i < 3; ++i) EXPECT_THROW(s.turn(), std::runtime_error);
  s.turn();
  EXPECT_EQ(ran, 3);
}

TEST(Loop, ATurnWaitsForItsDeadlineAndNoLonger) {
  Loop loop;
  const base::TimePoint deadline = loop.now() + 20ms;
  loop.turn(deadline);
  EXPECT_GE(loop.now(), deadline);
  loop.at(loop.now() + 1h, [] {});
  loop.turn(loop.now() - 1s);  // a deadline that is over is none to wait for
}

TEST(Loop, CallsAWatcherAsLongAsItsDescriptorIsReady) {
  Setting s;
  const base::Pipe pipe = readable_pipe();
  Watch watch([](std::uint32_t events) { EXPECT_EQ(events, EPOLLIN); });
  s.loop.watch(pipe.read_end.get(), EPOLLIN, watch);
  s.turn();
  s.turn();
  EXPECT_EQ(watch.calls, 2);
  s.loop.change(pipe.read_end.get(), 0, watch);
  s.turn();
  EXPECT_EQ(watch.calls, 2);
  s.loop.change(pipe.read_end.get(), EPOLLIN, watch);
  s.turn();
  EXPECT_EQ(watch.calls, 3);
  s.loop.unwatch(pipe.read_end.get(), watch);
  s.turn();
  EXPECT_EQ(watch.calls, 3);
}

TEST(Loop, RefusesWhatCannotBeWatched) {
  Setting s;
  Watch watch(nothing);
  const TemporaryFolder folder;
  const base::Fd file(open(folder.file("file").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  EXPECT_THROW(s.loop.watch(file.get(), EPOLLIN, watch), std::system_error);
  EXPECT_THROW(s.loop.change(-1, EPOLLIN, watch), std::system_error);
}

TEST(Loop, AWatcherRemovedByAnotherOneOfTheSameTurnIsNotCalled) {
  Setting s;
  const std::array<base::Pipe, 2> pipes{readable_pipe(), readable_pipe()};
  std::array<std::unique_ptr<Watch>, 2> watches;
  int calls = 0;
  for (const std::size_t i : {0U, 1U}) {
    watches[i] = std::make_unique<Watch>([&, other = 1 - i](std::uint32_t) {
      ++calls;
      s.loop.unwatch(pipes[other].read_end.get(), *watches[other]);
      watches[other].reset();
    });
    s.loop.watch(pipes[i].read_end.get(), EPOLLIN, *watches[i]);
  }
  s.turn();
  EXPECT_EQ(calls, 1);
}

TEST(Loop, ADescriptorClosedAndOpenedAnewInATurnDoesNotGetTheOldOnesEvents) {
  Setting s;
  std::array<base::Pipe, 2> pipes{readable_pipe(), readable_pipe()};
  std::array<std::unique_ptr<Watch>, 2> watches;
  base::Pipe empty;
  Watch newcomer(nothing);
  for (const std::size_t i : {0U, 1U}) {
    watches[i] = std::make_unique<Watch>([&, other = 1 - i](std::uint32_t) {
      if (empty.read_end) return;
      s.loop.unwatch(pipes[other].read_end.get(), *watches[other]);
      pipes[other] = {};
      empty = base::make_pipe(O_NONBLOCK);  // the system gives the lowest numbers, so these
      s.loop.watch(empty.read_end.get(), EPOLLIN, newcomer);
    });
    s.loop.watch(pipes[i].read_end.get(), EPOLLIN, *watches[i]);
  }
  s.turn();
  s.turn();
  EXPECT_EQ(newcomer.calls, 0);
}

TEST(Loop, MoreDescriptorsThanOneWaitReturnsAreAllServed) {
  Setting s;
  std::vector<base::Pipe> pipes;
  std::vector<std::unique_ptr<Watch>> watches;
  for (int i = 0; i < 200; ++i) {
    pipes.push_back(readable_pipe());
    const int fd = pipes.back().read_end.get();
    watches.push_back(std::make_unique<Watch>([fd](std::uint32_t) {
      char byte = 0;
      EXPECT_EQ(read(fd, &byte, 1), 1);
    }));
    s.loop.watch(fd, EPOLLIN, *watches.back());
  }
  for (int i = 0; i < 10; ++i) s.turn();
  for (const auto& watch : watches) EXPECT_EQ(watch->calls, 1);
}

TEST(Loop, ThereIsNoTurnInsideATurn) {
  Setting s;
  EXPECT_FALSE(s.loop.is_turning());
  s.loop.defer([&] {
    EXPECT_TRUE(s.loop.is_turning());
    EXPECT_THROW(s.turn(), std::logic_error);
  });
  s.turn();
  EXPECT_FALSE(s.loop.is_turning());
}

TEST(Loop, WhatAWatcherThrowsLeavesTheTurnAndNoTraceBehind) {
  Setting s;
  const std::array<base::Pipe, 2> pipes{readable_pipe(), readable_pipe()};
  Watch thrower([](std::uint32_t) { throw std::runtime_error("oops"); });
  Watch other(nothing);
  s.loop.watch(pipes[0].read_end.get(), EPOLLIN, thrower);
  s.loop.watch(pipes[1].read_end.get(), EPOLLIN, other);
  EXPECT_THROW(s.turn(), std::runtime_error);
  s.loop.unwatch(pipes[0].read_end.get(), thrower);
  s.turn();
  EXPECT_EQ(thrower.calls, 1);
  EXPECT_GE(other.calls, 1);
}

/// Writes down what it is told.
struct Told final : Loop::Overseer {
  void on_defect(const base::Activity& where) override {
    try {
      throw;
    } catch (const std::logic_error&) {
      throw;
    } catch (const std::exception& fault) {
      defects.push_back(base::to_text(where) + ": " + fault.what());
    }
  }
  void on_turn(base::Duration took, const base::Activity& longest) override {
    turns.emplace_back(took, base::to_text(longest));
  }
  Names defects;
  std::vector<std::pair<base::Duration, std::string>> turns;
};

struct OverseenLoop : testing::Test {
  OverseenLoop() { s.loop.set_overseer(&told); }
  Setting s;
  Told told;
};

void fail() { throw std::runtime_error("oops"); }

TEST_F(OverseenLoop, WhatATimerADeferredOrAPostedTaskThrowsEndsNothing) {
  int ran = 0;
  s.loop.defer([] { fail(); });
  s.loop.defer([&] { ++ran; });
  s.loop.post([] { fail(); });
  s.loop.post([&] { ++ran; });
  s.loop.at(s.loop.now(), [] { fail(); });
  s.loop.at(s.loop.now(), [&] { ++ran; });
  s.turn();
  EXPECT_EQ(ran, 3) << "the rest of the turn goes on";
  EXPECT_EQ(told.defects.size(), 3U);
}

TEST_F(OverseenLoop, WhatAWatcherThrowsCostsTheOtherWatchersNothing) {
  const std::array<base::Pipe, 2> pipes{readable_pipe(), readable_pipe()};
  Watch thrower([](std::uint32_t) { fail(); });
  Watch other(nothing);
  s.loop.watch(pipes[0].read_end.get(), EPOLLIN, thrower);
  s.loop.watch(pipes[1].read_end.get(), EPOLLIN, other);
  s.turn();
  EXPECT_EQ(thrower.calls, 1);
  EXPECT_EQ(other.calls, 1);
  EXPECT_EQ(told.defects, Names{"transport::Watch: oops"});
}

TEST_F(OverseenLoop, WhatTheOverseerThrowsLeavesTheTurn) {
  s.loop.defer([] { throw std::logic_error("the end"); });
  EXPECT_THROW(s.turn(), std::logic_error);
}

TEST_F(OverseenLoop, ATurnIsAsLongAsItsCallsAndTellsTheLongest) {
  const base::Pipe pipe = readable_pipe();
  Watch watch([&](std::uint32_t) { s.clock.advance(2s); });
  s.loop.watch(pipe.read_end.get(), EPOLLIN, watch);
  s.loop.defer([&] { s.clock.advance(1s); });
  s.turn();
  ASSERT_EQ(told.turns.size(), 1U);
  EXPECT_EQ(told.turns[0].first, base::Duration(3s));
  EXPECT_EQ(told.turns[0].second, "transport::Watch");
}

TEST_F(OverseenLoop, ATurnInWhichNothingHappensIsNotTold) {
  s.turn();
  EXPECT_TRUE(told.turns.empty());
}

std::vector<int> epoll_descriptors() {
  std::vector<int> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    if (std::filesystem::read_symlink(entry, gone) == "anon_inode:[eventpoll]") {
      found.push_back(std::stoi(entry.path().filename()));
    }
  }
  return found;
}

TEST(Loop, AWaitThatTheSystemRefusesLeavesTheTurn) {
  const std::vector<int> before = epoll_descriptors();
  Setting s;
  const base::Fd other(open("/dev/null", O_RDONLY | O_CLOEXEC));
  for (const int fd : epoll_descriptors()) {
    if (std::ranges::count(before, fd) == 0) dup3(other.get(), fd, O_CLOEXEC);
  }
  EXPECT_THROW(s.turn(), std::system_error);
}

TEST(Loop, RunEndsAfterTheTurnThatStopsIt) {
  Setting s;
  int turns = 0;
  s.loop.defer([&] {
    ++turns;
    s.loop.stop();
    s.loop.defer([&] { ++turns; });
  });
  s.loop.run();
  EXPECT_EQ(turns, 1);
  s.loop.stop();
  s.loop.run();  // stopped before it began, it does not begin
  EXPECT_EQ(turns, 1);
}

TEST(Loop, ScratchIsForWhoeverReads) {
  Setting s;
  EXPECT_GE(s.loop.scratch().size(), 64U * 1024);
}

/// A front that reads into `text`, and a loop without a Sentinel, which therefore asks before it reads.
struct FrontSetting : Setting {
  explicit FrontSetting(int fd) { loop.set_front(fd, front); }
  Watch front{[this](std::uint32_t) {
    std::array<char, 16> room;
    const ssize_t count = loop.read_front(room);
    if (count > 0) text.append(room.data(), static_cast<std::size_t>(count));
    if (count == 0) loop.want_front(false);
  }};
  std::string text;
};

TEST(LoopFront, IsReadWhenItIsReady) {
  const base::Pipe pipe = base::make_pipe();
  FrontSetting s(pipe.read_end.get());
  s.turn();
  EXPECT_EQ(s.front.calls, 0);
  EXPECT_EQ(write(pipe.write_end.get(), "abc", 3), 3);
  s.loop.turn();
  EXPECT_EQ(s.text, "abc");
}

TEST(LoopFront, IsLeftAloneWhileItIsNotWanted) {
  const base::Pipe pipe = readable_pipe();
  FrontSetting s(pipe.read_end.get());
  s.loop.want_front(false);
  s.turn();
  EXPECT_EQ(s.front.calls, 0);
  s.loop.want_front(true);
  s.turn();
  EXPECT_EQ(s.text, "x");
  s.loop.clear_front();
  EXPECT_EQ(write(pipe.write_end.get(), "y", 1), 1);
  s.turn();
  EXPECT_EQ(s.text, "x");
}

TEST(LoopFront, MayBeAFile) {
  const TemporaryFolder folder;
  const base::Fd file(open(folder.file("session").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  EXPECT_EQ(pwrite(file.get(), "twenty bytes of text", 20, 0), 20);
  FrontSetting s(file.get());
  for (int i = 0; i < 5; ++i) s.turn();
  EXPECT_EQ(s.text, "twenty bytes of text");
  EXPECT_EQ(s.front.calls, 3);  // the end is told once
}

TEST(LoopFront, OthersAndTimersAreServedBesideIt) {
  const base::Pipe pipe = base::make_pipe();
  FrontSetting s(pipe.read_end.get());
  const base::Pipe other = readable_pipe();
  Watch watch(nothing);
  s.loop.watch(other.read_end.get(), EPOLLIN, watch);
  int timers = 0;
  s.loop.at(s.loop.now(), [&] { ++timers; });
  s.turn();
  EXPECT_EQ(watch.calls, 1);
  EXPECT_EQ(timers, 1);
  EXPECT_EQ(s.front.calls, 0);
}

TEST(LoopFront, IsNotReadInATurnInWhichAnotherOneClearsIt) {
  const base::Pipe pipe = readable_pipe();
  FrontSetting s(pipe.read_end.get());
  const base::Pipe other = readable_pipe();
  Watch watch([&](std::uint32_t) { s.loop.clear_front(); });
  s.loop.watch(other.read_end.get(), EPOLLIN, watch);
  s.turn();
  EXPECT_EQ(s.front.calls, 0);
}

TEST(LoopFront, TheBackIsWaitedForTogetherWithIt) {
  const base::Pipe pipe = base::make_pipe();
  FrontSetting s(pipe.read_end.get());
  const base::Pipe out = base::make_pipe(O_NONBLOCK);
  const std::string page(4096, 'x');
  while (write(out.write_end.get(), page.data(), page.size()) > 0) continue;
  Watch back([&](std::uint32_t events) {
    EXPECT_EQ(events, EPOLLOUT);
    s.loop.clear_back();
  });
  s.loop.want_back(out.write_end.get(), back);
  s.turn();
  EXPECT_EQ(back.calls, 0);
  std::array<char, 4096> room;
  while (read(out.read_end.get(), room.data(), room.size()) > 0) continue;
  EXPECT_EQ(write(pipe.write_end.get(), "abc", 3), 3);
  s.loop.turn();
  EXPECT_EQ(back.calls, 1);
  EXPECT_EQ(s.text, "abc");
}

TEST(ThreadsLoop, PostedTasksRunOnceInTheOrderOfEachThread) {
  Loop loop;
  constexpr int threads = 4;
  constexpr int posts = 500;
  std::array<std::vector<int>, threads> seen;
  const std::thread::id own = std::this_thread::get_id();
  int left = threads * posts;
  std::vector<std::thread> posters;
  for (std::size_t t = 0; t < threads; ++t) {
    posters.emplace_back([&, t] {
      for (int i = 0; i < posts; ++i) {
        loop.post([&, t, i] {
          EXPECT_EQ(std::this_thread::get_id(), own);
          seen[t].push_back(i);
          if (--left == 0) loop.stop();
        });
      }
    });
  }
  loop.run();
  for (std::thread& poster : posters) poster.join();
  std::vector<int> expected(posts);
  for (int i = 0; i < posts; ++i) expected[static_cast<std::size_t>(i)] = i;
  for (const auto& numbers : seen) EXPECT_EQ(numbers, expected);
}

TEST(ThreadsLoop, APostWakesALoopThatWaits) {
  Loop loop;
  const pid_t loop_thread = gettid();
  std::atomic<bool> ran = false;
  std::thread poster([&] {
    EXPECT_TRUE(await_asleep(loop_thread));
    loop.post([&] { ran = true; });
  });
  while (!ran) loop.turn();
  poster.join();
}

TEST(ThreadsLoop, AnyThreadMayStopIt) {
  Loop loop;
  const pid_t loop_thread = gettid();
  std::thread stopper([&] {
    EXPECT_TRUE(await_asleep(loop_thread));
    loop.stop();
  });
  loop.run();
  stopper.join();
}

}  // namespace
}  // namespace duet::transport
