#include "automation/effects.h"

#include <gtest/gtest.h>

namespace duet::automation {
namespace {

using namespace std::chrono_literals;

constexpr base::TimePoint start{};

unsigned depth_at(const Effects& effects, base::Duration seen) {
  const std::optional<Cause> cause = effects.cause_of(start + seen, 200ms);
  return cause ? cause->depth : 0;
}

TEST(Effects, ATaskCausesWhatIsSeenWhileItRunsAndALittleAfter) {
  Effects effects;
  effects.started({"task-1", 3}, start + 1s);
  EXPECT_EQ(depth_at(effects, 999ms), 0U);
  EXPECT_EQ(depth_at(effects, 1h), 3U);
  effects.ended("task-1", start + 2s);
  EXPECT_EQ(depth_at(effects, 2s + 200ms), 3U);
  EXPECT_EQ(depth_at(effects, 2s + 201ms), 0U);
}

TEST(Effects, OfSeveralTasksTheDeepestCounts) {
  Effects effects;
  effects.started({"task-1", 2}, start);
  effects.started({"task-2", 4}, start);
  effects.started({"task-3", 1}, start);
  EXPECT_EQ(depth_at(effects, 1s), 4U);
  effects.ended("task-2", start + 2s);
  EXPECT_EQ(depth_at(effects, 3s), 2U);
}

TEST(Effects, AStartThatIsToldAgainChangesNothing) {
  Effects effects;
  effects.started({"task-1", 2}, start);
  effects.started({"task-1", 2}, start + 1h);
  EXPECT_EQ(depth_at(effects, 1s), 2U);
}

TEST(Effects, ATaskThatRunsOnceMoreCausesWhatIsSeenThen) {
  Effects effects;
  effects.started({"task-1", 2}, start);
  effects.ended("task-1", start + 1s);
  EXPECT_EQ(depth_at(effects, 10s), 0U);
  effects.started({"task-1", 2}, start + 20s);
  EXPECT_EQ(depth_at(effects, 10s), 0U);
  EXPECT_EQ(depth_at(effects, 21s), 2U);
}

}  // namespace
}  // namespace duet::automation
