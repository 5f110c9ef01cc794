#include "simulate/cluster_fixture_test.h"

namespace duet::simulate {
namespace {

using namespace std::chrono_literals;

class ClusterStartsTest : public ClusterFixture {};

TEST_F(ClusterStartsTest, AFenceStartsOneProcess) {
  const task::TaskId id = submit({.prompt = "x"});
  const Tree tree = start(0, id);
  die(tree, exited(0));
  EXPECT_EQ(said(), "");
  truth.began(0, tree);
  EXPECT_EQ(said(), "task-1 began twice under fence 1");
}

TEST_F(ClusterStartsTest, WhatBeginsIsThereAndWasAskedFor) {
  write({.prompt = "x"});
  truth.began(0, tree_of(1, claim(0)));
  EXPECT_EQ(said(), "task-1 begins, and nobody asked for it");
}

TEST_F(ClusterStartsTest, WhatIsNotThereDoesNotBegin) {
  truth.began(0, tree_of(4, 4));
  EXPECT_EQ(said(), "task-4 begins, and is not there");
}

TEST_F(ClusterStartsTest, TwoAttemptsDoNotRunAtOnce) {
  const task::TaskId id = submit({.prompt = "x", .retries = 2});
  const Tree first = start(0, id);
  die(first, exited(1));
  truth.began(1, tree_of(id, 2, 2));
  EXPECT_EQ(said(), "");
  truth.began(1, tree_of(id, 3, 3));
  EXPECT_EQ(said(), "two attempts of task-1 run at once, under fence 2 and 3");
}

TEST_F(ClusterStartsTest, NorDoesAnyProcessOfTheOneBefore) {
  const task::TaskId id = submit({.prompt = "x", .retries = 2});
  const Tree first = start(0, id);
  truth.main_ended(first, exited(1), true);
  truth.keeper_died(0, first.run);
  const Tree second = tree_of(id, 2, 2);
  truth.began(1, second);
  EXPECT_EQ(said(), "") << "nobody was left to end them";
  truth.main_ended(second, exited(1), true);
  truth.began(1, tree_of(id, 3, 3));
  EXPECT_EQ(said(), "two attempts of task-1 run at once, under fence 2 and 3");
}

TEST_F(ClusterStartsTest, ATaskThatIsNotRepeatedBeginsAsOftenAsItMay) {
  const task::TaskId id = submit({.prompt = "x", .retries = 1});
  die(start(0, id), exited(1));
  const Tree second = tree_of(id, 2, 2);
  truth.began(0, second);
  die(second, exited(1));
  EXPECT_EQ(said(), "");
  truth.began(0, tree_of(id, 3, 3));
  EXPECT_EQ(said(), "task-1 begins once too often");
}

TEST_F(ClusterStartsTest, OneThatIsRepeatedBeginsAgainForEachThatWasLost) {
  const task::TaskId id = submit({.prompt = "x", .on_lost = task::OnLost::retry});
  die(start(0, id), exited(1));
  clock.advance(lease);
  call("silence_v1", as(1, {"1", "1"}));
  const Tree second = tree_of(id, claim(1), 2);
  truth.began(1, second);
  die(second, exited(1));
  EXPECT_EQ(said(), "");
  truth.began(1, tree_of(id, 3, 3));
  EXPECT_EQ(said(), "task-1 begins more often than attempts of it were lost");
}

TEST_F(ClusterStartsTest, NothingBeginsAfterItsEnd) {
  const task::TaskId id = submit({.prompt = "x"});
  const Tree tree = tree_of(id, claim(0));
  tell_end(0, tree, completed());
  truth.began(0, tree);
  EXPECT_EQ(said(), "task-1 begins after its end");
}

TEST_F(ClusterStartsTest, ADelayIsOverBeforeItBegins) {
  const task::TaskId id = submit({.prompt = "x", .retries = 1, .delay = 10s});
  clock.advance(10s);
  die(start(0, id), exited(1));
  EXPECT_EQ(said(), "");
}

TEST_F(ClusterStartsTest, ItDoesNotBeginBeforeItsDelayIsOver) {
  const task::TaskId id = submit({.prompt = "x", .delay = 10s});
  clock.advance(9s);
  start(0, id);
  EXPECT_EQ(said(), "task-1 begins, but its delay is not over");
}

TEST_F(ClusterStartsTest, AWorkerHasWhatATaskNeeds) {
  const task::TaskId id = submit({.prompt = "x", .retries = 1, .needs = {"gpu"}});
  die(start(0, id), exited(1));
  EXPECT_EQ(said(), "");
  truth.began(1, tree_of(id, 2, 2));
  EXPECT_EQ(said(), "task-1 begins on worker-1, which has not what it needs");
}

TEST_F(ClusterStartsTest, ATaskThatIsToRunHereDoes) {
  const task::TaskId id = submit({.prompt = "x", .retries = 1, .here = true});
  die(start(0, id), exited(1));
  EXPECT_EQ(said(), "");
  truth.began(1, tree_of(id, 2, 2));
  EXPECT_EQ(said(), "task-1 begins on worker-1, where nobody asked for it");
}

TEST_F(ClusterStartsTest, WhatItComesAfterHasSucceeded) {
  const task::TaskId first = submit({.prompt = "x"});
  const Tree tree = start(0, first);
  die(tree, exited(0));
  tell_end(0, tree, completed());
  const task::TaskId second = submit({.prompt = "y", .after = {first}});
  start(0, second);
  EXPECT_EQ(said(), "");
}

TEST_F(ClusterStartsTest, NothingBeginsBeforeWhatItComesAfter) {
  const task::TaskId first = submit({.prompt = "x"});
  const task::TaskId second = submit({.prompt = "y", .after = {first}});
  truth.began(1, tree_of(second, 9));
  EXPECT_EQ(said(), "task-2 begins, but task-1, which it comes after, has not succeeded");
}

TEST_F(ClusterStartsTest, AWorkerRunsNoMoreThanItHasSlots) {
  start(0, submit({.prompt = "x"}));
  start(1, submit({.prompt = "y"}));
  EXPECT_EQ(said(), "");
  start(0, submit({.prompt = "z"}));
  EXPECT_EQ(said(), "2 tasks run on one worker, 1 are allowed");
}

}  // namespace
}  // namespace duet::simulate
