#include <poll.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <stdexcept>
#include <thread>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <gtest/gtest.h>

#include "duet/transport/await_test.h"
#include "duet/transport/loop.h"

// How a loop lives inside another one, which knows nothing but its descriptor.

namespace duet::transport {
namespace {

using namespace std::chrono_literals;

/// A program whose own loop is poll().
class PollLoop {
 public:
  explicit PollLoop(int guest) : guest_(guest) {}
  bool is_readable(std::chrono::milliseconds patience = 0ms) const {
    pollfd ready{.fd = guest_, .events = POLLIN, .revents = 0};
    return poll(&ready, 1, static_cast<int>(patience.count())) == 1;
  }
  bool becomes_readable() const { return is_readable(test_patience); }

 private:
  int guest_;
};

struct Embedded : testing::Test {
  Loop loop;
  PollLoop host{loop.descriptor()};
};

using EmbeddedLoop = Embedded;

TEST_F(EmbeddedLoop, HasNothingToDoAtFirst) {
  EXPECT_FALSE(host.is_readable());
  loop.turn(0s);
  EXPECT_FALSE(host.is_readable());
}

TEST_F(EmbeddedLoop, ADeferredTaskMakesItReadable) {
  int ran = 0;
  loop.defer([&] {
    ++ran;
    if (ran < 3) loop.defer([&] { ++ran; });
  });
  EXPECT_TRUE(host.becomes_readable());
  loop.turn(0s);
  EXPECT_EQ(ran, 1);
  EXPECT_TRUE(host.becomes_readable()) << "the second one waits for a turn of its own";
  loop.turn(0s);
  EXPECT_EQ(ran, 2);
  EXPECT_FALSE(host.is_readable());
}

TEST_F(EmbeddedLoop, ATimerMakesItReadableWhenItsTimeHasCome) {
  bool ran = false;
  const Loop::Timer far = loop.after(1h, [] {});
  EXPECT_FALSE(host.is_readable());
  const base::TimePoint begun = loop.now();
  const Loop::Timer near = loop.after(20ms, [&] { ran = true; });
  while (!ran) {
    ASSERT_TRUE(host.becomes_readable());
    loop.turn(0s);
  }
  EXPECT_GE(loop.now() - begun, 20ms);
  EXPECT_FALSE(host.is_readable());
}

TEST_F(EmbeddedLoop, ACancelledTimerDoesNot) {
  Loop::Timer timer = loop.after(1ms, [] { ADD_FAILURE(); });
  timer.cancel();
  loop.turn(0s);
  EXPECT_FALSE(host.is_readable(10ms));
}

TEST_F(EmbeddedLoop, ATimerThatATurnMakesCountsToo) {
  bool ran = false;
  Loop::Timer timer;
  loop.defer([&] { timer = loop.after(1ms, [&] { ran = true; }); });
  while (!ran) {
    ASSERT_TRUE(host.becomes_readable());
    loop.turn(0s);
  }
}

TEST_F(EmbeddedLoop, WhatWasAskedForBeforeCounts) {
  Loop late;
  late.defer([] {});
  EXPECT_TRUE(PollLoop(late.descriptor()).becomes_readable());
}

TEST_F(EmbeddedLoop, AThrownTaskLeavesTheOthersReadable) {
  loop.defer([] { throw std::runtime_error("oops"); });
  loop.defer([] {});
  EXPECT_THROW(loop.turn(0s), std::runtime_error);
  EXPECT_TRUE(host.becomes_readable());
}

TEST_F(EmbeddedLoop, APostFromAThreadMakesItReadable) {
  std::thread([&] { loop.post([] {}); }).join();
  EXPECT_TRUE(host.becomes_readable());
  loop.turn(0s);
  EXPECT_FALSE(host.is_readable());
}

TEST_F(EmbeddedLoop, HasNoFront) {
  struct : Loop::Watcher {
    void on_ready(std::uint32_t) override {}
  } watcher;
  EXPECT_THROW(loop.set_blocking_input(STDIN_FILENO, watcher), std::logic_error);
  Loop other;
  other.set_blocking_input(STDIN_FILENO, watcher);
  EXPECT_THROW(other.descriptor(), std::logic_error);
}

/// A program whose own loop is Boost.Asio's: as long as the guest is readable, it turns.
class AsioHost {
 public:
  AsioHost(boost::asio::io_context& context, Loop& guest) : guest_(guest), descriptor_(context, guest.descriptor()) {
    wait();
  }
  AsioHost(const AsioHost&) = delete;
  AsioHost& operator=(const AsioHost&) = delete;
  ~AsioHost() { descriptor_.release(); }

 private:
  void wait() {
    descriptor_.async_wait(boost::asio::posix::stream_descriptor::wait_read, [this](boost::system::error_code error) {
      if (error) return;
      guest_.turn(std::chrono::seconds(0));
      wait();
    });
  }

  Loop& guest_;
  boost::asio::posix::stream_descriptor descriptor_;
};

TEST(LoopInAsio, TimersDeferredAndPostedTasksRun) {
  boost::asio::io_context context;
  Loop loop;
  const AsioHost host(context, loop);
  int ran = 0;
  const auto count = [&] {
    if (++ran == 4) context.stop();
  };
  const Loop::Timer timer = loop.after(5ms, [&] {
    count();
    loop.defer(count);
  });
  loop.defer(count);
  std::thread thread([&] { loop.post(count); });
  context.run_for(test_patience);
  thread.join();
  EXPECT_EQ(ran, 4);
}

}  // namespace
}  // namespace duet::transport
