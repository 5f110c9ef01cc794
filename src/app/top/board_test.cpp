#include "app/top/board.h"

#include <chrono>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "app/view/table.h"
#include "duet/rpc/value.h"

namespace duet::app::top {
namespace {

using boost::json::object;

object parse(const std::string& text) { return rpc::parse_value(text).as_object(); }

object record(int number, const std::string& state, const std::string& more = "") {
  return parse(R"({"id":"task-)" + std::to_string(number) + R"(","state":")" + state +
               R"(","agent":"shell","prompt":"p)" + std::to_string(number) + "\"" + more + "}");
}

object event(int number, const std::string& state, const std::string& more = "") {
  return parse(R"({"taskId":"task-)" + std::to_string(number) + R"(","state":")" + state + R"(","agent":"shell")" +
               more + "}");
}

std::vector<task::TaskId> numbers(const std::vector<const TaskRow*>& rows) {
  std::vector<task::TaskId> out;
  for (const TaskRow* const row : rows) out.push_back(row->number);
  return out;
}

using Ids = std::vector<task::TaskId>;

TEST(TopBoard, AnEventMovesATaskAndAsksForWhatItDoesNotTell) {
  Board board;
  EXPECT_TRUE(board.take_event("taskQueued", event(3, "queued")));
  EXPECT_EQ(numbers(board.queued()), Ids{3});
  EXPECT_EQ(board.stale(), std::set<task::TaskId>{3});
  board.take_record(record(3, "queued"));
  EXPECT_TRUE(board.stale().empty());
  EXPECT_EQ(board.queued().front()->prompt, "p3");
  board.take_event("taskStarted", event(3, "running", R"(,"startedAt":"2026-11-15T09:30:00.000Z")"));
  EXPECT_EQ(numbers(board.running()), Ids{3});
  EXPECT_TRUE(board.queued().empty());
  EXPECT_TRUE(board.stale().empty()) << "the record is known";
  board.take_event("taskFailed", event(3, "failed",
                                       R"(,"completedAt":"2026-11-15T09:31:00.000Z","exitCode":7,
                                           "error":{"reason":"exit","message":"exited with code 7"})"));
  EXPECT_EQ(numbers(board.ended()), Ids{3});
  EXPECT_EQ(board.ended().front()->outcome, "exit 7");
  EXPECT_EQ(board.ended().front()->error, "exited with code 7");
}

TEST(TopBoard, WhatWasChangedIsAskedForAgain) {
  Board board;
  board.take_record(record(1, "queued"));
  board.take_event("taskEdited", event(1, "queued"));
  EXPECT_EQ(board.stale(), std::set<task::TaskId>{1});
  board.take_record(record(1, "queued", R"(,"priority":4,"held":true,"group":"night")"));
  EXPECT_EQ(board.find(1)->priority, 4);
  EXPECT_TRUE(board.find(1)->held);
  EXPECT_EQ(board.find(1)->group, "night");
  board.take_event("tasksRemoved", parse(R"({"taskIds":["task-1"]})"));
  EXPECT_EQ(board.find(1), nullptr);
}

TEST(TopBoard, TheQueueIsInTheOrderInWhichItStarts) {
  Board board;
  board.take_record(record(1, "queued", R"(,"held":true,"priority":9)"));
  board.take_record(record(2, "queued"));
  board.take_record(record(3, "queued", R"(,"priority":5)"));
  board.take_record(record(4, "queued", R"(,"metadata":{"after":["task-2"]},"priority":7)"));
  board.take_record(record(5, "queued", R"(,"priority":-9223372036854775808)"));
  board.take_record(record(6, "queued", R"(,"notBefore":"2026-11-15T10:00:00.000Z","priority":8)"));
  EXPECT_EQ(numbers(board.queued()), (Ids{3, 2, 5, 1, 6, 4}));
  EXPECT_EQ(board.awaited(*board.find(4)), task::TaskId{2});
  board.let_pass(*parse_time("2026-11-15T10:00:00.000Z"));
  EXPECT_EQ(numbers(board.queued()), (Ids{6, 3, 2, 5, 1, 4}));
}

TEST(TopBoard, ANextAttemptIsKnownFromTheRecord) {
  const auto at = parse_time("2026-11-15T10:00:00.000Z");
  Board board;
  const object waiting = record(1, "queued", R"(,"notBefore":"2026-11-15T08:00:00.000Z",
                                               "retryAt":"2026-11-15T10:00:00.000Z","attempts":2)");
  board.take_record(waiting);
  EXPECT_EQ(board.find(1)->not_before, at);
  board.take_event("taskReleased", event(1, "queued"));
  board.take_record(waiting);
  EXPECT_EQ(board.find(1)->not_before, at) << "the event does not tell it";
}

TEST(TopBoard, GroupsTakeTurns) {
  Board board;
  for (const int number : {1, 2, 3}) board.take_record(record(number, "queued", R"(,"priority":5,"group":"a")"));
  board.take_record(record(4, "queued", R"(,"priority":9,"group":"a")"));
  board.take_record(record(5, "queued", R"(,"group":"b")"));
  board.take_record(record(6, "queued", R"(,"group":"b","priority":1,"held":true)"));
  EXPECT_EQ(numbers(board.queued()), (Ids{4, 5, 1, 2, 3, 6}));
}

TEST(TopBoard, HoldsConcernTheirGroupsAndAgents) {
  Board board;
  board.take_record(record(1, "queued", R"(,"group":"night")"));
  board.take_record(record(2, "queued"));
  board.take_queue(parse(R"({"paused":false,"groups":[{"name":"default","paused":false},{"name":"night","paused":true}],
                             "heldAgents":[]})"));
  EXPECT_EQ(board.holds(), (std::vector<Hold>{{.kind = Hold::Kind::group, .name = "night"}}));
  EXPECT_EQ(numbers(board.queued()), (Ids{2, 1}));
  EXPECT_FALSE(board.is_paused());
  board.take_queue(parse(R"({"paused":true,"heldAgents":[{"agent":"shell","until":"2026-11-15T10:00:00.000Z"}]})"));
  EXPECT_TRUE(board.is_paused());
  ASSERT_EQ(board.holds().size(), 2U);
  EXPECT_EQ(board.holds()[1].until, parse_time("2026-11-15T10:00:00.000Z"));
  board.take_queue(parse(R"({"paused":false,"stopping":true,"heldAgents":[]})"));
  EXPECT_EQ(board.holds(), (std::vector<Hold>{{.kind = Hold::Kind::daemon}}));
  EXPECT_FALSE(board.is_paused());
}

TEST(TopBoard, TheRateIsThatOfTheLastMinute) {
  Board board;
  board.take_record(record(1, "completed", R"(,"completedAt":"2026-11-15T09:30:10.000Z")"));
  board.take_record(record(2, "failed", R"(,"completedAt":"2026-11-15T09:30:50.000Z")"));
  board.take_record(record(2, "failed", R"(,"completedAt":"2026-11-15T09:30:50.000Z")"));
  EXPECT_EQ(board.rate(*parse_time("2026-11-15T09:31:00.000Z")).ended, 2) << "a record that comes twice counts once";
  board.forget(2);
  board.take_record(record(2, "failed", R"(,"completedAt":"2026-11-15T09:30:50.000Z")"));
  const Board::Rate later = board.rate(*parse_time("2026-11-15T09:31:30.000Z"));
  EXPECT_EQ(later.ended, 1);
  EXPECT_EQ(later.failed, 1);
  EXPECT_EQ(board.rate(*parse_time("2026-11-15T09:40:00.000Z")).ended, 0);
}

TEST(TopBoard, TheRateSurvivesAClockThatIsSetBack) {
  Board board;
  for (int i = 10; i < 60; ++i) {
    board.take_record(record(i, "completed", R"(,"completedAt":"2026-11-15T10:30:)" + std::to_string(i) + ".000Z\""));
  }
  const auto now = *parse_time("2026-11-15T09:31:00.000Z");
  EXPECT_EQ(board.rate(now).ended, 0);
  board.let_pass(now);
  board.take_record(record(1, "completed", R"(,"completedAt":"2026-11-15T09:31:01.000Z")"));
  EXPECT_EQ(board.rate(now + std::chrono::seconds(2)).ended, 1);
  EXPECT_EQ(board.rate(*parse_time("2026-11-15T10:30:59.000Z")).ended, 0) << "they are forgotten";
}

TEST(TopBoard, KeepsTheTasksThatEndedLast) {
  Board board;
  for (int i = 1; i <= 1000; ++i) {
    const std::string time = R"(,"completedAt":"2026-11-15T09:)" + std::to_string(10 + i / 60) + ":" +
                             (i % 60 < 10 ? "0" : "") + std::to_string(i % 60) + ".000Z\"";
    board.take_record(record(i, "completed", time));
  }
  EXPECT_LT(board.ended().size(), 2 * Board::most_ended);
  EXPECT_GE(board.ended().size(), Board::most_ended);
  EXPECT_EQ(board.ended().front()->number, 1000U);
}

TEST(TopBoard, WhatBelongsBehindTheKnownPartOfTheQueueIsNotShownInItsPlace) {
  Board board;
  board.take_beginning_of_queue({record(1, "queued", R"(,"priority":5)"), record(2, "queued"), record(3, "queued")},
                                false);
  board.take_event("taskQueued", event(90, "queued"));
  board.take_record(record(90, "queued"));
  EXPECT_EQ(board.find(90), nullptr) << "those from 4 to 89 come before it";
  board.take_record(record(91, "queued", R"(,"priority":1)"));
  EXPECT_EQ(numbers(board.queued()), (Ids{1, 91, 2, 3}));
  board.take_event("taskStarted", event(90, "running"));
  EXPECT_EQ(numbers(board.running()), Ids{90});
  board.take_beginning_of_queue({record(1, "queued", R"(,"priority":5)"), record(91, "queued", R"(,"priority":1)")},
                                false);
  EXPECT_EQ(numbers(board.queued()), (Ids{1, 91})) << "a shorter one";
  board.take_beginning_of_queue({record(1, "queued", R"(,"priority":5)"), record(2, "queued", R"(,"held":true)")},
                                true);
  board.take_record(record(92, "queued"));
  EXPECT_EQ(numbers(board.queued()), (Ids{1, 91, 92, 2}));
  EXPECT_EQ(board.count_kept_back(), 1U);
}

TEST(TopBoard, AQueueOfAnyLengthIsBounded) {
  Board board;
  for (int i = 1; i <= static_cast<int>(Board::most_queued) + 5; ++i)
    board.take_event("taskQueued", event(i, "queued"));
  EXPECT_EQ(board.queued().size(), Board::most_queued);
  board.take_event("taskStarted", event(static_cast<int>(Board::most_queued) + 3, "running"));
  EXPECT_EQ(board.running().size(), 1U) << "what runs is always there";
}

TEST(TopBoard, WhatHasAnotherShapeIsAbsent) {
  Board board;
  board.take_record(parse(R"({"id":7,"state":"queued"})"));
  board.take_record(parse(R"({"id":"task-1","state":"dreaming"})"));
  board.take_record(parse(R"({"id":"task-2","state":"queued","prompt":null,"priority":"x","metadata":[],"held":1})"));
  EXPECT_EQ(numbers(board.queued()), Ids{2});
  EXPECT_FALSE(board.take_event("agentHeld", parse(R"({"agent":"x"})")));
  EXPECT_FALSE(board.take_event("taskFailed", parse("{}")));
  board.take_status(parse(R"({"health":3,"problems":[1,{"subsystem":"store"}],"subsystems":null})"));
  EXPECT_EQ(board.status().problems, std::vector<std::string>{"store: "});
  board.take_queue(parse(R"({"paused":"yes","groups":7,"heldAgents":[null]})"));
  EXPECT_TRUE(board.holds().empty());
  board.take_counts(parse(R"({"queued":"many"})"));
  EXPECT_EQ(board.counts().queued, 0);
}

}  // namespace
}  // namespace duet::app::top
