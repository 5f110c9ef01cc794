#include "task/task_queue.h"

#include <limits>

#include <gtest/gtest.h>

namespace duet::task {
namespace {

std::vector<TaskId> drained(TaskQueue& queue) {
  std::vector<TaskId> ids;
  while (const auto next = queue.take_next()) ids.push_back(next->first);
  return ids;
}

TEST(TaskQueue, GivesTheMostUrgentAndOfThoseTheOldest) {
  TaskQueue queue;
  queue.add(4, {.priority = 0});
  queue.add(2, {.priority = std::numeric_limits<std::int64_t>::min()});
  queue.add(1, {.priority = 0});
  queue.add(3, {.priority = std::numeric_limits<std::int64_t>::max()});
  EXPECT_EQ(drained(queue), (std::vector<TaskId>{3, 1, 4, 2}));
  EXPECT_EQ(queue.size(), 0U);
}

TEST(TaskQueue, KeepsWhatIsBlockedUntilNothingBlocksIt) {
  TaskQueue queue;
  queue.add(1, {});
  queue.block(1);
  queue.block(1);
  queue.unblock(1);
  EXPECT_EQ(drained(queue), (std::vector<TaskId>{}));
  EXPECT_TRUE(queue.contains(1));
  queue.unblock(1);
  EXPECT_EQ(drained(queue), (std::vector<TaskId>{1}));
  queue.unblock(1);
  queue.block(7);
  EXPECT_EQ(queue.size(), 0U);
}

TEST(TaskQueue, TellsWhoWaitedForATask) {
  TaskQueue queue;
  for (TaskId id = 2; id <= 4; ++id) {
    queue.add(id, {});
    queue.wait_for(id, 1);
  }
  queue.remove(3);
  EXPECT_EQ(drained(queue), (std::vector<TaskId>{}));
  EXPECT_EQ(queue.take_dependents(1), (std::vector<TaskId>{2, 4}));
  EXPECT_EQ(queue.take_dependents(1), (std::vector<TaskId>{}));
  queue.unblock(4);
  EXPECT_EQ(drained(queue), (std::vector<TaskId>{4}));
}

}  // namespace
}  // namespace duet::task
