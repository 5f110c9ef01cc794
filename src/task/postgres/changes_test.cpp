#include "task/postgres/changes.h"

#include "task/postgres/member_fixture_test.h"

namespace duet::task::postgres {
namespace {

class ChangesTest : public MemberTest {
 protected:
  ChangesTest() {
    join();
    line.calls.clear();
    changes.emplace(loop, *membership);
  }
  void cancel() {
    changes->call("cancel_v1", {"7"}, [this](const Answer& answer, bool again) {
      answers.push_back((answer ? std::string(answer->text()) : answer.error().message) + (again ? " again" : ""));
    });
  }

  std::vector<std::string> answers;
  std::optional<Changes> changes;
};

TEST_F(ChangesTest, AnAnswerIsPassedOn) {
  cancel();
  const FakeLine::Call call = line.take("cancel_v1");
  EXPECT_EQ(call.way, Line::Way::work);
  EXPECT_EQ(call.arguments.at(2), "7");
  call.done(Result({"cancel_v1"}, {{"done"}}));
  cancel();
  line.fail("cancel_v1", Fault::Kind::refused, "53100");
  cancel();
  line.fail("cancel_v1", Fault::Kind::never);
  EXPECT_EQ(answers, (std::vector<std::string>{"done", "the test says no", "the test says no"}));
  advance(1min);
  EXPECT_EQ(answers.size(), 3U);
}

TEST_F(ChangesTest, AnAnswerThatWasLostIsAskedForAgain) {
  cancel();
  line.fail("cancel_v1", Fault::Kind::unknown);
  line.fail("cancel_v1", Fault::Kind::unknown);
  EXPECT_TRUE(answers.empty());
  line.answer("cancel_v1", "done");
  EXPECT_EQ(answers, std::vector<std::string>{"done again"});
}

TEST_F(ChangesTest, WhoIsFencedAsksAgainWhenItHasJoinedAnew) {
  cancel();
  line.fail("cancel_v1", Fault::Kind::refused, "DU001");
  EXPECT_FALSE(line.has("cancel_v1"));
  line.answer("attach_v1", R"({"worker":5,"running":[]})");
  changes->joined();
  const FakeLine::Call call = line.take("cancel_v1");
  EXPECT_EQ(call.arguments.at(0), "5");
  call.done(Result({"cancel_v1"}, {{"done"}}));
  EXPECT_EQ(answers, std::vector<std::string>{"done"}) << "the first one did nothing";
}

TEST_F(ChangesTest, WhenItsTimeIsUpItIsNotSentAgain) {
  cancel();
  advance(10s);
  EXPECT_TRUE(answers.empty());
  line.fail("cancel_v1", Fault::Kind::unknown);
  EXPECT_EQ(answers, std::vector<std::string>{"the test says no again"});
  EXPECT_FALSE(line.has("cancel_v1"));
}

TEST_F(ChangesTest, AfterTenSecondsItIsGivenUp) {
  cancel();
  advance(6s);
  line.fail("cancel_v1", Fault::Kind::unknown);
  advance(3s);
  EXPECT_TRUE(answers.empty());
  advance(2s);
  EXPECT_EQ(answers, std::vector<std::string>{"the test says no again"});
  line.answer("cancel_v1", "done");
  EXPECT_EQ(answers.size(), 1U);
}

}  // namespace
}  // namespace duet::task::postgres
