#include "task/postgres/under_way.h"

#include <functional>

#include "task/postgres/attempts_fixture_test.h"
#include "task/postgres/submits.h"

// A fault while something is asked for, or while an answer is taken, ends nothing for good.

namespace duet::task::postgres {
namespace {

TEST(UnderWayTest, IsOverWhenItsCallIsMadeAndBeforeThat) {
  UnderWay asking;
  std::function<void()> answer = asking.until([&asking] { EXPECT_FALSE(asking); });
  EXPECT_TRUE(asking);
  answer();
  EXPECT_FALSE(asking);
}

TEST(UnderWayTest, IsOverWhenItsCallIsLetGoOf) {
  UnderWay asking;
  std::function<void()> answer = asking.until([] {});
  const std::function<void()> copy = answer;
  answer = nullptr;
  EXPECT_TRUE(asking);
  const std::function<void()> next = asking.until([] {});
  copy();
  EXPECT_FALSE(asking);
}

class FaultTest : public AttemptsTest, private transport::Loop::Overseer {
 protected:
  FaultTest() { loop.set_overseer(this); }

  /// Time passes, and there is no memory for what it brings.
  void fail_for(base::Duration time) {
    const int before = defects;
    line.has_no_memory = true;
    advance(time);
    line.has_no_memory = false;
    EXPECT_GT(defects, before);
  }
  template <typename Answer>
  void fail_at(Answer answer) {
    line.has_no_memory = true;
    EXPECT_THROW(answer(), std::bad_alloc);
    line.has_no_memory = false;
  }
  void run_both() {
    have({claim(7, 31), claim(8, 32)});
    started(seven);
    started(eight);
    advance(10ms);
  }

 private:
  void on_defect(const base::Activity&) override { ++defects; }
  void on_turn(base::Duration, const base::Activity&) override {}

  int defects = 0;
};

TEST_F(FaultTest, ABeatThatCouldNotBeSentOrIsNeverAnsweredIsFollowedByTheNext) {
  fail_for(15s);
  EXPECT_FALSE(line.has("beat_v1"));
  advance(15s);
  line.lose("beat_v1");
  advance(15s);
  EXPECT_TRUE(line.has("beat_v1"));
}

TEST_F(FaultTest, WhoWaitsForABeatIsCalledWhateverBecomesOfItsAnswer) {
  int calls = 0;
  membership->after_beat([&] { ++calls; });
  fail_at([&] { line.answer("beat_v1", beat_text().replace(1, 0, R"("newestEventMs":900000,)")); });
  EXPECT_EQ(calls, 1);
}

TEST_F(FaultTest, AJoinThatIsNeverAnsweredIsAskedForAgain) {
  membership->beat_soon();
  line.fail("beat_v1", Fault::Kind::refused, Membership::fenced_state);
  line.lose("attach_v1");
  advance(3s);
  EXPECT_TRUE(line.has("attach_v1"));
}

TEST_F(FaultTest, WhatRunsIsToldAgainUntilItIsKnownWhatBecameOfThat) {
  fail_over();
  line.lose("recover_v1");
  EXPECT_TRUE(membership->is_telling_again());
  advance(15s);
  line.answer("recover_v1", R"({"fenced":[],"output":[],"recovering":false})");
  EXPECT_FALSE(membership->is_telling_again());
}

TEST_F(FaultTest, TheBooksOfAllAreKeptOn) {
  membership->number_soon();
  membership->sweep_in({});
  advance(1s);
  line.lose("number_v1");
  line.lose("sweep_v1");
  membership->number_soon();
  advance(30s);
  EXPECT_TRUE(line.has("number_v1"));
  EXPECT_TRUE(line.has("sweep_v1"));
}

TEST_F(FaultTest, LooksGoOnWhenOneCouldNotBeMade) {
  fail_for(7s);
  advance(7s);
  EXPECT_TRUE(is_reporting());
}

TEST_F(FaultTest, AReportThatCouldNotBeSentIsSentLater) {
  have({claim(7, 31)});
  started(seven);
  fail_at([&] { exited(seven); });
  advance(1s);
  ASSERT_TRUE(is_reporting());
  EXPECT_TRUE(report().has_end(7));
}

TEST_F(FaultTest, AReportThatIsNeverAnsweredIsToldAgain) {
  run_both();
  line.lose("report_v1");
  exited(seven);
  const ReportTold told = report();
  EXPECT_EQ(told.ends, std::vector<TaskId>{7});
  EXPECT_EQ(told.starts, std::vector<TaskId>{8});
}

TEST_F(FaultTest, WhatCouldNotBeTakenOfAnAnswerIsToldAgain) {
  run_both();
  exited(seven);
  exited(eight);
  answer({});
  fail_at([&] { answer({end(7, 31), end(8, 32)}); });
  advance(1s);
  ASSERT_TRUE(is_reporting());
  EXPECT_EQ(report().ends, std::vector<TaskId>{8});
}

TEST_F(FaultTest, AWaitThatIsNeverAnsweredIsToldAgain) {
  attempts->look(true);
  line.lose("wait_v1");
  attempts->look(true);
  EXPECT_TRUE(line.has("wait_v1"));
}

TEST_F(FaultTest, ASubmitThatCouldNotBeSentOrIsNeverAnsweredIsSentAgainUnderItsId) {
  Submits submits(loop, line, *membership);
  std::vector<TaskId> taken;
  const auto submit = [&] {
    submits.add({.agent = "shell", .group = "default", .body = "{}"},
                [&](const tl::expected<Submits::Taken, rpc::Error>& task) { taken.push_back(task.value().id); });
  };
  submit();
  fail_for(0s);
  submit();
  turn();
  const Argument ids = line.take("submit_v1").arguments.at(2);
  submits.line_is_up();
  const FakeLine::Call call = line.take("submit_v1");
  EXPECT_EQ(call.arguments.at(2), ids);
  call.done(Result({"place", "id"}, {{"1", "11"}}));
  EXPECT_EQ(taken, std::vector<TaskId>{11});
  EXPECT_TRUE(line.has("submit_v1")) << "of the other one";
}

}  // namespace
}  // namespace duet::task::postgres
