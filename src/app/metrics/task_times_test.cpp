#include "app/metrics/task_times.h"

#include <gtest/gtest.h>

#include "task/time_text.h"

namespace duet::app {
namespace {

using std::chrono::milliseconds;

task::Event event(const char* kind, task::TaskId task, const std::string& params) {
  return {.seq = 1, .kind = kind, .task = task, .params = params};
}

task::Event queued(task::TaskId task) {
  task::Event queued = event("taskQueued", task, "{}");
  queued.arrived_at = task::parse_time("2026-11-15T09:30:00.000Z");
  return queued;
}

task::Event started(task::TaskId task) {
  return event("taskStarted", task, R"({"attempts":1,"startedAt":"2026-11-15T09:30:02.500Z"})");
}

task::Event ended(task::TaskId task, const char* kind = "taskCompleted") {
  return event(kind, task, R"({"startedAt":"2026-11-15T09:30:02.500Z","completedAt":"2026-11-15T09:30:12.501Z"})");
}

TEST(TaskTimes, FollowATaskToItsEnd) {
  TaskTimes times;
  const TaskTimes::Times first = times.take(queued(1));
  EXPECT_TRUE(first.is_new);
  EXPECT_FALSE(first.waited || first.ran);
  const TaskTimes::Times second = times.take(started(1));
  EXPECT_EQ(second.waited, milliseconds(2500));
  EXPECT_FALSE(second.is_new || second.ran);
  const TaskTimes::Times third = times.take(ended(1));
  EXPECT_EQ(third.ran, milliseconds(10'001));
  EXPECT_FALSE(third.is_new || third.waited);
}

TEST(TaskTimes, KnowOfAStartThatOnlyTheEndTells) {
  TaskTimes times;
  times.take(queued(1));
  const TaskTimes::Times end = times.take(ended(1, "taskFailed"));
  EXPECT_EQ(end.waited, milliseconds(2500));
  EXPECT_EQ(end.ran, milliseconds(10'001));
}

TEST(TaskTimes, CountNoSecondAttempt) {
  TaskTimes times;
  times.take(queued(1));
  times.take(started(1));
  EXPECT_FALSE(times.take(event("taskQueued", 1, R"({"retryAt":"2026-11-15T09:30:02.500Z"})")).is_new);
  EXPECT_FALSE(times.take(started(1)).waited);
}

TEST(TaskTimes, SayNothingOfATaskThatNeverRan) {
  TaskTimes times;
  times.take(queued(1));
  const TaskTimes::Times end =
      times.take(event("taskCancelled", 1, R"({"completedAt":"2026-11-15T09:30:12.501Z","exitCode":null})"));
  EXPECT_FALSE(end.waited || end.ran || end.is_new);
  EXPECT_FALSE(times.take(started(1)).waited) << "it is forgotten";
}

TEST(TaskTimes, RememberAsManyAsThereIsRoomFor) {
  TaskTimes times(2);
  for (const task::TaskId id : {1U, 2U, 3U}) EXPECT_TRUE(times.take(queued(id)).is_new);
  EXPECT_FALSE(times.take(started(3)).waited);
  EXPECT_TRUE(times.take(started(1)).waited);
  EXPECT_TRUE(times.take(queued(4)).is_new);
  EXPECT_TRUE(times.take(started(4)).waited);
}

TEST(TaskTimes, AreNeverBelowNothing) {
  TaskTimes times;
  const TaskTimes::Times end = times.take(event(
      "taskCompleted", 1, R"({"startedAt":"2026-11-15T09:30:02.500Z","completedAt":"2026-11-15T09:30:01.000Z"})"));
  EXPECT_EQ(end.ran, milliseconds(0));
}

}  // namespace
}  // namespace duet::app
