#include "task/postgres/submits.h"

#include "task/postgres/member_fixture_test.h"

namespace duet::task::postgres {
namespace {

class SubmitsTest : public MemberTest {
 protected:
  SubmitsTest() {
    join();
    line.calls.clear();
    submits.emplace(loop, line, *membership);
  }
  void add(const std::string& body, std::optional<base::TimePoint> asked = {}) {
    submits->add(
        {.agent = "claude", .group = "default", .prompt = "\"p\"", .metadata = "{}", .body = body},
        [this](const tl::expected<Submits::Taken, rpc::Error>& taken) {
          answers.push_back(taken ? std::to_string(taken->id) : taken.error().data());
        },
        asked);
  }
  static Result rows(const std::vector<Result::Row>& rows) {
    return {{"place", "id", "state", "fresh", "body", "refusal", "lane"}, rows};
  }

  std::vector<std::string> answers;
  std::optional<Submits> submits;
};

TEST_F(SubmitsTest, AllThatCameInOneTurnGoInOneCall) {
  add("a");
  add("b");
  turn();
  const FakeLine::Call call = line.take("submit_v1");
  EXPECT_EQ(call.arguments.at(16), R"({"a","b"})");
  add("c");  // waits for the answer
  turn();
  EXPECT_FALSE(line.has("submit_v1"));
  call.done(rows({{"2", "12", "0", "t", {}, {}, "1"}, {"1", "11", "0", "t", {}, {}, "1"}}));
  EXPECT_EQ(answers, (std::vector<std::string>{"11", "12"}));
  EXPECT_TRUE(line.has("submit_v1"));
}

TEST_F(SubmitsTest, AnAnswerThatWasLostIsAskedForUnderTheSameId) {
  add("a");
  turn();
  const FakeLine::Call first = line.take("submit_v1");
  first.done(tl::unexpected(Fault{Fault::Kind::unknown, "", "cut"}));
  const FakeLine::Call again = line.take("submit_v1");
  EXPECT_EQ(again.arguments.at(2), first.arguments.at(2));
  again.done(rows({{"1", "11", "0", "t", {}, {}, "1"}}));
  EXPECT_EQ(answers, (std::vector<std::string>{"11"}));
}

TEST_F(SubmitsTest, WhatWasAskedForBeforeIsAnsweredSooner) {
  line.up = false;
  add("b");
  add("a", loop.now() - 1s);
  turn();
  advance(9s);
  EXPECT_EQ(answers.size(), 1U);
}

TEST_F(SubmitsTest, OneThatIsDueAlreadyIsLookedForAtOnce) {
  Submits::Entry entry{.agent = "claude", .group = "default", .prompt = "\"p\"", .metadata = "{}", .body = "a"};
  entry.not_before = 1000;
  clock.advance(1s);
  const int before = looks;
  submits->add(
      std::move(entry), [](const tl::expected<Submits::Taken, rpc::Error>&) {}, std::nullopt);
  turn();
  line.take("submit_v1").done(rows({{"1", "11", "0", "t", {}, {}, "1"}}));
  EXPECT_GT(looks, before);
}

TEST_F(SubmitsTest, WithoutCertaintyItSaysWhetherItMayTurnUp) {
  line.up = false;
  add("a");
  turn();
  advance(10s);
  EXPECT_EQ(answers, (std::vector<std::string>{R"({"subsystem":"store","outcome":"none"})"}));
  line.up = true;
  add("b");
  turn();
  line.up = false;
  line.fail("submit_v1", Fault::Kind::unknown);
  advance(10s);
  EXPECT_EQ(answers.back(), R"({"subsystem":"store","outcome":"unknown"})");
}

TEST_F(SubmitsTest, WhoWaitedBehindAnotherCallIsAnsweredInTimeAllTheSame) {
  add("a");
  turn();
  const FakeLine::Call first = line.take("submit_v1");
  advance(2s);
  add("b");
  turn();
  advance(7s);
  first.done(rows({{"1", "11", "0", "t", {}, {}, "1"}}));
  const FakeLine::Call second = line.take("submit_v1");
  advance(3100ms);
  const std::string unknown = R"({"subsystem":"store","outcome":"unknown"})";
  EXPECT_EQ(answers, (std::vector<std::string>{"11", unknown})) << "ten seconds after it came, not after it was sent";
  second.done(tl::unexpected(Fault{Fault::Kind::unknown, "", "cut"}));
  turn();
  EXPECT_FALSE(line.has("submit_v1")) << "nobody waits for it";
  add("c");
  turn();
  EXPECT_EQ(line.take("submit_v1").arguments.at(16), R"({"c"})");
  EXPECT_EQ(answers.size(), 2U);
}

TEST_F(SubmitsTest, TheLineMaySayThatItWasNeverSent) {
  add("a");
  turn();
  const FakeLine::Call call = line.take("submit_v1");
  advance(10s);
  EXPECT_TRUE(answers.empty());
  call.done(tl::unexpected(Fault{Fault::Kind::never, "", "no"}));
  EXPECT_EQ(answers, std::vector<std::string>{R"({"subsystem":"store","outcome":"none"})"});
}

TEST_F(SubmitsTest, ARefusalIsNotTriedAgainAtOnce) {
  add("a");
  turn();
  line.fail("submit_v1", Fault::Kind::refused, "53100");
  turn();
  EXPECT_FALSE(line.has("submit_v1"));
  advance(1s);
  EXPECT_TRUE(line.has("submit_v1"));
}

TEST_F(SubmitsTest, RefusalsOfTheQueueAreTheirs) {
  add("a");
  add("b");
  turn();
  line.take("submit_v1").done(rows({{"1", {}, {}, "f", {}, "full:5", {}}, {"2", {}, {}, "f", {}, "unknown:77", {}}}));
  EXPECT_EQ(answers.at(0), R"({"capacity":5})");
  EXPECT_NE(answers.at(1).find("task-77"), std::string::npos);
}

TEST_F(SubmitsTest, ARefusalIsNotForGoodIfItWasSentBefore) {
  add("a");
  turn();
  line.fail("submit_v1", Fault::Kind::unknown);
  line.take("submit_v1").done(rows({{"1", {}, {}, "f", {}, "full:5", {}}}));
  EXPECT_EQ(answers, (std::vector<std::string>{R"({"subsystem":"store","outcome":"unknown"})"}))
      << "the first one may still be carried out";
}

TEST_F(SubmitsTest, OneThatTheServerCannotTakeKeepsNoOtherBack) {
  add("a");
  add("b");
  turn();
  const Fault fault{.kind = Fault::Kind::refused, .sqlstate = "22021", .message = "no such text"};
  line.take("submit_v1").done(tl::unexpected(fault));
  turn();
  line.take("submit_v1").done(tl::unexpected(fault));
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_NE(answers.at(0).find(R"("outcome":"none")"), std::string::npos);
  turn();
  line.take("submit_v1").done(rows({{"1", "8", "0", "t", {}, {}, "1"}}));
  EXPECT_EQ(answers.size(), 2U);
}

TEST_F(SubmitsTest, WhoAsksBehindThemWaitsForThem) {
  bool called = false;
  submits->after([&called] { called = true; });
  EXPECT_TRUE(called);
  called = false;
  add("a");
  submits->after([&called] { called = true; });
  turn();
  EXPECT_FALSE(called);
  line.take("submit_v1").done(rows({{"1", "11", "0", "t", {}, {}, "1"}}));
  EXPECT_TRUE(called);
}

}  // namespace
}  // namespace duet::task::postgres
