#include "simulate/cluster_fixture_test.h"

namespace duet::simulate {
namespace {

using namespace std::chrono_literals;

class ModelDatabaseTest : public ClusterFixture {
 protected:
  const ModelTask& row(task::TaskId id) const { return database.data().tasks.at(static_cast<std::int64_t>(id)); }
  const ModelWorker& worker(std::size_t host) const {
    return database.data().workers.at(static_cast<std::int64_t>(host + 1));
  }
  void beat(std::size_t host) { call("beat_v1", as(host, {"t", "1", "{}", "{a}", "{a}", "30000", "60000"})); }
  void silence(std::size_t host) {
    call("silence_v1", as(1 - host, {std::to_string(host + 1), std::to_string(worker(host).beat)}));
  }
};

TEST_F(ModelDatabaseTest, WhoIsSilentLosesOnlyWhatIsRepeated) {
  const task::TaskId kept = submit({.prompt = "x"});
  claim(0);
  const task::TaskId repeated = submit({.prompt = "y", .on_lost = task::OnLost::retry});
  claim(0);
  silence(0);
  EXPECT_EQ(row(kept).state, ModelTask::running);
  EXPECT_EQ(row(repeated).state, ModelTask::ready);
  EXPECT_FALSE(row(repeated).fence);
  call("lose_v1", as(1, {"1", "1"}));
  EXPECT_EQ(row(kept).reason, task::Reason::lost);
}

TEST_F(ModelDatabaseTest, TheThirdAttemptThatIsLostIsTheLast) {
  const task::TaskId id = submit({.prompt = "x", .on_lost = task::OnLost::retry});
  for (int lost = 1; lost <= ModelTask::most_lost; ++lost) {
    EXPECT_EQ(row(id).state, ModelTask::ready);
    claim(0);
    silence(0);
    EXPECT_EQ(row(id).lost, lost);
    beat(0);
  }
  EXPECT_EQ(row(id).reason, task::Reason::lost);
}

TEST_F(ModelDatabaseTest, WhatIsBeingCancelledIsCancelledWithItsWorker) {
  const task::TaskId id = submit({.prompt = "x", .on_lost = task::OnLost::retry});
  claim(0);
  call("cancel_v1", as(1, {std::to_string(id)}));
  EXPECT_EQ(row(id).state, ModelTask::running);
  silence(0);
  EXPECT_EQ(row(id).state, ModelTask::cancelled);
}

TEST_F(ModelDatabaseTest, OfTwoEndsOfATaskOnlyTheOneThatCountsIsAnswered) {
  const task::TaskId id = submit({.prompt = "x"});
  End right = completed();
  right.run = {id, 1};
  right.fence = claim(0);
  End old = right;
  old.fence = right.fence + 7;
  Report report;
  report.ends = {old, right};
  const Result both = tell(0, report);
  ASSERT_EQ(both.rows(), 1U);
  EXPECT_EQ(both.text(0, 0), "end");
  report.ends = {old};
  const Result alone = tell(0, report);
  ASSERT_EQ(alone.rows(), 1U);
  EXPECT_EQ(alone.text(0, 0), "fenced");
}

TEST_F(ModelDatabaseTest, ACrashTakesBeatsThatNoSyncedCallCameAfter) {
  beat(0);
  database.crash();
  EXPECT_EQ(worker(0).beat, 1);
  EXPECT_FALSE(worker(0).waiting);
  beat(0);
  submit({.prompt = "x"});
  database.crash();
  EXPECT_EQ(worker(0).beat, 2);
  beat(0);
  clock.advance(600ms);
  beat(1);
  database.crash();
  EXPECT_EQ(worker(0).beat, 3) << "it was written meanwhile";
  EXPECT_EQ(worker(1).beat, 1);
}

}  // namespace
}  // namespace duet::simulate
