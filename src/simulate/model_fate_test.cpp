#include "simulate/model_fate.h"

#include <gtest/gtest.h>

#include "task/postgres/report.h"

namespace duet::simulate {
namespace {

using task::postgres::End;

TEST(FateOf, ACancelCountsBeforeAllElse) {
  EXPECT_EQ(fate_of({.cancelling = true}, End::put_back | End::by_stop, true, true), Fate::cancelled);
  EXPECT_EQ(fate_of({}, End::put_back | End::by_stop, true, true), Fate::put_back);
  EXPECT_EQ(fate_of({}, End::by_stop | End::lease_was_over, true, true), Fate::stopped);
  EXPECT_EQ(fate_of({.lost = 1}, End::lease_was_over, true, true), Fate::spared);
  EXPECT_EQ(fate_of({.lost = 2}, End::lease_was_over, true, true), Fate::failed);
  EXPECT_EQ(fate_of({}, End::tree_is_gone, true, true), Fate::completed);
}

TEST(FateOf, AFailureIsTriedAgainWhileAttemptsAreLeft) {
  EXPECT_EQ(fate_of({.attempts = 1, .retries = 1}, 0, false, true), Fate::again);
  EXPECT_EQ(fate_of({.attempts = 2, .retries = 1}, 0, false, true), Fate::failed);
  EXPECT_EQ(fate_of({.attempts = 2, .spared = 1, .retries = 1}, 0, false, true), Fate::again);
  EXPECT_EQ(fate_of({.attempts = 2, .lost = 1, .retries = 1}, 0, false, true), Fate::again);
  EXPECT_EQ(fate_of({.attempts = 1, .retries = 1}, 0, false, false), Fate::failed) << "no pause was told";
}

TEST(StateOf, OnlyAnEndEndsATask) {
  for (const Fate fate : {Fate::put_back, Fate::spared, Fate::again}) {
    EXPECT_FALSE(is_end(fate));
    EXPECT_LT(state_of(fate, true), ModelTask::running);
  }
  for (const Fate fate : {Fate::cancelled, Fate::stopped, Fate::completed, Fate::failed}) {
    EXPECT_TRUE(is_end(fate));
    EXPECT_GE(state_of(fate, true), ModelTask::completed);
  }
  EXPECT_EQ(state_of(Fate::put_back, false), ModelTask::ready);
  EXPECT_EQ(state_of(Fate::put_back, true), ModelTask::waiting);
  EXPECT_EQ(state_of(Fate::stopped, false), ModelTask::failed);
}

}  // namespace
}  // namespace duet::simulate
