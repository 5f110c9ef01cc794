#include "automation/event.h"

#include <gtest/gtest.h>

namespace duet::automation {
namespace {

TEST(Event, IsToldToATaskByItsEnvironment) {
  const Event event{.source = "task",
                    .type = "task.failed",
                    .payload = {{"taskId", "task-3"}, {"exitCode", 7}, {"signal", nullptr}, {"path", "a\n$(b) \xFF"}}};
  EXPECT_EQ(environment_of(event), (process::Environment{{"DUET_SOURCE", "task"},
                                                         {"DUET_TYPE", "task.failed"},
                                                         {"DUET_EVENT_TASK_ID", "task-3"},
                                                         {"DUET_EXIT_CODE", "7"},
                                                         {"DUET_SIGNAL", ""},
                                                         {"DUET_PATH", "a\n$(b) \xFF"}}));
}

}  // namespace
}  // namespace duet::automation
