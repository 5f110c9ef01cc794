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

TEST(Event, AFileThatIsSavedAgainPushesNoOtherOut) {
  const auto saved = [](int files) {
    boost::json::array paths;
    for (int i = 0; i < files; ++i) paths.emplace_back(std::string(60, 'x') + std::to_string(i));
    return Event{.source = "watch", .type = "file.modify", .payload = {{"paths", std::move(paths)}}};
  };
  Event event = saved(400);
  add_paths(event, saved(401));
  EXPECT_EQ(event.payload.at("paths").as_array().size(), 401U);
}

}  // namespace
}  // namespace duet::automation
