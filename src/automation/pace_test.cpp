#include "automation/pace.h"

#include <gtest/gtest.h>

namespace duet::automation {
namespace {

using namespace std::chrono_literals;

TEST(Pace, HoldsBackWithinTheCooldown) {
  Pace pace;
  const base::UtcTime start{};
  EXPECT_EQ(pace.refusal(start, 30s), "");
  pace.fired(start);
  EXPECT_EQ(pace.refusal(start + 29s, 30s), "cooldown");
  EXPECT_EQ(pace.refusal(start + 30s, 30s), "");
}

TEST(Pace, HoldsBackTheEleventhFiringWithinAMinute) {
  Pace pace;
  const base::UtcTime start{};
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(pace.refusal(start + i * 1s, 0s), "");
    pace.fired(start + i * 1s);
  }
  EXPECT_EQ(pace.refusal(start + 59s, 0s), "rate limit: 10 firings a minute");
  EXPECT_EQ(pace.refusal(start + 60s, 0s), "");
  pace.fired(start + 60s);
  EXPECT_EQ(pace.refusal(start + 60s, 0s), "rate limit: 10 firings a minute") << "the window slides";
  EXPECT_EQ(pace.refusal(start + 61s, 0s), "");
}

TEST(Pace, TellsWhenBothAreOver) {
  Pace pace;
  const base::UtcTime start{};
  EXPECT_EQ(pace.free_at(30s), std::nullopt);
  for (int i = 0; i < 9; ++i) pace.fired(start + i * 1s);
  EXPECT_EQ(pace.free_at(30s), start + 38s);
  pace.fired(start + 9s);
  EXPECT_EQ(pace.free_at(30s), start + 60s);
  EXPECT_EQ(pace.free_at(2min), start + 129s);
}

TEST(Pace, AClockThatWasSetBackBlocksNothing) {
  Pace pace;
  pace.fired(base::UtcTime(48h));
  EXPECT_EQ(pace.refusal(base::UtcTime(1h), 30s), "");
}

TEST(Pace, WhatIsTakenBackDoesNotCount) {
  Pace pace;
  const base::UtcTime noon(12h);
  pace.fired(noon);
  pace.fired(noon + 10s);
  pace.take_back(noon + 10s);
  EXPECT_EQ(pace.refusal(noon + 30s, 30s), "");
  EXPECT_EQ(pace.refusal(noon + 29s, 30s), "cooldown");
}

TEST(Pace, OfTwoFiringsAtTheSameTimeOneIsTakenBack) {
  Pace pace;
  const base::UtcTime noon(12h);
  pace.fired(noon);
  pace.fired(noon);
  pace.take_back(noon);
  EXPECT_EQ(pace.firings().size(), 1U);
}

}  // namespace
}  // namespace duet::automation
