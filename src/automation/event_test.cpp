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

TEST(Event, AFileThatIsThereIsPreferredToOneThatHasGone) {
  const auto changed = [](const char* type, const char* path) {
    return Event{.source = "watch", .type = type, .payload = {{"path", path}}};
  };
  Event event = changed("file.delete", "a");
  prefer_what_is_there(event, changed("file.delete", "b"));
  EXPECT_EQ(event.payload.at("path"), "a");
  prefer_what_is_there(event, changed("file.modify", "c"));
  prefer_what_is_there(event, changed("file.create", "d"));
  EXPECT_EQ(event.type, "file.modify");
  EXPECT_EQ(event.payload.at("path"), "c");
}

}  // namespace
}  // namespace duet::automation
