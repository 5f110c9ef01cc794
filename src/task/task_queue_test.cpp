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
  queue.block(1, Block::leftovers);
  queue.block(1, Block::leftovers);
  queue.block(1, Block::held);
  queue.block(1, Block::held);
  queue.unblock(1, Block::leftovers);
  queue.unblock(1, Block::held);
  EXPECT_EQ(drained(queue), (std::vector<TaskId>{}));
  EXPECT_TRUE(queue.contains(1));
  EXPECT_TRUE(queue.is_blocked(1, Block::leftovers));
  EXPECT_FALSE(queue.is_blocked(1, Block::held));
  queue.unblock(1, Block::leftovers);
  EXPECT_EQ(drained(queue), (std::vector<TaskId>{1}));
  queue.unblock(1, Block::held);
  queue.block(7, Block::pause);
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
  queue.unblock(4, Block::after);
  EXPECT_EQ(drained(queue), (std::vector<TaskId>{4}));
}

TEST(TaskQueue, GroupsTakeTurns) {
  TaskQueue queue;
  for (const TaskId id : {1U, 2U, 3U, 4U}) queue.add(id, {.priority = 9, .agent = "a", .group = "loud"});
  for (const TaskId id : {5U, 6U}) queue.add(id, {.priority = -9, .agent = "a", .group = "quiet"});
  queue.add(7, {.priority = 3, .agent = "a", .group = "quiet"});
  EXPECT_EQ(drained(queue), (std::vector<TaskId>{1, 7, 2, 5, 3, 6, 4}));
}

TEST(TaskQueue, WhoHadNoTaskForLongHasNoMoreThanItsTurn) {
  TaskQueue queue;
  for (TaskId id = 1; id <= 6; ++id) queue.add(id, {.group = "busy"});
  EXPECT_EQ(queue.take_next()->first, 1U);
  EXPECT_EQ(queue.take_next()->first, 2U);
  for (TaskId id = 11; id <= 13; ++id) queue.add(id, {.group = "new"});
  EXPECT_EQ(drained(queue), (std::vector<TaskId>{11, 3, 12, 4, 13, 5, 6}));
}

TEST(TaskQueue, PassesByWhatMayNotStartNow) {
  TaskQueue queue;
  queue.add(1, {.priority = 5, .agent = "held", .group = "a"});
  queue.add(2, {.agent = "free", .group = "a"});
  queue.add(3, {.agent = "free", .group = "shut"});
  const TaskQueue::Doors doors{.group = [](const std::string& group) { return group != "shut"; },
                               .agent = [](const std::string& agent) { return agent != "held"; }};
  EXPECT_EQ(queue.take_next(doors)->first, 2U);
  EXPECT_FALSE(queue.take_next(doors));
  EXPECT_EQ(queue.queued_in_group("a"), 1U);
  EXPECT_EQ(queue.queued_for_agent("free"), 1U);
  EXPECT_EQ(drained(queue), (std::vector<TaskId>{3, 1}));
}

TEST(TaskQueue, AChangedTaskHasItsNewPlace) {
  TaskQueue queue;
  for (TaskId id = 1; id <= 3; ++id) queue.add(id, {});
  queue.block(2, Block::held);
  queue.change(3, 7, default_group);
  queue.change(2, 9, "other");
  EXPECT_EQ(queue.count_before(1), 1U);
  EXPECT_EQ(queue.find(2)->group, "other");
  EXPECT_EQ(drained(queue), (std::vector<TaskId>{3, 1}));
  queue.unblock(2, Block::held);
  EXPECT_EQ(drained(queue), (std::vector<TaskId>{2}));
}

TEST(TaskQueue, KnowsWhoComesAfterWhom) {
  TaskQueue queue;
  for (TaskId id = 1; id <= 4; ++id) queue.add(id, {});
  queue.wait_for(2, 1);
  queue.wait_for(3, 2);
  EXPECT_EQ(queue.all_dependents(1), (std::unordered_set<TaskId>{2, 3}));
  EXPECT_EQ(queue.all_dependents(3), std::unordered_set<TaskId>());
  queue.stop_waiting_for(2, 1);
  EXPECT_FALSE(queue.all_dependents(1).contains(3));
  EXPECT_FALSE(queue.has_dependents(1));
  EXPECT_EQ(drained(queue), (std::vector<TaskId>{1, 2, 4}));
}

TEST(TaskQueue, ATaskThatCameBackIsNotToldOfWhatItWaitedForBefore) {
  TaskQueue queue;
  queue.add(2, {});
  queue.wait_for(2, 1);
  queue.remove(2);
  queue.add(2, {});
  EXPECT_EQ(queue.take_dependents(1), (std::vector<TaskId>{}));
}

}  // namespace
}  // namespace duet::task
