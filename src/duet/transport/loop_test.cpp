#include "duet/transport/loop.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "duet/transport/await_test.h"
#include "duet/transport/refused_watches_test.h"
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
struct Called final : Loop::Watcher {
  explicit Called(std::function<void(std::uint32_t)> then) : act(std::move(then)) {}
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
  const Loop::Timer late = s.loop.at(s.loop.now() + 3s, [&] { ran.emplace_back("late"); });
  const Loop::Timer early = s.loop.at(s.loop.now() + 1s, [&] { ran.emplace_back("early"); });
  const Loop::Timer later = s.loop.at(s.loop.now() + 1s, [&] { ran.emplace_back("early, made later"); });
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
  Loop::Timer second = s.loop.at(s.loop.now() + 2s, [&] { ++ran; });
  const Loop::Timer first = s.loop.at(s.loop.now() + 1s, [&] { second.cancel(); });
  s.advance(5s);
  s.turn();
  EXPECT_EQ(ran, 0);
}

TEST(Loop, ATimerGoesWithItsOwner) {
  Setting s;
  int ran = 0;
  {
    const Loop::Timer timer = s.loop.after(1s, [&] { ++ran; });
  }
  EXPECT_FALSE(s.loop.next());
  s.advance(2s);
  EXPECT_EQ(ran, 0);
}

TEST(Loop, ATimerSaysWhetherItIsStillToComeAndMayBeMoved) {
  Setting s;
  int ran = 0;
  Loop::Timer timer;
  EXPECT_FALSE(timer);
  timer = s.loop.after(1s, [&] {
    EXPECT_FALSE(timer) << "so that a new one may take its place";
    ++ran;
  });
  Loop::Timer other = std::move(timer);
  EXPECT_FALSE(timer);  // NOLINT(bugprone-use-after-move)
  EXPECT_TRUE(other);
  timer = std::move(other);
  s.advance(1s);
  EXPECT_EQ(ran, 1);
  EXPECT_FALSE(timer);
}

TEST(Loop, ANewTimerTakesThePlaceOfTheOldOne) {
  Setting s;
  Names ran;
  Loop::Timer timer = s.loop.after(1s, [&] { ran.emplace_back("old"); });
  timer = s.loop.after(1s, [&] { ran.emplace_back("new"); });
  s.advance(1s);
  EXPECT_EQ(ran, Names{"new"});
}

TEST(Loop, ATimerMayRunWithoutAnOwner) {
  Setting s;
  int ran = 0;
  s.loop.after(1s, [&] { ++ran; }).detach();
  s.advance(1s);
  EXPECT_EQ(ran, 1);
}

/// Held by nobody but the task of its own timer.
struct Circle {
  Loop::Timer timer;
  Loop::Deferred deferred;
  std::shared_ptr<bool> ended = std::make_shared<bool>(false);
  ~Circle() { *ended = true; }
};

TEST(Loop, TheEndOfATaskMayBeTheEndOfItsOwner) {
  Setting s;
  auto circle = std::make_shared<Circle>();
  const std::shared_ptr<bool> ended = circle->ended;
  Circle* const bare = circle.get();
  bare->timer = s.loop.after(1s, [circle = std::move(circle)] {});
  bare->timer = s.loop.after(1s, [] { ADD_FAILURE() << "its owner is gone"; });
  EXPECT_TRUE(*ended);
  s.advance(1s);

  circle = std::make_shared<Circle>();
  Circle* const another = circle.get();
  another->deferred = s.loop.deferred([circle = std::move(circle)] {});
  another->deferred.cancel();
  s.turn();
}

TEST(Loop, OwnersMayOutliveTheLoopAndTasksMayNot) {
  Loop::Timer timer;
  Loop::Deferred deferred;
  const auto held = std::make_shared<int>();
  {
    Setting s;
    timer = s.loop.after(1s, [held] {});
    deferred = s.loop.deferred([held] {});
    s.loop.post([held] {});
    s.loop.after(2s, [held] {}).detach();
  }
  EXPECT_EQ(held.use_count(), 1);
  EXPECT_FALSE(timer);
  EXPECT_FALSE(deferred);
}

TEST(Loop, OwnersMayOutliveTheLoopAlsoOfTasksThatItsEndHasMade) {
  Loop::Timer timer;
  Loop::Deferred deferred;
  {
    Setting s;
    const auto make_timer = [&](int*) { timer = s.loop.after(1s, [] {}); };
    const auto make_deferred = [&, make_timer](int*) {  // a copy, since the end of the loop comes later
      deferred = s.loop.deferred([made = std::shared_ptr<int>(nullptr, make_timer)] {});
    };
    s.loop.after(2s, [made = std::shared_ptr<int>(nullptr, make_deferred)] {}).detach();
  }
  EXPECT_FALSE(timer);
  EXPECT_FALSE(deferred);
}

TEST(Loop, ATimerThatATimerMakesForNowRunsInTheNextTurn) {
  Setting s;
  int ran = 0;
  Loop::Timer timer;
  std::function<void()> again = [&] {
    if (++ran < 3) timer = s.loop.at(s.loop.now(), again);
  };
  again();
  for (const int expected : {2, 3, 3}) {
    s.turn();
    EXPECT_EQ(ran, expected);
  }
}

TEST(Loop, AWaitWithoutEndIsNoTimerInThePast) {
  Setting s;
  s.clock.advance(1s);
  int ran = 0;
  const Loop::Timer endless = s.loop.after(base::Duration::max(), [&] { ++ran; });
  const Loop::Timer timer = s.loop.after(1s, [&] { ran += 10; });
  s.turn();
  EXPECT_EQ(ran, 0);
  s.advance(1s);
  EXPECT_EQ(ran, 10);
}

TEST(Loop, ADeadlineLongAgoIsNow) {
  Loop loop;
  loop.turn(base::TimePoint::min());
  bool ran = false;
  const Loop::Timer timer = loop.at(base::TimePoint::min(), [&] { ran = true; });
  loop.turn();
  EXPECT_TRUE(ran);
}

TEST(Loop, DeferredTasksRunAtTheEndOfTheTurn) {
  Setting s;
  Names ran;
  const Loop::Timer timer = s.loop.at(s.loop.now(), [&] {
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

TEST(Loop, ADeferredTaskGoesWithItsOwner) {
  Setting s;
  Names ran;
  Loop::Deferred kept = s.loop.deferred([&] { ran.emplace_back("kept"); });
  {
    const Loop::Deferred dropped = s.loop.deferred([&] { ran.emplace_back("dropped"); });
  }
  s.loop.defer([&] { ran.emplace_back("nobody's"); });
  Loop::Deferred moved = std::move(kept);
  EXPECT_TRUE(moved);
  s.turn();
  EXPECT_EQ(ran, (Names{"kept", "nobody's"}));
  EXPECT_FALSE(moved);
  kept = s.loop.deferred([&] { kept.cancel(); });  // by itself, too late
  s.turn();
}

TEST(Loop, ATaskMayHoldWhatCannotBeCopied) {
  Setting s;
  int sum = 0;
  s.loop.defer([&, number = std::make_unique<int>(1)] { sum += *number; });
  s.loop.post([&, number = std::make_unique<int>(2)] { sum += *number; });
  s.loop.after(0s, [&, number = std::make_unique<int>(4)] { sum += *number; }).detach();
  s.turn();
  EXPECT_EQ(sum, 7);
}

TEST(Loop, WhatATaskThrowsLeavesTheTurnAndTheOthersToTheNext) {
  Setting s;
  int ran = 0;
  s.loop.defer([] { throw std::runtime_error("oops"); });
  s.loop.defer([&] { ++ran; });
  s.loop.post([] { throw std::runtime_error("oops"); });
  s.loop.post([&] { ++ran; });
  const Loop::Timer first = s.loop.at(s.loop.now(), [] { throw std::runtime_error("oops"); });
  const Loop::Timer second = s.loop.at(s.loop.now(), [&] { ++ran; });
  for (int i = 0; i < 3; ++i) EXPECT_THROW(s.turn(), std::runtime_error);
  s.turn();
  EXPECT_EQ(ran, 3);
}

TEST(Loop, ATurnWaitsForItsDeadlineAndNoLonger) {
  Loop loop;
  const base::TimePoint deadline = loop.now() + 20ms;
  loop.turn(deadline);
  EXPECT_GE(loop.now(), deadline);
  const Loop::Timer timer = loop.after(1h, [] {});
  loop.turn(loop.now() - 1s);  // a deadline that is over is none to wait for
  loop.turn(0s);
}

TEST(Loop, CallsAWatcherAsLongAsItsDescriptorIsReady) {
  Setting s;
  const base::Pipe pipe = readable_pipe();
  Called called([](std::uint32_t events) { EXPECT_EQ(events, EPOLLIN); });
  Loop::Watch watch = s.loop.watch(pipe.read_end.get(), EPOLLIN, called);
  s.turn();
  s.turn();
  EXPECT_EQ(called.calls, 2);
  watch.change(0);
  s.turn();
  EXPECT_EQ(called.calls, 2);
  watch.change(EPOLLIN);
  s.turn();
  EXPECT_EQ(called.calls, 3);
  watch.cancel();
  EXPECT_FALSE(watch);
  s.turn();
  EXPECT_EQ(called.calls, 3);
}

TEST(Loop, AWatchGoesWithItsOwner) {
  Setting s;
  const base::Pipe pipe = readable_pipe();
  Called called(nothing);
  {
    Loop::Watch watch = s.loop.watch(pipe.read_end.get(), EPOLLIN, called);
    const Loop::Watch moved = std::move(watch);
    EXPECT_FALSE(watch);  // NOLINT(bugprone-use-after-move)
    EXPECT_TRUE(moved);
    s.turn();
  }
  s.turn();
  EXPECT_EQ(called.calls, 1);
}

TEST(Loop, RefusesWhatCannotBeWatched) {
  Setting s;
  Called called(nothing);
  const TemporaryFolder folder;
  const base::Fd file(open(folder.file("file").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  EXPECT_THROW(static_cast<void>(s.loop.watch(file.get(), EPOLLIN, called)), std::system_error);
  base::Pipe pipe = readable_pipe();
  Loop::Watch watch = s.loop.watch(pipe.read_end.get(), EPOLLIN, called);
  pipe.read_end.reset();
  EXPECT_THROW(watch.change(0), std::system_error);
}

TEST(ThreadsLoop, ALoopThatMayWatchNothingSaysSo) {
  on_own_thread([] {
    if (!refuse_watches()) GTEST_SKIP() << "without seccomp";
    try {
      const Loop loop;
      FAIL();
    } catch (const std::system_error& error) {
      EXPECT_EQ(error.code().value(), ENOSPC);
      EXPECT_NE(std::string(error.what()).find("max_user_watches"), std::string::npos) << error.what();
    }
  });
}

TEST(Loop, AWatcherRemovedByAnotherOneOfTheSameTurnIsNotCalled) {
  Setting s;
  const std::array<base::Pipe, 2> pipes{readable_pipe(), readable_pipe()};
  std::array<std::unique_ptr<Called>, 2> called;
  std::array<Loop::Watch, 2> watches;
  int calls = 0;
  for (const std::size_t i : {0U, 1U}) {
    called[i] = std::make_unique<Called>([&, other = 1 - i](std::uint32_t) {
      ++calls;
      watches[other].cancel();
      called[other].reset();
    });
    watches[i] = s.loop.watch(pipes[i].read_end.get(), EPOLLIN, *called[i]);
  }
  s.turn();
  EXPECT_EQ(calls, 1);
}

TEST(Loop, ADescriptorClosedAndOpenedAnewInATurnDoesNotGetTheOldOnesEvents) {
  Setting s;
  std::array<base::Pipe, 2> pipes{readable_pipe(), readable_pipe()};
  std::array<std::unique_ptr<Called>, 2> called;
  std::array<Loop::Watch, 2> watches;
  base::Pipe empty;
  Called newcomer(nothing);
  Loop::Watch new_watch;
  for (const std::size_t i : {0U, 1U}) {
    called[i] = std::make_unique<Called>([&, other = 1 - i](std::uint32_t) {
      if (empty.read_end) return;
      watches[other].cancel();
      pipes[other] = {};
      empty = base::make_pipe(O_NONBLOCK);  // the system gives the lowest numbers, so these
      new_watch = s.loop.watch(empty.read_end.get(), EPOLLIN, newcomer);
    });
    watches[i] = s.loop.watch(pipes[i].read_end.get(), EPOLLIN, *called[i]);
  }
  s.turn();
  s.turn();
  EXPECT_EQ(newcomer.calls, 0);
}

TEST(Loop, MoreDescriptorsThanOneWaitReturnsAreAllServed) {
  Setting s;
  std::vector<base::Pipe> pipes;
  std::vector<std::unique_ptr<Called>> called;
  std::vector<Loop::Watch> watches;
  for (int i = 0; i < 200; ++i) {
    pipes.push_back(readable_pipe());
    const int fd = pipes.back().read_end.get();
    called.push_back(std::make_unique<Called>([fd](std::uint32_t) {
      char byte = 0;
      EXPECT_EQ(read(fd, &byte, 1), 1);
    }));
    watches.push_back(s.loop.watch(fd, EPOLLIN, *called.back()));
  }
  for (int i = 0; i < 10; ++i) s.turn();
  for (const auto& each : called) EXPECT_EQ(each->calls, 1);
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
  Called thrower([](std::uint32_t) { throw std::runtime_error("oops"); });
  Called other(nothing);
  Loop::Watch first = s.loop.watch(pipes[0].read_end.get(), EPOLLIN, thrower);
  const Loop::Watch second = s.loop.watch(pipes[1].read_end.get(), EPOLLIN, other);
  EXPECT_THROW(s.turn(), std::runtime_error);
  first.cancel();
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
  const Loop::Timer first = s.loop.at(s.loop.now(), [] { fail(); });
  const Loop::Timer second = s.loop.at(s.loop.now(), [&] { ++ran; });
  s.turn();
  EXPECT_EQ(ran, 3) << "the rest of the turn goes on";
  EXPECT_EQ(told.defects.size(), 3U);
}

TEST_F(OverseenLoop, WhatAWatcherThrowsCostsTheOtherWatchersNothing) {
  const std::array<base::Pipe, 2> pipes{readable_pipe(), readable_pipe()};
  Called thrower([](std::uint32_t) { fail(); });
  Called other(nothing);
  const Loop::Watch first = s.loop.watch(pipes[0].read_end.get(), EPOLLIN, thrower);
  const Loop::Watch second = s.loop.watch(pipes[1].read_end.get(), EPOLLIN, other);
  s.turn();
  EXPECT_EQ(thrower.calls, 1);
  EXPECT_EQ(other.calls, 1);
  EXPECT_EQ(told.defects, Names{"transport::Called: oops"});
}

TEST_F(OverseenLoop, WhatTheOverseerThrowsLeavesTheTurn) {
  s.loop.defer([] { throw std::logic_error("the end"); });
  EXPECT_THROW(s.turn(), std::logic_error);
}

TEST_F(OverseenLoop, ATurnIsAsLongAsItsCallsAndTellsTheLongest) {
  const base::Pipe pipe = readable_pipe();
  Called called([&](std::uint32_t) { s.clock.advance(2s); });
  const Loop::Watch watch = s.loop.watch(pipe.read_end.get(), EPOLLIN, called);
  s.loop.defer([&] { s.clock.advance(1s); });
  s.turn();
  ASSERT_EQ(told.turns.size(), 1U);
  EXPECT_EQ(told.turns[0].first, base::Duration(3s));
  EXPECT_EQ(told.turns[0].second, "transport::Called");
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

/// A blocking input that is read into `text`, and a loop without a Sentinel, which therefore asks before it reads.
struct InputSetting : Setting {
  explicit InputSetting(int fd) { loop.set_blocking_input(fd, input); }
  Called input{[this](std::uint32_t) {
    std::array<char, 16> room;
    const ssize_t count = loop.read_blocking_input(room);
    if (count > 0) text.append(room.data(), static_cast<std::size_t>(count));
    if (count == 0) loop.want_blocking_input(false);
  }};
  std::string text;
};

TEST(LoopFront, IsReadWhenItIsReady) {
  const base::Pipe pipe = base::make_pipe();
  InputSetting s(pipe.read_end.get());
  s.turn();
  EXPECT_EQ(s.input.calls, 0);
  EXPECT_EQ(write(pipe.write_end.get(), "abc", 3), 3);
  s.loop.turn();
  EXPECT_EQ(s.text, "abc");
}

TEST(LoopFront, IsLeftAloneWhileItIsNotWanted) {
  const base::Pipe pipe = readable_pipe();
  InputSetting s(pipe.read_end.get());
  s.loop.want_blocking_input(false);
  s.turn();
  EXPECT_EQ(s.input.calls, 0);
  s.loop.want_blocking_input(true);
  s.turn();
  EXPECT_EQ(s.text, "x");
  s.loop.clear_blocking_input();
  EXPECT_EQ(write(pipe.write_end.get(), "y", 1), 1);
  s.turn();
  EXPECT_EQ(s.text, "x");
}

TEST(LoopFront, MayBeAFile) {
  const TemporaryFolder folder;
  const base::Fd file(open(folder.file("session").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  EXPECT_EQ(pwrite(file.get(), "twenty bytes of text", 20, 0), 20);
  InputSetting s(file.get());
  for (int i = 0; i < 5; ++i) s.turn();
  EXPECT_EQ(s.text, "twenty bytes of text");
  EXPECT_EQ(s.input.calls, 3);  // the end is told once
}

TEST(LoopFront, OthersAndTimersAreServedBesideIt) {
  const base::Pipe pipe = base::make_pipe();
  InputSetting s(pipe.read_end.get());
  const base::Pipe other = readable_pipe();
  Called called(nothing);
  const Loop::Watch watch = s.loop.watch(other.read_end.get(), EPOLLIN, called);
  int timers = 0;
  const Loop::Timer timer = s.loop.at(s.loop.now(), [&] { ++timers; });
  s.turn();
  EXPECT_EQ(called.calls, 1);
  EXPECT_EQ(timers, 1);
  EXPECT_EQ(s.input.calls, 0);
}

TEST(LoopFront, IsNotReadInATurnInWhichAnotherOneClearsIt) {
  const base::Pipe pipe = readable_pipe();
  InputSetting s(pipe.read_end.get());
  const base::Pipe other = readable_pipe();
  Called called([&](std::uint32_t) { s.loop.clear_blocking_input(); });
  const Loop::Watch watch = s.loop.watch(other.read_end.get(), EPOLLIN, called);
  s.turn();
  EXPECT_EQ(s.input.calls, 0);
}

TEST(LoopFront, TheBackIsWaitedForTogetherWithIt) {
  const base::Pipe pipe = base::make_pipe();
  InputSetting s(pipe.read_end.get());
  const base::Pipe out = base::make_pipe(O_NONBLOCK);
  const std::string page(4096, 'x');
  while (write(out.write_end.get(), page.data(), page.size()) > 0) continue;
  Called back([&](std::uint32_t events) {
    EXPECT_EQ(events, EPOLLOUT);
    s.loop.clear_blocked_output();
  });
  s.loop.want_blocked_output(out.write_end.get(), back);
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

TEST(ThreadsLoop, ARemoteOutlivesItsLoopAndDropsWhatIsPostedThen) {
  const auto held = std::make_shared<int>();
  std::optional<Loop> loop(std::in_place);
  const Loop::Remote remote = loop->remote();
  int ran = 0;
  EXPECT_TRUE(remote.post([&] { ++ran; }));
  loop->turn(0s);
  EXPECT_EQ(ran, 1);
  EXPECT_TRUE(remote.post([&, held] { ++ran; }));
  loop.reset();
  EXPECT_FALSE(remote.post([&, held] { ++ran; }));
  EXPECT_EQ(ran, 1);
  EXPECT_EQ(held.use_count(), 1);
}

/// Posts when it is destroyed, as a reply that nobody gave does.
struct LastWords {
  explicit LastWords(Loop::Remote to) : remote(std::move(to)) {}
  LastWords(const LastWords&) = delete;
  LastWords& operator=(const LastWords&) = delete;
  ~LastWords() {
    remote.post([] {});
  }
  Loop::Remote remote;
};

TEST(ThreadsLoop, ThreadsMayPostWhileTheLoopEnds) {
  for (int round = 0; round < 20; ++round) {
    std::optional<Loop> loop(std::in_place);
    std::atomic<bool> begun = false;
    std::vector<std::thread> posters;
    for (int t = 0; t < 3; ++t) {
      posters.emplace_back([&, remote = loop->remote()] {
        while (remote.post([words = std::make_unique<LastWords>(remote)] {})) begun = true;
      });
    }
    EXPECT_TRUE(await([&] { return begun.load(); }));
    loop.reset();
    for (std::thread& poster : posters) poster.join();
  }
}

TEST(ThreadsLoop, RunsWorkElsewhereAndGoesOnHere) {
  Loop loop;
  const std::thread::id own = std::this_thread::get_id();
  std::optional<int> got;
  loop.run_elsewhere(
      [own, number = std::make_unique<int>(6)] {
        EXPECT_NE(std::this_thread::get_id(), own);
        return std::make_unique<int>(*number * 7);
      },
      [&](base::Result<std::unique_ptr<int>> result) {
        EXPECT_EQ(std::this_thread::get_id(), own);
        got = *result.get();
      });
  while (!got) loop.turn();
  EXPECT_EQ(got, 42);
}

TEST(ThreadsLoop, WhatWorkElsewhereThrowsComesBack) {
  Loop loop;
  bool caught = false;
  loop.run_elsewhere([] { throw std::runtime_error("oops"); },
                     [&](base::Result<void> result) {
                       EXPECT_THROW(result.get(), std::runtime_error);
                       caught = true;
                     });
  while (!caught) loop.turn();
}

TEST(ThreadsLoop, TheEndOfALoopWaitsForWorkElsewhereAndGoesOnWithNothing) {
  std::atomic<bool> begun = false;
  std::atomic<bool> done = false;
  const auto held = std::make_shared<int>();
  {
    Loop loop;
    loop.run_elsewhere(
        [&] {
          begun = true;
          std::this_thread::yield();
          done = true;
        },
        [held](const base::Result<void>&) { ADD_FAILURE(); });
    EXPECT_TRUE(await([&] { return begun.load(); }));
  }
  EXPECT_TRUE(done);
  EXPECT_EQ(held.use_count(), 1);
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
