#include "duet/transport/memory.h"

#include <cerrno>
#include <memory>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "duet/transport/channel_recorder_test.h"

namespace duet::transport {
namespace {

struct Setting {
  explicit Setting(std::size_t capacity = 100) {
    std::tie(left, right) = memory_pair(loop, capacity);
    right_end.emplace(*right);
  }
  void turn(int times = 5) {
    for (int i = 0; i < times; ++i) loop.turn(loop.now());
  }

  base::VirtualClock clock;
  Loop loop{clock};
  std::unique_ptr<Channel> left;
  std::unique_ptr<Channel> right;
  std::optional<ChannelRecorder> right_end;
};

TEST(MemoryPair, CarriesBytesInALaterTurn) {
  Setting s;
  ChannelRecorder left_end(*s.left);
  EXPECT_EQ(s.left->write("there").count, 5U);
  EXPECT_EQ(s.right->write("back").count, 4U);
  EXPECT_EQ(s.right_end->text, "");
  s.turn();
  EXPECT_EQ(s.right_end->text, "there");
  EXPECT_EQ(left_end.text, "back");
}

TEST(MemoryPair, TakesNoMoreThanItsCapacity) {
  Setting s;
  s.right->want(false, false);
  EXPECT_EQ(s.left->write(std::string(300, 'x')).count, 100U);
  EXPECT_EQ(s.left->write("y").state, IoResult::State::blocked);
  ChannelRecorder left_end(*s.left);
  s.left->want(true, true);
  s.turn();
  EXPECT_EQ(left_end.writable, 0);
  s.right->want(true, false);
  s.turn();
  EXPECT_EQ(s.right_end->text.size(), 100U);
  EXPECT_EQ(left_end.writable, 1);
}

TEST(MemoryPair, WhatIsLeftUnreadIsToldAgain) {
  Setting s(10'000);
  s.left->write(std::string(10'000, 'x'));
  s.turn();
  EXPECT_EQ(s.right_end->text.size(), 10'000U);
}

TEST(MemoryPair, TheEndIsReadAfterTheLastByte) {
  Setting s;
  s.left->write("last words");
  s.left.reset();
  s.turn();
  EXPECT_EQ(s.right_end->text, "last words");
  EXPECT_TRUE(s.right_end->ended);
  EXPECT_EQ(s.right->write("x").state, IoResult::State::broken);
  EXPECT_EQ(s.right->write("x").error, EPIPE);
}

TEST(MemoryPair, AnEndThatWantsNothingHearsThatTheOtherIsGone) {
  Setting s;
  s.right->want(false, false);
  s.turn();
  EXPECT_EQ(s.right_end->hangups, 0);
  s.left->close();
  s.turn();
  EXPECT_EQ(s.right_end->hangups, 1);
}

TEST(MemoryPair, AClosedEndIsNotCalledAnyMore) {
  Setting s;
  s.left->write("unread");
  s.right->close();
  s.turn();
  EXPECT_EQ(s.right_end->text, "");
  EXPECT_EQ(s.left->write("x").state, IoResult::State::broken);
}

TEST(MemoryPair, MayBeLetGoOfWhileACallIsPlanned) {
  Setting s;
  s.left->write("unread");
  s.right.reset();
  s.right_end.reset();
  s.turn();
}

}  // namespace
}  // namespace duet::transport
