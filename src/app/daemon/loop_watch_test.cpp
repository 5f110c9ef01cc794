#include "app/daemon/loop_watch.h"

#include <new>
#include <stdexcept>
#include <string>

#include <gtest/gtest.h>

#include "duet/base/log_tape_test.h"

namespace duet::app {
namespace {

using namespace std::chrono_literals;

struct LoopWatchTest : testing::Test {
  std::string logged() {
    std::string all;
    for (const std::string& line : tape.lines()) all += line + '\n';
    return all;
  }
  void turn() { loop.turn(loop.now()); }
  std::size_t count(const std::string& text) {
    std::size_t found = 0;
    const std::string all = logged();
    for (std::size_t at = all.find(text); at != std::string::npos; at = all.find(text, at + 1)) ++found;
    return found;
  }

  base::VirtualClock clock;
  transport::Loop loop{clock};
  base::LogTape tape;
  std::string problem;
  std::vector<base::Duration> turns;
  LoopWatch watch{loop,
                  tape.log(),
                  {.on_problem = [this](std::string text) { problem = std::move(text); },
                   .on_turn = [this](base::TimePoint, base::Duration took) { turns.push_back(took); }}};
};

TEST_F(LoopWatchTest, ACallbackThatThrowsIsLoggedAndToldAndTheLoopGoesOn) {
  bool went_on = false;
  loop.defer([] { throw std::runtime_error("oops"); });
  loop.defer([&] { went_on = true; });
  turn();
  EXPECT_TRUE(went_on);
  EXPECT_EQ(count(R"(error a callback of the loop failed)"), 1U) << logged();
  EXPECT_EQ(count("oops"), 1U) << logged();
  EXPECT_NE(problem.find("1 time since the start, the last one in "), std::string::npos) << problem;
  EXPECT_NE(problem.find("LoopWatchTest_ACallbackThatThrows"), std::string::npos) << problem;
  EXPECT_NE(problem.find("runtime_error: oops"), std::string::npos) << problem;
}

TEST_F(LoopWatchTest, EachTurnThatDidSomethingIsTold) {
  loop.defer([this] { clock.advance(std::chrono::milliseconds(3)); });
  turn();
  turn();  // there was nothing to do
  EXPECT_EQ(turns, std::vector<base::Duration>{std::chrono::milliseconds(3)});
}

TEST_F(LoopWatchTest, WhatIsNoExceptionIsADefectToo) {
  loop.defer([] { throw 42; });  // NOLINT
  turn();
  EXPECT_NE(problem.find("no std::exception"), std::string::npos) << problem;
}

TEST_F(LoopWatchTest, ADefectInEveryTurnDoesNotFillTheLog) {
  for (int i = 0; i < 100; ++i) {
    loop.defer([] { throw std::runtime_error("oops"); });
    turn();
  }
  EXPECT_EQ(count("oops"), 13U) << "the first ten, the 16th, the 32nd, the 64th";
  EXPECT_NE(problem.find("100 times"), std::string::npos) << problem;
}

TEST_F(LoopWatchTest, MemoryThatKeepsRunningOutLeavesTheLoop) {
  const auto refuse = [] { throw std::bad_alloc(); };
  for (int i = 0; i < 9; ++i) {
    loop.defer(refuse);
    turn();
  }
  clock.advance(11s);
  loop.defer(refuse);
  turn();  // that was one in ten seconds
  for (int i = 0; i < 8; ++i) {
    loop.defer(refuse);
    turn();
  }
  loop.defer(refuse);
  EXPECT_THROW(turn(), std::bad_alloc);
}

TEST_F(LoopWatchTest, ATurnOverASecondIsLoggedWithWhatRanInIt) {
  loop.defer([this] { clock.advance(999ms); });
  turn();
  EXPECT_EQ(logged(), "");
  loop.defer([this] { clock.advance(1500ms); });
  turn();
  EXPECT_EQ(count("a turn of the loop took long ms=1500 in=\"app::"), 1U) << logged();
}

TEST_F(LoopWatchTest, KnowsTheLongestTurnOfTheLastMinute) {
  EXPECT_EQ(watch.longest_turn(), 0ms);
  loop.defer([this] { clock.advance(70ms); });
  turn();
  loop.defer([this] { clock.advance(30ms); });
  turn();
  EXPECT_EQ(watch.longest_turn(), 70ms);
  clock.advance(55s);
  EXPECT_EQ(watch.longest_turn(), 70ms);
  clock.advance(20s);
  EXPECT_EQ(watch.longest_turn(), 0ms);
}

}  // namespace
}  // namespace duet::app
