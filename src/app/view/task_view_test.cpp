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

TEST(TaskView, APageShowsWhatTheSubmitSaid) {
  object task = record("queued");
  task["prompt"] = "do\nit\x1b[31m";
  task["metadata"] = {
      {"key", "k"}, {"cwd", "/srv"}, {"timeoutSeconds", 90.5}, {"retries", 2}, {"after", {"task-1", "task-2"}}};
  EXPECT_EQ(task_page(task, TextStyle(false), {}),
            "id          task-1\nstate       queued\nkey         k\nfolder      /srv\nafter       task-1, task-2\n"
            "retries     2\ntime limit  1m 30s\nprompt\n  do\n  it\uFFFD[31m\n");
}

TEST(TaskView, APageShowsWhoAskedOverTheNetwork) {
  const auto page = [](const char* by) {
    object task = record("queued");
    task["metadata"] = {{"by", by}};
    return task_page(task, TextStyle(false), {});
  };
  EXPECT_NE(page("http:ci").find("http:ci"), std::string::npos);
  EXPECT_EQ(page("unix").find("unix"), std::string::npos);
}

TEST(TaskView, APageShowsWhereATaskOfASharedQueueRuns) {
  object task = record("running");
  task["worker"] = "build-3";
  task["needs"] = boost::json::array{"gpu"};
  task["onLost"] = "retry";
  task["submittedBy"] = "ann";
  EXPECT_EQ(task_page(task, TextStyle(false), {}),
            "id          task-1\nstate       running\nworker      build-3\nneeds       gpu\n"
            "if lost     runs again elsewhere\nrole        ann\n");
  task["silent"] = true;
  EXPECT_NE(task_page(task, TextStyle(false), {}).find("build-3 (not heard of)"), std::string::npos);
}

TEST(TaskView, APageShowsWhatATaskOfASharedQueueWaitsFor) {
  object task = record("queued");
  task["worker"] = nullptr;
  task["onLost"] = "fail";
  task["waitingFor"] = "no worker with gpu";
  EXPECT_EQ(task_page(task, TextStyle(false), {}),
            "id          task-1\nstate       queued\nwaits for   no worker with gpu\n");
}

TEST(TaskView, APageShowsAnEndThatCameLate) {
  object task = record("failed");
  task["late"] = {{"exitCode", 3}, {"signal", nullptr}, {"completedAt", "2026-01-02T03:04:05.000Z"}};
  EXPECT_NE(task_page(task, TextStyle(false), {})
                .find("late end    exit code 3 at 2026-01-02T03:04:05.000Z, which does not count\n"),
            std::string::npos);
}

TEST(TaskView, APageShowsWhatWasUsed) {
  object task = record("completed", 0);
  task["cpuSeconds"] = 61.5;
  task["maxMemory"] = 210 << 20;
  task["outputBytes"] = 17;
  const std::string page = task_page(task, TextStyle(false), {});
  EXPECT_NE(page.find("used        1m 1s of CPU time, 210 MiB of memory, 17 B of output\n"), std::string::npos) << page;
}

TEST(TaskView, OfALongPromptTheEndIsShown) {
  object task = record("queued");
  std::string prompt;
  for (int i = 0; i < 30; ++i) prompt += std::to_string(i) + '\n';
  task["prompt"] = prompt;
  const std::string page = task_page(task, TextStyle(false), {});
  EXPECT_NE(page.find("prompt\n  [...]\n  10\n"), std::string::npos) << page;
  EXPECT_TRUE(page.ends_with("\n  29\n"));
}

TEST(TaskView, ATaskThatStillRunsIsNotCancelledYet) {
  EXPECT_EQ(cancel_line(record("running")), "task-1 cancelling");
  EXPECT_EQ(cancel_line(record("cancelled")), "task-1 cancelled");
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
