#include "app/daemon/task_log.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "duet/base/clock.h"
#include "duet/base/log_sink.h"

namespace duet::app {
namespace {

class KeptLines final : public base::LogSink {
 public:
  explicit KeptLines(std::string& text) : text_(text) {}
  std::size_t write(std::string_view lines) override {
    text_ += lines;
    return lines.size();
  }

 private:
  std::string& text_;
};

std::string logged(const task::Event& event, base::Level level = base::Level::info) {
  std::string text;
  {
    base::Log log(std::make_unique<KeptLines>(text), level);
    log_task_event(log, event);
    log.flush();
  }
  constexpr std::string_view level_name = "info  ";
  const std::size_t at = text.find(level_name);
  return at == text.npos ? "" : text.substr(at + level_name.size());
}

TEST(TaskLog, TellsWhatBecomesOfATask) {
  EXPECT_EQ(logged({.seq = 1, .kind = "taskQueued", .task = 7, .params = R"({"agent":"claude","attempts":0})"}),
            "task accepted task=\"task-7\" agent=\"claude\"\n");
}

TEST(TaskLog, TellsHowItEnded) {
  const std::string line = logged({.seq = 3,
                                   .kind = "taskFailed",
                                   .task = 7,
                                   .params = R"({"agent":"claude","attempts":2,"pid":5,"exitCode":null,)"
                                             R"("signal":"SIGKILL","error":{"message":"/secret","reason":"signal"}})"});
  EXPECT_EQ(line, "task failed task=\"task-7\" agent=\"claude\" attempt=2 signal=\"SIGKILL\" reason=\"signal\"\n");
}

TEST(TaskLog, TellsOfTheNextAttempt) {
  const std::string line = logged({.seq = 3,
                                   .kind = "taskQueued",
                                   .task = 7,
                                   .params = R"({"agent":"a","attempts":1,"retryAt":"2026-01-01T00:00:00.000Z"})"});
  EXPECT_EQ(line, "task is to be tried again task=\"task-7\" agent=\"a\" retryAt=\"2026-01-01T00:00:00.000Z\"\n");
}

TEST(TaskLog, TellsOfAgentsThatAreHeldAndOfTheTaskThatMetTheLimit) {
  EXPECT_EQ(logged({.seq = 1,
                    .kind = "agentHeld",
                    .params = R"({"agent":"a","until":"2026-01-01T00:00:00.000Z","taskId":"task-7","text":"secret"})"}),
            "agent held agent=\"a\" until=\"2026-01-01T00:00:00.000Z\" task=\"task-7\"\n");
  EXPECT_EQ(logged({.seq = 2, .kind = "agentReleased", .params = R"({"agent":"a","by":"time"})"}),
            "agent released agent=\"a\" by=\"time\"\n");
  EXPECT_EQ(logged({.seq = 3, .kind = "taskQueued", .task = 7, .params = R"({"agent":"a","attempts":1})"}),
            "task is queued again task=\"task-7\" agent=\"a\"\n");
}

TEST(TaskLog, IsSilentAboutTheRest) {
  EXPECT_EQ(logged({.seq = 1, .kind = "daemonStopping", .task = 0, .params = "{}"}), "");
  EXPECT_EQ(logged({.seq = 1, .kind = "taskOutput", .task = 7, .params = "{}"}), "");
  EXPECT_EQ(logged({.seq = 1, .kind = "taskQueued", .task = 7, .params = "{}"}, base::Level::warn), "");
  EXPECT_EQ(logged({.seq = 1, .kind = "taskQueued", .task = 7, .params = "{}", .arrived_at = base::UtcTime()}), "");
}

}  // namespace
}  // namespace duet::app
