#include "task/postgres/liveness.h"

#include <gtest/gtest.h>

namespace duet::task::postgres {
namespace {

using namespace std::chrono_literals;

/// One other worker with a lease of 90 s.
class LivenessTest : public testing::Test {
 protected:
  /// `silent 7`, `lost 7` or nothing.
  std::string look(base::Duration now, std::int64_t beat) {
    other_.beat = beat;
    std::string text;
    for (const Liveness::Verdict& verdict : liveness_.look(now - took_, now, std::span(&other_, 1))) {
      text += (verdict.lost ? "lost " : "silent ") + std::to_string(verdict.beat);
    }
    return text;
  }
  std::string look_every(base::Duration step, base::Duration from, base::Duration to, std::int64_t beat) {
    std::string last;
    for (base::Duration now = from; now <= to; now += step) last = look(now, beat);
    return last;
  }

  Liveness liveness_;
  base::Duration took_ = 0s;
  Liveness::Seen other_{.worker = 3, .lease = 90s, .lost_after = 10min};
};

TEST_F(LivenessTest, AWorkerIsSilentWhenItsBeatStoodForItsWholeLease) {
  EXPECT_EQ(look_every(15s, 1000s, 1089s, 7), "");
  EXPECT_EQ(look(1090s, 7), "silent 7");
}

TEST_F(LivenessTest, ABeatThatMovesBeginsAnew) {
  EXPECT_EQ(look_every(15s, 0s, 75s, 7), "");
  EXPECT_EQ(look_every(15s, 89s, 164s, 8), "");
  EXPECT_EQ(look(179s, 8), "silent 8");
}

TEST_F(LivenessTest, AnOutageMakesNobodySilent) {
  EXPECT_EQ(look(0s, 7), "");
  EXPECT_EQ(look(31s, 7), "");    // a pause of more than a third: from here on
  EXPECT_EQ(look(1000s, 7), "");  // likewise
  EXPECT_EQ(look_every(30s, 1030s, 1060s, 7), "");
  EXPECT_EQ(look(1090s, 7), "silent 7");
}

TEST_F(LivenessTest, ASilentOneIsLostWhenItsTimeIsUp) {
  EXPECT_EQ(look_every(15s, 0s, 90s, 7), "silent 7");
  other_.silent = true;
  EXPECT_EQ(look_every(15s, 105s, 585s, 7), "");
  EXPECT_EQ(look(600s, 7), "lost 7");
}

TEST_F(LivenessTest, ASilentOneWhoseClaimCameBehindIsSilencedOnceMore) {
  other_.silent = true;
  EXPECT_EQ(look_every(15s, 0s, 90s, 7), "");
  other_.to_repeat = true;
  EXPECT_EQ(look(105s, 7), "silent 7");
  other_.to_repeat = false;
  EXPECT_EQ(look(120s, 7), "");
  other_.to_repeat = true;
  EXPECT_EQ(look_every(15s, 135s, 600s, 7), "lost 7");
}

TEST_F(LivenessTest, OneIsSilentBeforeItIsLostThoughBothComeAtOnce) {
  other_.lost_after = other_.lease;
  EXPECT_EQ(look_every(15s, 0s, 90s, 7), "silent 7");
  EXPECT_EQ(look(105s, 7), "silent 7") << "as long as nobody has said so";
  other_.silent = true;
  EXPECT_EQ(look(120s, 7), "lost 7");
}

TEST_F(LivenessTest, AnAnswerThatTookLongCountsFromWhenItWasAskedFor) {
  EXPECT_EQ(look_every(15s, 0s, 75s, 7), "");
  took_ = 9s;
  EXPECT_EQ(look(98s, 7), "");
  EXPECT_EQ(look(99s, 7), "silent 7");
}

TEST_F(LivenessTest, WhoIsNotToldOfAnyMoreIsForgotten) {
  EXPECT_EQ(look(0s, 7), "");
  liveness_.look(15s, 15s, {});
  EXPECT_EQ(look_every(15s, 30s, 105s, 7), "");
  EXPECT_EQ(look(120s, 7), "silent 7");
}

}  // namespace
}  // namespace duet::task::postgres
