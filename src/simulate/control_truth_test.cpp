#include "simulate/control_truth.h"

#include <gtest/gtest.h>

namespace duet::simulate {
namespace {

using namespace std::chrono_literals;

class ControlTruthTest : public testing::Test {
 protected:
  base::VirtualClock clock{base::UtcTime(1'800'000'000s)};
  ControlTruth truth{clock};
};

TEST_F(ControlTruthTest, APauseIsCertainWhenItWasAcknowledgedAndNobodyAskedForItsEnd) {
  const std::string group = ControlTruth::group("a");
  EXPECT_TRUE(truth.is_certainly_open(group));
  const std::uint64_t asked = truth.asked(group, true);
  EXPECT_FALSE(truth.is_certainly_shut(group));
  EXPECT_FALSE(truth.is_certainly_open(group));
  truth.answered(group, asked, true);
  EXPECT_TRUE(truth.is_certainly_shut(group));
  const std::uint64_t resumed = truth.asked(group, false);
  EXPECT_FALSE(truth.is_certainly_shut(group));
  truth.answered(group, resumed, false);
  EXPECT_TRUE(truth.is_certainly_open(group));
}

TEST_F(ControlTruthTest, AStartIsWrongWhileSomethingIsInItsWay) {
  truth.takes(1, {.prompt = "x", .group = "a", .delay = 10s}, clock.now());
  EXPECT_EQ(truth.why_not(1, "agent", false), "its delay is not over");
  clock.advance(10s);
  EXPECT_FALSE(truth.why_not(1, "agent", false));
  truth.agent_held("agent", clock.utc() + 5s);
  EXPECT_EQ(truth.why_not(1, "agent", false), "its agent is held");
  EXPECT_FALSE(truth.why_not(1, "other", false));
  truth.answered(ControlTruth::group("a"), truth.asked(ControlTruth::group("a"), true), true);
  EXPECT_EQ(truth.why_not(1, "other", false), "its group a is paused");
  truth.editing(1);
  EXPECT_FALSE(truth.why_not(1, "other", false)) << "it may be in another group by now";
  truth.edited(1, true, "b");
  EXPECT_EQ(truth.group_of(1), "b");
}

TEST_F(ControlTruthTest, AGroupHasItsTurnBeforeAnotherOneHasTwo) {
  EXPECT_FALSE(truth.passed_over("a", {"a", "b"}));
  EXPECT_EQ(truth.passed_over("a", {"a", "b"}), "b");
  EXPECT_FALSE(truth.passed_over("b", {"a", "b"}));
  truth.forget_turns();
  EXPECT_FALSE(truth.passed_over("b", {"a"}));
}

}  // namespace
}  // namespace duet::simulate
