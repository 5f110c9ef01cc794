#include "app/words/task_name.h"

#include <gtest/gtest.h>

namespace duet::app {
namespace {

TEST(TaskName, ANumberIsATasksId) {
  EXPECT_EQ(task_name("3"), "task-3");
  EXPECT_EQ(task_name("task-3"), "task-3");
  for (const char* word : {"", "03", "-3", "3x", "0", "task"}) EXPECT_EQ(task_name(word), word);
}

}  // namespace
}  // namespace duet::app
