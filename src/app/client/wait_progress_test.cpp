#include "app/client/wait_progress.h"

#include <gtest/gtest.h>

#include "app/view/table.h"

namespace duet::app {
namespace {

using boost::json::object;

const base::UtcTime wait_progress_now = *parse_time("2026-11-16T14:02:11.000Z");

object task(int number, std::string_view state) {
  object out{{"id", "task-" + std::to_string(number)}, {"state", state}};
  if (state == "running") out["startedAt"] = "2026-11-16T14:02:01.000Z";
  return out;
}

TEST(WaitProgress, SaysHowManyAreDoneAndWhatRuns) {
  EXPECT_EQ(progress_line({task(1, "completed"), task(2, "running"), task(3, "queued")}, wait_progress_now),
            "1 of 3 done; running: task-2 for 10s; 1 queued");
  EXPECT_EQ(progress_line({task(1, "queued")}, wait_progress_now), "0 of 1 done; 1 queued");
  EXPECT_EQ(progress_line({task(1, "failed"), task(2, "cancelled")}, wait_progress_now), "");
}

TEST(WaitProgress, ARecordGoesAlongWithWhatIsTold) {
  object record = task(1, "running");
  record["exitCode"] = nullptr;
  EXPECT_FALSE(note_progress(record, {{"taskId", "task-2"}, {"state", "failed"}, {"exitCode", 7}, {"seq", 9}}));
  EXPECT_FALSE(note_progress(record, {{"taskId", "task-1"}, {"exitCode", 7}}));
  EXPECT_TRUE(record.at("exitCode").is_null());
  EXPECT_TRUE(note_progress(record, {{"taskId", "task-1"}, {"state", "failed"}, {"exitCode", 7}, {"seq", 9}}));
  EXPECT_EQ(record.at("state"), "failed");
  EXPECT_EQ(record.at("exitCode"), 7);
  EXPECT_FALSE(record.contains("seq")) << "it stays a record";
}

TEST(WaitProgress, NamesAFew) {
  std::vector<object> tasks;
  for (int i = 1; i <= 5; ++i) tasks.push_back(task(i, "running"));
  EXPECT_EQ(progress_line(tasks, wait_progress_now),
            "0 of 5 done; running: task-1 for 10s, task-2 for 10s, task-3 for 10s and 2 more");
}

}  // namespace
}  // namespace duet::app
