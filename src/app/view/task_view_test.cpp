#include "app/view/task_view.h"

#include <gtest/gtest.h>

namespace duet::app {
namespace {

using boost::json::object;

object record(std::string_view state, boost::json::value code = nullptr, boost::json::value signal = nullptr) {
  return {{"id", "task-1"}, {"state", state}, {"exitCode", std::move(code)}, {"signal", std::move(signal)}};
}

TEST(TaskView, TheExitCodeIsTheTasksOwn) {
  EXPECT_EQ(exit_code_of(record("completed", 0)), 0);
  EXPECT_EQ(exit_code_of(record("failed", 7)), 7);
  EXPECT_EQ(exit_code_of(record("failed", nullptr, "SIGKILL")), 137);
  EXPECT_EQ(exit_code_of(record("failed", nullptr, "SIGTERM")), 143);
  EXPECT_EQ(exit_code_of(record("cancelled", nullptr, "SIGTERM")), 130);
  EXPECT_EQ(exit_code_of(record("cancelled", 0)), 130);
}

TEST(TaskView, AFailureWithoutACodeIsAFailure) {
  EXPECT_EQ(exit_code_of(record("failed")), 1);
  EXPECT_EQ(exit_code_of(record("failed", 0)), 1);
  EXPECT_EQ(exit_code_of(record("failed", nullptr, "SIGWHAT")), 1);
  EXPECT_EQ(exit_code_of({}), 1);
}

TEST(TaskView, AnOutcomeSaysWhy) {
  EXPECT_EQ(outcome_of(record("completed", 0)), "completed");
  object failed = record("failed", 7);
  EXPECT_EQ(outcome_of(failed), "failed");
  failed["error"] = {{"reason", "exit"}, {"message", "exited with code 7"}};
  EXPECT_EQ(outcome_of(failed), "failed: exited with code 7");
  failed["error"] = {{"reason", "lost"}};
  EXPECT_EQ(outcome_of(failed), "failed: lost");
}

TEST(TaskView, RunTimeGoesOnWhileItRuns) {
  const base::UtcTime now = *parse_time("2026-11-15T09:30:30.000Z");
  object task = record("running");
  EXPECT_EQ(run_time_of(task, now), "");
  task["startedAt"] = "2026-11-15T09:29:10.000Z";
  EXPECT_EQ(run_time_of(task, now), "1m 20s");
  task["state"] = "queued";
  EXPECT_EQ(run_time_of(task, now), "") << "between two attempts";
  task["state"] = "completed";
  task["completedAt"] = "2026-11-15T09:29:10.500Z";
  EXPECT_EQ(run_time_of(task, now), "500ms");
}

TEST(TaskView, AMemberIsTextOrNothing) {
  EXPECT_EQ(member_text(record("failed", 7), "state"), "failed");
  EXPECT_EQ(member_text(record("failed", 7), "exitCode"), "7");
  EXPECT_EQ(member_text(record("failed", 7), "signal"), "");
  EXPECT_EQ(member_text(record("failed", 7), "nothing"), "");
}

}  // namespace
}  // namespace duet::app
