#include "task/postgres/remote_output.h"

#include <fstream>

#include "task/postgres/postgres_queue_fixture_test.h"

namespace duet::task::postgres {
namespace {

/// Somebody wants output as it comes.
class LiveOutputTest : public PostgresQueueTest {
 protected:
  LiveOutputTest() {
    join_queue();
    journal.add_reader([this](const Event& event) { told.push_back(event.kind + ' ' + to_text(event.task)); });
    journal.add_reader([this](const Event& event) { queue->take(event); });
  }

  void run_seven() {
    have_seven();
    tell.started({7, 1}, {.pid = 100, .at = clock.utc()});
    advance(10ms);
    line.take("report_v1").done(Result({"what"}, {}));
  }
  void write(const std::string& bytes, std::uint32_t attempt = 1) {
    std::ofstream(folder.file("tasks/" + output_name({7, attempt})), std::ios::binary | std::ios::app) << bytes;
    tell.output({7, attempt}, bytes.size());
    turn();
  }
  void want(TaskId id) {
    wanted.insert(id);
    queue->output_audience_changed();
  }
  void read_events() {
    queue->want_events(true);
    line.answer("number_v1", "0");
    line.answer("read_events_state_v1", R"({"epoch":"e","oldest":1,"next":5,"unnumbered":false})");
    line.take("read_events_v1").done(events({}));
  }
  static Result events(const std::vector<Result::Row>& rows) {
    return {{"seq", "kind", "task", "params", "arrived_ms", "record"}, rows};
  }
  static Result::Row event(std::uint64_t seq, const std::string& kind, TaskId task, int attempts = 1) {
    return {std::to_string(seq),
            kind,
            std::to_string(task),
            R"({"attempts":)" + std::to_string(attempts) + "}",
            "1000",
            R"({"agent":"a","group":"g","metadata":"{}","state":1,"attempts":)" + std::to_string(attempts) + "}"};
  }
  /// Attempts that run, and how far their output is there.
  void have_running(const std::vector<Result::Row>& rows) {
    line.take("read_running_v1").done(Result({"task", "attempt", "place"}, rows));
  }
  static std::string state(const std::string& attempts, int attempt = 1, int state = 1) {
    return R"({"state":)" + std::to_string(state) + R"(,"attempt":)" + std::to_string(attempt) + R"(,"attempts":)" +
           attempts + "}";
  }
  static std::string wrote(std::uint64_t total, int attempt = 1, const std::string& dropped = "[]") {
    return R"({"attempt":)" + std::to_string(attempt) + R"(,"total":)" + std::to_string(total) + R"(,"dropped":)" +
           dropped + "}";
  }
  static Result::Row row(TaskId task, const std::string& told, int attempt, std::uint64_t start,
                         const std::string& bytes) {
    return {std::to_string(task), told, std::to_string(attempt), std::to_string(start), bytes_of(bytes), std::string()};
  }
  static Result::Row row(TaskId task, const std::string& told) {
    return {std::to_string(task), told, std::nullopt, std::nullopt, std::nullopt, std::nullopt};
  }
  /// What a question for output asked for: tasks and places.
  std::string answer(const std::vector<Result::Row>& rows) {
    const FakeLine::Call call = line.take("read_outputs_v1");
    call.done(Result({"task", "told", "attempt", "start", "bytes", "marks"}, rows));
    std::string asked = *call.arguments.at(0) + *call.arguments.at(1);
    std::erase(asked, '"');
    return asked;
  }
  /// Task 9 runs elsewhere, and has written nothing.
  void follow_nine() {
    want(9);
    have_running({{"9", "1", "0"}});
    advance(300ms);
  }
  void notice(const std::vector<Result::Row>& rows) {
    line.events.notified("duet_events", "");
    line.take("read_events_v1").done(events(rows));
    turn();
  }
};

TEST_F(LiveOutputTest, OfATaskThatBeganWhileNobodyReadEventsIsToldToTheEnd) {
  run_seven();
  write("a");
  read_events();
  want(7);
  write("b");
  EXPECT_TRUE(told.empty()) << "others may still be told that it runs";
  line.answer("number_v1", "0");
  line.take("read_events_v1").done(events({}));
  turn();
  EXPECT_EQ(told, std::vector<std::string>{"task-7 1 b"});
  write("c");
  tell.gone({7, 1});
  for (int i = 0; i < 5; ++i) turn();
  EXPECT_EQ(told, (std::vector<std::string>{"task-7 1 b", "task-7 2 c", "task-7 3 "}));
}

TEST_F(LiveOutputTest, OfATaskThatBeganWhileTheJournalPassedEventsOverIsTold) {
  read_events();
  want(7);
  run_seven();
  line.answer("number_v1", "0");
  line.take("read_events_v1").done(events({}));
  write("a");
  EXPECT_EQ(told, std::vector<std::string>{"task-7 0 a"});
}

TEST_F(LiveOutputTest, OfATaskHereIsToldOnceThoughTheEventOfItsStartComesLate) {
  read_events();
  want(7);
  have_running({});
  run_seven();
  line.fail("number_v1", Fault::Kind::unknown);
  line.take("read_events_v1").done(events({}));
  write("a");
  tell.ended({7, 1}, {.kind = Outcome::Kind::exited});
  tell.gone({7, 1});
  for (int i = 0; i < 5; ++i) turn();
  line.take("report_v1").done(Result({"what", "id", "fence", "state"}, {{"end", "7", "31", "2"}}));
  ASSERT_EQ(told, (std::vector<std::string>{"task-7 0 a", "task-7 1 "}));
  notice({event(5, "taskStarted", 7)});
  EXPECT_FALSE(line.has("read_outputs_v1"));
}

TEST_F(LiveOutputTest, OfALaterAttemptHereIsToldBehindWhatAnEarlierOneWroteElsewhere) {
  read_events();
  have_seven(2);
  want(7);
  have_running({});
  tell.started({7, 2}, {.pid = 100, .at = clock.utc()});
  advance(10ms);
  line.take("report_v1").done(Result({"what"}, {}));
  line.answer("read_output_state_v1", state("[" + wrote(100) + "]"));
  notice({event(5, "taskStarted", 7, 2)});
  write("a", 2);
  EXPECT_EQ(told, (std::vector<std::string>{"taskStarted task-7", "task-7 100 a"}));
  std::string bytes;
  line.calls.clear();
  queue->read_output({.id = 7, .offset = 100, .limit = 9},
                     [&bytes](const tl::expected<Queue::Output, rpc::Error>& got) {
                       bytes = std::to_string(got->piece.offset) + ' ' + got->piece.bytes;
                     });
  line.answer("read_output_state_v1", state("[" + wrote(100) + "]", 2));
  EXPECT_EQ(bytes, "100 a") << "it is here before it is in the database";
}

TEST_F(LiveOutputTest, WhatIsAskedForInAnOutageIsToldBehindIt) {
  want(9);
  line.fail("read_running_v1", Fault::Kind::unknown);
  advance(1s);
  have_running({{"9", "1", "3"}});
  advance(300ms);
  line.fail("read_outputs_v1", Fault::Kind::unknown);
  advance(300ms);
  answer({row(9, state("[" + wrote(4) + "]"), 1, 0, "abcd")});
  EXPECT_EQ(told, std::vector<std::string>{"task-9 3 d"});
}

TEST_F(LiveOutputTest, WhoComesWhileTasksAreSoughtHasThemSoughtOnce) {
  for (int i = 0; i < 50; ++i) want(9);
  EXPECT_EQ(line.calls.size(), 1U);
  have_running({});
  have_running({{"9", "1", "0"}});
  EXPECT_FALSE(line.has("read_running_v1"));
  advance(300ms);
  EXPECT_TRUE(line.has("read_outputs_v1"));
}

TEST_F(LiveOutputTest, OneQuestionIsForAllThatAreFollowed) {
  for (TaskId id = 1; id <= 1500; ++id) wanted.insert(id);
  queue->output_audience_changed();
  std::vector<Result::Row> rows;
  for (TaskId id = 1; id <= 1500; ++id) rows.push_back({std::to_string(id), "1", "0"});
  have_running(rows);
  advance(300ms);
  EXPECT_EQ(line.calls.size(), 1U);
  const std::string whole = state("[" + wrote(600'000) + "]");
  const std::string first = answer({row(1, whole, 1, 0, std::string(600'000, 'x')), row(2, "")});
  EXPECT_TRUE(first.starts_with("{1,2,3,"));
  EXPECT_EQ(told, std::vector<std::string>{"task-1 0 " + std::string(65'536, 'x')});
  advance(1ms);
  EXPECT_TRUE(answer({}).starts_with("{2,3,4,")) << "there was no room for those behind the first";
  EXPECT_FALSE(line.has("read_outputs_v1"));
  advance(300ms);
  EXPECT_TRUE(answer({}).starts_with("{1002,1003,")) << "each in its turn";
}

TEST_F(LiveOutputTest, WhatCannotBeToldYetIsNotAskedForWithoutEnd) {
  for (TaskId id = 1; id <= 20; ++id) wanted.insert(id);
  queue->output_audience_changed();
  std::vector<Result::Row> running;
  std::vector<Result::Row> rows;
  for (TaskId id = 1; id <= 16; ++id) {
    running.push_back({std::to_string(id), "1", "65535"});
    rows.push_back(row(id, state("[" + wrote(65'536) + "]"), 1, 0, std::string(65'535, 'x') + "\xC3"));
  }
  rows.push_back(row(17, ""));
  running.push_back({"17", "1", "0"});
  have_running(running);
  advance(300ms);
  answer(rows);
  advance(1ms);
  EXPECT_FALSE(line.has("read_outputs_v1"));
  advance(300ms);
  EXPECT_TRUE(answer({}).starts_with("{17,1,2,"));
}

TEST_F(LiveOutputTest, AnEndWaitsForATaskForWhichThereWasNoRoom) {
  read_events();
  wanted = {8, 9};
  queue->output_audience_changed();
  have_running({{"8", "1", "0"}, {"9", "1", "0"}});
  notice({event(5, "taskCompleted", 9), event(6, "taskCompleted", 8)});
  answer({row(8, state("[" + wrote(1) + "]", 1, 2), 1, 0, "a"), row(9, "")});
  turn();
  EXPECT_EQ(told, (std::vector<std::string>{"task-8 0 a", "task-8 1 "}));
  answer({row(9, state("[" + wrote(1) + "]", 1, 2), 1, 0, "b")});
  turn();
  EXPECT_EQ(told.back(), "taskCompleted task-8");
}

TEST_F(LiveOutputTest, ATaskThatIsRestartedInPlaceIsToldAgain) {
  read_events();
  wanted = {9};
  notice({event(5, "taskStarted", 9), event(6, "taskCompleted", 9)});
  advance(1ms);
  const std::string once = wrote(1);
  EXPECT_EQ(answer({row(9, state("[" + once + "]", 1, 2))}), "{9}{NULL}");
  advance(1ms);
  answer({row(9, state("[" + once + "]", 1, 2), 1, 0, "a")});
  advance(300ms);
  EXPECT_FALSE(line.has("read_outputs_v1"));
  told.clear();
  notice({event(7, "taskStarted", 9, 2)});
  advance(1ms);
  answer({row(9, state("[" + once + "]", 2))});
  advance(1ms);
  answer({row(9, state("[" + once + "," + wrote(1, 2) + "]", 2), 2, 0, "b")});
  EXPECT_EQ(told, (std::vector<std::string>{"taskStarted task-9", "task-9 1 b"}));
}

TEST_F(LiveOutputTest, WhatWasNotSentOfAnAttemptHereCountsForNobody) {
  have_seven(2);
  tell.started({7, 2}, {.pid = 100, .at = clock.utc()});
  write(std::string(1000, 'x'));
  write("ab", 2);
  line.calls.clear();
  const std::string whole = state("[" + wrote(700) + "]", 2);
  std::string bytes;
  queue->read_output({.id = 7, .offset = 0, .limit = 9}, [&bytes](const auto& got) { bytes = got->piece.bytes; });
  line.answer("read_output_state_v1", whole);
  EXPECT_TRUE(line.has("read_output_v1"));
  queue->read_output({.id = 7, .offset = 700, .limit = 9}, [&bytes](const auto& got) { bytes = got->piece.bytes; });
  line.answer("read_output_state_v1", whole);
  EXPECT_EQ(bytes, "ab");
}

TEST_F(LiveOutputTest, OutputOfTheAttemptBeforeOursIsNotReadHere) {
  have_seven(3);
  queue->read_output({.id = 7, .offset = 500, .limit = 9}, [](const auto& /*got*/) {});
  line.answer("read_output_state_v1", state("[" + wrote(300) + "," + wrote(300, 2) + "]", 2));
  EXPECT_TRUE(line.has("read_output_v1"));
}

TEST_F(LiveOutputTest, OfAnAttemptElsewhereIsToldWhileLeftoversOfAnEarlierOneAreHere) {
  read_events();
  run_seven();
  write("abc");
  int looks = 0;
  queue->await_output(7, 1h, [&looks](bool) { return ++looks == 0; });
  line.calls.clear();
  wanted.insert(7);
  advance(500ms);
  line.take("report_v1").done(Result({"what", "id", "fence", "attempt"}, {{"fenced", "7", "31", std::nullopt}}));
  ASSERT_EQ(runner.cancelled.size(), 1U) << "its tree still lives";
  line.calls.clear();
  notice({event(5, "taskStarted", 7, 2)});
  write("x");
  EXPECT_EQ(answer({row(7, state("[" + wrote(3) + "]", 2))}), "{7}{NULL}");
  advance(1ms);
  EXPECT_EQ(answer({row(7, state("[" + wrote(3) + "," + wrote(2, 2) + "]", 2), 2, 0, "de")}), "{7}{3}");
  EXPECT_EQ(told, (std::vector<std::string>{"taskStarted task-7", "task-7 3 de"})) << "and nothing of the one before";
  const int before = looks;
  advance(300ms);
  EXPECT_EQ(looks, before + 1) << "also for who waits for it";
}

TEST_F(LiveOutputTest, TheRestOfAnAttemptElsewhereIsToldThoughTheNextOneIsHere) {
  read_events();
  want(7);
  have_running({{"7", "1", "0"}});
  have_seven(2);
  advance(300ms);
  answer({row(7, state("[" + wrote(3) + "]"), 1, 0, "abc")});
  EXPECT_EQ(told, std::vector<std::string>{"task-7 0 abc"});
  advance(300ms);
  EXPECT_FALSE(line.has("read_outputs_v1"));
}

TEST_F(LiveOutputTest, OfAnAttemptHereThatWasQuickNothingIsToldFromElsewhere) {
  read_events();
  want(7);
  have_running({{"7", "1", "0"}});
  advance(300ms);
  answer({row(7, state("[" + wrote(3) + "]"), 1, 0, "abc")});
  have_seven(2);
  tell.started({7, 2}, {.pid = 100, .at = clock.utc()});
  tell.ended({7, 2}, {.kind = Outcome::Kind::exited});
  tell.gone({7, 2});
  advance(10ms);
  line.take("report_v1").done(Result({"what", "id", "fence", "attempt"}, {{"end", "7", "31", "2"}}));
  line.calls.clear();
  advance(300ms);
  answer({row(7, state("[" + wrote(3) + "," + wrote(1, 2) + "]", 2, 2), 2, 0, "b")});
  EXPECT_EQ(told, std::vector<std::string>{"task-7 0 abc"});
}

TEST_F(LiveOutputTest, WhatAServerThatTookOverLacksHidesNoLaterAttempt) {
  read_events();
  want(9);
  have_running({{"9", "1", "5"}});
  notice({event(5, "taskStarted", 9, 2)});
  EXPECT_EQ(answer({}), "{9}{5}");
  advance(1ms);
  EXPECT_EQ(answer({row(9, state("[" + wrote(3) + "]", 2))}), "{9}{NULL}");
  advance(1ms);
  answer({row(9, state("[" + wrote(3) + "," + wrote(1, 2) + "]", 2), 2, 0, "b")});
  EXPECT_EQ(told, (std::vector<std::string>{"taskStarted task-9", "task-9 3 b"}));
}

TEST_F(LiveOutputTest, TasksAreSoughtUntilThereIsAnAnswer) {
  want(9);
  advance(1s);
  line.fail("read_running_v1", Fault::Kind::unknown);
  EXPECT_FALSE(line.has("read_running_v1")) << "one question at a time";
  advance(1s);
  have_running({});
  advance(1min);
  EXPECT_FALSE(line.has("read_running_v1"));
}

TEST_F(LiveOutputTest, ComesBehindTheEventsOfADaemonThatIsBehind) {
  read_events();
  want(9);
  have_running({{"9", "1", "0"}});
  line.events.notified("duet_events", "");
  std::vector<Result::Row> many;
  for (std::uint64_t seq = 5; seq < 1005; ++seq) many.push_back(event(seq, "notice", 0));
  line.take("read_events_v1").done(events(many));
  advance(300ms);
  EXPECT_FALSE(line.has("read_outputs_v1"));
  line.take("read_events_v1").done(events({}));
  advance(300ms);
  EXPECT_TRUE(line.has("read_outputs_v1"));
}

TEST_F(LiveOutputTest, TheEndOfATaskComesBehindItsLastOutput) {
  read_events();
  follow_nine();
  notice({event(5, "taskCompleted", 9)});
  answer({});  // asked before the end was read
  EXPECT_TRUE(told.empty());
  advance(1ms);
  answer({row(9, state("[" + wrote(3) + "]", 1, 2), 1, 0, "abc")});
  turn();
  EXPECT_EQ(told, (std::vector<std::string>{"task-9 0 abc", "task-9 3 ", "taskCompleted task-9"}));
  advance(300ms);
  EXPECT_FALSE(line.has("read_outputs_v1"));
}

TEST_F(LiveOutputTest, TheEndOfATaskDoesNotWaitLongForItsLastOutput) {
  read_events();
  follow_nine();
  notice({event(5, "taskCompleted", 9)});
  EXPECT_TRUE(told.empty());
  advance(1s);
  EXPECT_EQ(told, std::vector<std::string>{"taskCompleted task-9"});
}

TEST_F(LiveOutputTest, WhatIsToldToTheEndIsNotToldAgainWhenAnEventOfItComesLate) {
  read_events();
  follow_nine();
  answer({row(9, state("[" + wrote(1) + "," + wrote(1, 2) + "]", 2, 2), 1, 0, "a")});
  advance(1ms);
  answer({row(9, state("[" + wrote(1) + "," + wrote(1, 2) + "]", 2, 2), 2, 0, "b")});
  notice({event(5, "taskStarted", 9, 2)});
  advance(300ms);
  EXPECT_FALSE(line.has("read_outputs_v1"));
  EXPECT_EQ(told, (std::vector<std::string>{"task-9 0 a", "task-9 1 b", "task-9 2 ", "taskStarted task-9"}));
}

TEST_F(LiveOutputTest, AnAnswerForWhoHasGoneIsNotTakenForWhoComesAnew) {
  follow_nine();
  wanted.erase(9);
  advance(300ms);
  want(9);
  have_running({{"9", "1", "5"}});
  answer({row(9, state("[" + wrote(3) + "]"), 1, 0, "abc")});
  EXPECT_TRUE(told.empty());
  advance(300ms);
  EXPECT_EQ(answer({}), "{9}{5}");
}

TEST_F(LiveOutputTest, ACharacterThatIsCutByAGapIsToldAsItIs) {
  follow_nine();
  const std::string whole = state("[" + wrote(100, 1, "[[3,96]]") + "]");
  answer({row(9, whole, 1, 0, "ab\xC3"), row(9, whole, 1, 96, "wxyz")});
  advance(1ms);
  answer({row(9, whole, 1, 96, "wxyz")});
  EXPECT_EQ(told, (std::vector<std::string>{"task-9 0 ab\xC3", "task-9 96 wxyz"}));
}

TEST_F(LiveOutputTest, ACharacterThatIsNotWholeYetIsToldWhenItIs) {
  follow_nine();
  answer({row(9, state("[" + wrote(3) + "]"), 1, 0, "ab\xC3")});
  advance(300ms);
  answer({row(9, state("[" + wrote(4) + "]"), 1, 0, "ab\xC3\xA4")});
  EXPECT_EQ(told, (std::vector<std::string>{"task-9 0 ab", "task-9 2 \xC3\xA4"}));
}

TEST_F(LiveOutputTest, WhatALostWorkerDidNotSendEndsIt) {
  follow_nine();
  const std::string whole = state("[" + wrote(9) + "]", 1, 3);
  answer({row(9, whole, 1, 0, "ab\xC3")});
  advance(1ms);
  answer({row(9, whole)});
  EXPECT_EQ(told, (std::vector<std::string>{"task-9 0 ab\xC3", "task-9 9 "}));
  advance(300ms);
  EXPECT_FALSE(line.has("read_outputs_v1"));
}

TEST_F(LiveOutputTest, WhatAServerThatTookOverLacksIsNotToldAgain) {
  want(9);
  have_running({{"9", "1", "5"}});
  advance(300ms);
  answer({row(9, state("[" + wrote(3) + "]"), 1, 0, "abc")});
  advance(300ms);
  EXPECT_EQ(answer({row(9, state("[" + wrote(6) + "]"), 1, 0, "abcdef")}), "{9}{5}");
  EXPECT_EQ(told, std::vector<std::string>{"task-9 5 f"});
}

TEST_F(LiveOutputTest, OutputThatIsReadWhileAServerTakesOverIsReadAnew) {
  std::optional<tl::expected<Queue::Output, rpc::Error>> got;
  queue->read_output({.id = 9, .offset = 60, .limit = 9}, [&got](const auto& output) { got = output; });
  line.answer("read_output_state_v1", state("[" + wrote(100) + "]", 1, 2));
  const FakeLine::Call old = line.take("read_output_v1");
  fail_over_queue();
  old.done(Result({"attempt", "start", "bytes", "marks"}, {}));
  EXPECT_FALSE(got) << "the new server may lack what the old one told of";
  EXPECT_TRUE(line.has("read_output_state_v1"));
}

}  // namespace
}  // namespace duet::task::postgres
