#include "task/task.h"

#include <gtest/gtest.h>

#include "duet/rpc/value.h"

namespace duet::task {
namespace {

using namespace std::chrono_literals;

TEST(TaskId, HasOneSpelling) {
  EXPECT_EQ(to_text(7), "task-7");
  EXPECT_EQ(parse_task_id("task-7"), 7U);
  EXPECT_EQ(parse_task_id("task-9223372036854775807"), 9223372036854775807U);
  for (const char* text : {"", "7", "task-", "task-0", "task-07", "task-+7", "task--7", "Task-7", "task-7 ", "task-7x",
                           "task-9223372036854775808", "task-99999999999999999999"}) {
    EXPECT_EQ(parse_task_id(text), std::nullopt) << text;
  }
}

TEST(TaskRecord, SaysNullWhereNothingIsKnown) {
  const Task task{.id = 3, .prompt = "p", .agent = "shell", .created_at = base::UtcTime(1'700'000'000'009ms)};
  EXPECT_EQ(rpc::to_text(record_of(task)),
            R"({"id":"task-3","prompt":"p","agent":"shell","group":"default","priority":0,"state":"queued",)"
            R"("held":false,"createdAt":"2023-11-14T22:13:20.009Z","notBefore":null,"retryAt":null,"startedAt":null,)"
            R"("completedAt":null,"pid":null,"exitCode":null,"signal":null,"result":null,"error":null,"attempts":0,)"
            R"("cpuSeconds":null,"maxMemory":null,"outputBytes":null,"outputDropped":false,)"
            R"("attemptsNotCounted":0,"labels":{},"metadata":{}})");
}

TEST(TaskRecord, TellsHowItEnded) {
  Task task{.id = 3, .prompt = "p", .agent = "shell", .priority = 5};
  task.progress = {
      .state = State::failed, .attempts = 2, .started_at = base::UtcTime(1s), .completed_at = base::UtcTime(2s)};
  task.progress.pid = 42;
  task.progress.exit_code = 7;
  task.progress.error = {Reason::exit, "exited with code 7"};
  task.result = "out";
  const boost::json::object record = record_of(task);
  EXPECT_EQ(record.at("state"), "failed");
  EXPECT_EQ(record.at("startedAt"), "1970-01-01T00:00:01.000Z");
  EXPECT_EQ(record.at("pid"), 42);
  EXPECT_EQ(record.at("exitCode"), 7);
  EXPECT_EQ(record.at("result"), "out");
  EXPECT_EQ(rpc::to_text(record.at("error")), R"({"reason":"exit","message":"exited with code 7"})");
}

TEST(TaskRecord, TellsWhenTheNextAttemptComesWhileItWaitsForIt) {
  Task task{.id = 3};
  task.progress = {.attempts = 1, .retry_at = base::UtcTime(5s)};
  EXPECT_EQ(record_of(task).at("retryAt"), "1970-01-01T00:00:05.000Z");
  task.progress.state = State::cancelled;
  EXPECT_TRUE(record_of(task).at("retryAt").is_null());
}

TEST(TaskRecord, AResultBeginsWithAWholeCharacter) {
  Task task{.id = 1};
  task.result = "\xA4\xB8rest";
  EXPECT_EQ(record_of(task).at("result"), "rest");
  task.result = "\xFFrest";
  EXPECT_EQ(rpc::to_text(record_of(task).at("result")), "\"\uFFFDrest\"");
}

TEST(Submission, ComesBackFromItsBodyWhole) {
  Submission submission{
      .prompt = "say \"hi\"\n$(x) \u00e4", .agent = "cat", .priority = -3, .key = "k", .cwd = "/somewhere"};
  submission.env = {{"A", "1"}, {"PATH", "/bin:/usr/bin"}};
  submission.time_limit = 1500ms;
  submission.retries = 4;
  submission.group = "batch";
  submission.delay = 1500ms;
  submission.not_before = base::UtcTime(1'800'000'000'001ms);
  submission.labels = {{"kind", "x"}};
  submission.after = {1, 22};
  submission.metadata = {{"rule", "r"}, {"depth", 2}};
  submission.by = "unix";
  const Submission back = from_body(to_body(submission));
  EXPECT_EQ(back.prompt, submission.prompt);
  EXPECT_EQ(back.agent, submission.agent);
  EXPECT_EQ(back.priority, -3);
  EXPECT_EQ(back.key, "k");
  EXPECT_EQ(back.cwd, "/somewhere");
  EXPECT_EQ(back.env, submission.env);
  EXPECT_EQ(back.time_limit, 1500ms);
  EXPECT_EQ(back.retries, 4U);
  EXPECT_EQ(back.group, "batch");
  EXPECT_EQ(back.delay, submission.delay);
  EXPECT_EQ(back.not_before, submission.not_before);
  EXPECT_EQ(back.labels, submission.labels);
  EXPECT_EQ(back.after, submission.after);
  EXPECT_EQ(back.metadata, submission.metadata);
  EXPECT_EQ(to_body(back), to_body(submission));
  EXPECT_EQ(from_body(to_body({.prompt = "p"})).agent, std::nullopt);
  EXPECT_EQ(from_body(to_body({.prompt = "p"})).priority, std::nullopt);
}

TEST(Submission, ItsEnvironmentMayHoldAnyBytes) {
  const Submission submission{.prompt = "p", .env = {{"DUET_PATH", "in/\xFF\xC3 \x80"}, {"EMPTY", ""}}};
  EXPECT_EQ(from_body(to_body(submission)).env, submission.env);
}

TEST(Submission, ItsEnvironmentIsNotShown) {
  const Submission submission{.prompt = "p", .key = "k", .cwd = "/x", .env = {{"TOKEN", "secret"}}, .retries = 1};
  const std::string shown = rpc::to_text(shown_metadata(submission));
  EXPECT_EQ(shown, R"({"key":"k","cwd":"/x","retries":1})");
}

TEST(Submission, ItsMetadataAreTheSameAsText) {
  Submission submission{.prompt = "p",
                        .key = "k\"\n",
                        .cwd = "/\xC3\xA4",
                        .time_limit = std::chrono::milliseconds(1500),
                        .retries = 2,
                        .after = {3, 4},
                        .limits = {.memory = 1U << 30U, .processes = 5, .cpu = 1.5},
                        .by = "unix"};
  EXPECT_EQ(rpc::parse_value(shown_metadata_text(submission)), shown_metadata(submission));
  submission.metadata["source"] = "chat";
  EXPECT_EQ(rpc::parse_value(shown_metadata_text(submission)), shown_metadata(submission));
  EXPECT_EQ(shown_metadata_text({.prompt = "p"}), "{}");
}

}  // namespace
}  // namespace duet::task
