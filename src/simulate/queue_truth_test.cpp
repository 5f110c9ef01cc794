#include "simulate/queue_truth.h"

#include <gtest/gtest.h>

namespace duet::simulate {
namespace {

TEST(QueueTruth, TheHighestPriorityIsNextAndOfThoseTheOldest) {
  QueueTruth queue;
  queue.queued(1, 0, {});
  queue.queued(2, 5, {});
  queue.queued(3, 5, {});
  queue.next_turn();
  EXPECT_EQ(queue.passed_over(1, 0), 2U);
  EXPECT_EQ(queue.passed_over(3, 5), 2U);
  EXPECT_EQ(queue.passed_over(2, 5), std::nullopt);
  queue.left(2);
  EXPECT_EQ(queue.passed_over(3, 5), std::nullopt);
}

TEST(QueueTruth, WhatWasToldInThisTurnDoesNotCountYet) {
  QueueTruth queue;
  queue.queued(1, 5, {});
  EXPECT_EQ(queue.passed_over(2, 0), std::nullopt);
  queue.next_turn();
  EXPECT_EQ(queue.passed_over(2, 0), 1U);
}

TEST(QueueTruth, ATaskWaitsForWhatItComesAfter) {
  QueueTruth queue;
  queue.queued(3, 5, {1, 2});
  queue.next_turn();
  queue.completed(1);
  queue.next_turn();
  EXPECT_EQ(queue.passed_over(4, 0), std::nullopt);
  queue.completed(2);
  queue.next_turn();
  EXPECT_EQ(queue.passed_over(4, 0), 3U);
}

}  // namespace
}  // namespace duet::simulate
