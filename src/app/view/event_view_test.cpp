#include "app/view/event_view.h"

#include <gtest/gtest.h>

#include "app/view/local_time.h"
#include "app/view/table.h"
#include "duet/rpc/value.h"

namespace duet::app {
namespace {

const base::UtcTime event_view_now = *parse_time("2026-11-16T14:02:11.500Z");

// Without the time, which is that of the place where the test runs.
std::string told(std::string_view method, std::string_view params) {
  const std::string line =
      event_line(method, rpc::parse_value(params).as_object(), TextStyle(false), event_view_now, event_view_now);
  EXPECT_EQ(line.substr(8, 2), "  ");
  return line.substr(10);
}

TEST(EventView, TellsHowATaskWent) {
  EXPECT_EQ(told("event.taskFailed",
                 R"({"seq":9,"taskId":"task-7","state":"failed","agent":"claude","attempts":1,
                     "startedAt":"2026-11-16T14:00:08.000Z","completedAt":"2026-11-16T14:02:11.000Z","exitCode":1,
                     "signal":null,"error":{"reason":"exit","message":"exited with code 1"}})"),
            "task-7    failed     claude  exit 1  after 2m 3s");
  EXPECT_EQ(told("event.taskQueued", R"({"seq":1,"taskId":"task-12345","state":"queued","agent":"a"})"),
            "task-12345  queued     a");
  EXPECT_EQ(told("event.taskStarted", R"({"taskId":"task-1","agent":"a","attempts":2})"),
            "task-1    started    a  attempt 2");
  EXPECT_EQ(told("event.taskFailed", R"({"taskId":"task-1","agent":"a","exitCode":null,"signal":null,
                                         "error":{"reason":"timeout","message":"ran longer than 5 s"}})"),
            "task-1    failed     a  ran longer than 5 s");
}

TEST(EventView, OtherEventsTellAllTheySay) {
  EXPECT_EQ(told("event.agentHeld", R"({"seq":4,"agent":"x\u001b","until":"later","none":null})"),
            "x\xEF\xBF\xBD        held       until=later");
  EXPECT_EQ(told("event.taskHeld", R"({"taskId":"task-3","state":"queued","agent":"a","attempts":0})"),
            "task-3    held       agent=a");
  EXPECT_EQ(told("event.queuePaused", R"({"seq":4})"), "queue     paused");
  EXPECT_EQ(told("event.queuePaused", R"({"group":"g"})"), "g         paused");
  EXPECT_EQ(told("event.automationFired", R"({"ruleId":"saved","taskId":"task-2"})"),
            "saved     fired      taskId=task-2");
  EXPECT_EQ(told("event.settingsChanged", R"({"added":["a"],"removed":[]})"), "settings  changed    added=[\"a\"]");
  EXPECT_EQ(told("event.notice", R"({"message":"hello there"})"), "notice               message=hello there");
}

TEST(EventView, AReplayedTaskSaysWhenItCame) {
  const auto params = rpc::parse_value(R"({"taskId":"task-1","agent":"a","createdAt":"2026-11-16T14:00:00.000Z"})");
  const std::string line =
      event_line("event.taskQueued", params.as_object(), TextStyle(false), std::nullopt, event_view_now);
  EXPECT_EQ(line, clock_time(*parse_time("2026-11-16T14:00:00.000Z"), event_view_now) + "  task-1    queued     a");
}

TEST(EventView, ATimeFarAwayIsText) {
  EXPECT_EQ(told("event.agentHeld", R"({"agent":"a","until":"9999-12-31T23:59:59.000Z"})"),
            "a         held       until=9999-12-31T23:59:59.000Z");
}

TEST(EventView, TimesInWhatOthersWroteStayAsTheyAre) {
  EXPECT_EQ(told("event.notice", R"({"message":"at 2026-11-16T14:02:11.000Z"})"),
            "notice               message=at 2026-11-16T14:02:11.000Z");
  EXPECT_EQ(told("event.taskOutput", R"({"taskId":"task-1","data":"2026-11-16T14:02:11.000Z"})"),
            "task-1    output     data=2026-11-16T14:02:11.000Z");
  EXPECT_EQ(told("event.agentHeld", R"({"agent":"a","until":"2026-11-16T14:02:11.000Z"})"),
            "a         held       until=" + clock_time(*parse_time("2026-11-16T14:02:11.000Z"), event_view_now));
}

}  // namespace
}  // namespace duet::app
