#include "app/mcp/mcp_tasks.h"

#include <gtest/gtest.h>

#include "duet/rpc/value.h"
#include "task/time_text.h"

namespace duet::app::mcp {
namespace {

using boost::json::object;

const std::string handle = "task-7-abcdefghijklmnopqrstuvwxyz";

GivenTask given(std::string_view state) {
  GivenTask task{.handle = handle};
  task.view.record = {{"id", "task-7"},
                      {"state", state},
                      {"agent", "claude"},
                      {"prompt", "x"},
                      {"attempts", 1},
                      {"createdAt", "2026-11-15T09:30:00.000Z"},
                      {"startedAt", "2026-11-15T09:30:01.000Z"},
                      {"completedAt", nullptr}};
  if (state != "running" && state != "queued") task.view.record["completedAt"] = "2026-11-15T09:30:10.500Z";
  task.view.output_bytes = 4096;
  return task;
}

base::UtcTime at(std::string_view time) { return *task::parse_time(time); }

TEST(McpTasks, OneThatWorksHasNoEnd) {
  EXPECT_EQ(rpc::to_text(modern_task(given("running"), at("2026-11-15T09:30:20Z"))),
            R"({"taskId":")" + handle +
                R"(","status":"working","statusMessage":"task-7 running, 20 s, 4,096 bytes of output",)"
                R"("createdAt":"2026-11-15T09:30:00.000Z","lastUpdatedAt":"2026-11-15T09:30:01.000Z","ttlMs":null,)"
                R"("pollIntervalMs":1000})");
}

TEST(McpTasks, AfterAMinuteItIsAskedForLessOften) {
  EXPECT_EQ(modern_task(given("running"), at("2026-11-15T09:31:00Z")).at("pollIntervalMs"), 5000);
  EXPECT_EQ(legacy_task(given("queued"), at("2026-11-15T09:30:30Z")).at("pollInterval"), 1000);
}

TEST(McpTasks, OneThatHasEndedIsKeptForADay) {
  EXPECT_EQ(modern_task(given("completed"), at("2026-11-15T12:00:00Z")).at("ttlMs"), 10'500 + 24 * 3'600'000);
  EXPECT_EQ(legacy_task(given("failed"), at("2026-11-15T12:00:00Z")).at("ttl"), 10'500 + 24 * 3'600'000);
}

TEST(McpTasks, AFailureIsACompletedCallToModernClientsOnly) {
  const base::UtcTime now = at("2026-11-15T12:00:00Z");
  EXPECT_EQ(modern_task(given("failed"), now).at("status"), "completed");
  EXPECT_EQ(legacy_task(given("failed"), now).at("status"), "failed");
  EXPECT_EQ(modern_task(given("cancelled"), now).at("status"), "cancelled");
  EXPECT_EQ(legacy_task(given("queued"), now).at("status"), "working");
}

TEST(McpTasks, OneThatIsBeingCancelledSaysSo) {
  GivenTask task = given("running");
  task.is_cancelling = true;
  EXPECT_NE(
      std::string(modern_task(task, at("2026-11-15T09:30:20Z")).at("statusMessage").as_string()).find("cancelling"),
      std::string::npos);
}

TEST(McpTasks, AnEndThatIsNoSuccessIsAnError) {
  EXPECT_TRUE(run_answer(given("failed").view, "/p", 16'000).is_error);
  EXPECT_TRUE(run_answer(given("cancelled").view, "/p", 16'000).is_error);
  EXPECT_FALSE(run_answer(given("completed").view, "/p", 16'000).is_error);
  EXPECT_FALSE(run_answer(given("running").view, "/p", 16'000).is_error);
}

TEST(McpTasks, AHandleHasItsForm) {
  EXPECT_TRUE(is_handle(handle));
  for (const char* text :
       {"task-7", "task-7-abc", "abcdefghijklmnopqrstuvwxyz", "task--abcdefghijklmnopqrstuvwxyz", ""}) {
    EXPECT_FALSE(is_handle(text)) << text;
  }
}

}  // namespace
}  // namespace duet::app::mcp
