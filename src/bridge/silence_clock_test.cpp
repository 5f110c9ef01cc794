#include "bridge/silence_clock.h"

#include <gtest/gtest.h>

namespace duet::bridge {
namespace {

base::TimePoint at(int seconds) { return base::TimePoint(std::chrono::seconds(seconds)); }
base::Duration seconds(int count) { return std::chrono::seconds(count); }

TEST(SilenceClock, RunsFromTheWorkOrTheSignOfLifeThatFollowedIt) {
  SilenceClock clock;
  EXPECT_FALSE(clock.is_running());
  clock.note_work(true, at(10), at(5));
  clock.note_work(true, at(12), at(5));
  EXPECT_EQ(clock.silence(at(13), at(5)), seconds(3));
  EXPECT_EQ(clock.silence(at(13), at(11)), seconds(2));
  clock.note_work(false, at(14), at(11));
  EXPECT_FALSE(clock.is_running());
}

TEST(SilenceClock, AddsUpTheWorkThatSawNoSignOfLife) {
  SilenceClock clock;
  clock.note_work(true, at(10), at(5));
  clock.note_work(false, at(20), at(5));
  clock.note_work(true, at(100), at(5));
  EXPECT_EQ(clock.silence(at(101), at(5)), seconds(11));
  clock.note_work(false, at(102), at(5));
  clock.note_work(true, at(200), at(150));
  EXPECT_EQ(clock.silence(at(201), at(150)), seconds(1)) << "a sign of life between two works";
}

}  // namespace
}  // namespace duet::bridge
