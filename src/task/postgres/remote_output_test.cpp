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
  void write(const std::string& bytes) {
    std::ofstream(folder.file("tasks/" + output_name({7, 1})), std::ios::binary | std::ios::app) << bytes;
    tell.output({7, 1}, bytes.size());
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
            "{}",
            "1000",
            R"({"agent":"a","group":"g","metadata":"{}","state":1,"attempts":)" + std::to_string(attempts) + "}"};
  }
  /// Those that run, as a list tells them.
  void list(TaskId first, std::size_t count) {
    std::vector<Result::Row> rows;
    for (TaskId id = first; id < first + count; ++id) rows.push_back({std::to_string(id), "1", "1"});
    line.take("read_tasks_v1").done(Result({"id", "state", "attempts"}, rows));
  }
  void answer_state(const std::string& attempts, int attempt = 1, int state = 1) {
    line.answer("read_output_state_v1", R"({"state":)" + std::to_string(state) + R"(,"attempt":)" +
                                            std::to_string(attempt) + R"(,"attempts":)" + attempts + "}");
  }
  void answer_output(const std::string& start, const std::string& bytes, int attempt = 1) {
    line.take("read_output_v1")
        .done(Result({"attempt", "start", "bytes", "marks"},
                     {{std::to_string(attempt), start, bytes_of(bytes), std::string()}}));
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

TEST_F(LiveOutputTest, WhatIsAskedForInAnOutageIsToldBehindIt) {
  want(9);
  line.fail("read_tasks_v1", Fault::Kind::unknown);
  advance(1s);
  list(9, 1);
  line.fail("read_output_state_v1", Fault::Kind::unknown);
  advance(300ms);
  answer_state(R"([{"attempt":1,"total":3,"dropped":[]}])");
  answer_state(R"([{"attempt":1,"total":4,"dropped":[]}])");
  answer_output("0", "abcd");
  EXPECT_EQ(told, std::vector<std::string>{"task-9 3 d"});
}

TEST_F(LiveOutputTest, OfTheThousandAndFirstTaskThatRunsIsTold) {
  want(1001);
  list(1, 1000);
  EXPECT_FALSE(line.has("read_output_state_v1"));
  const FakeLine::Call next = line.take("read_tasks_v1");
  EXPECT_NE(next.arguments.at(0)->find(R"("from":1000)"), std::string::npos);
  next.done(Result({"id", "state", "attempts"}, {{"1001", "1", "1"}}));
  EXPECT_TRUE(line.has("read_output_state_v1"));
}

TEST_F(LiveOutputTest, OfManyTasksSomeAreAskedForAtATime) {
  for (TaskId id = 1; id <= 150; ++id) wanted.insert(id);
  queue->output_audience_changed();
  list(1, 150);
  EXPECT_EQ(line.calls.size(), 100U);
  while (line.has("read_output_state_v1")) line.fail("read_output_state_v1", Fault::Kind::unknown);
  advance(300ms);
  std::set<std::string> asked;
  while (line.has("read_output_state_v1")) {
    const FakeLine::Call call = line.take("read_output_state_v1");
    asked.insert(call.arguments.at(0).value());
    call.done(tl::unexpected(Fault{Fault::Kind::unknown, "", "cut"}));
  }
  EXPECT_EQ(asked.size(), 100U);
  EXPECT_TRUE(asked.contains("101") && asked.contains("150")) << "each in its turn";
}

TEST_F(LiveOutputTest, OfAnAttemptElsewhereIsToldWhileLeftoversOfAnEarlierOneAreHere) {
  read_events();
  run_seven();
  write("abc");
  queue->await_output(7, 1h, [](bool) { return false; });
  line.calls.clear();
  wanted.insert(7);
  advance(500ms);
  line.take("report_v1").done(Result({"what", "id", "fence", "attempt"}, {{"fenced", "7", "31", std::nullopt}}));
  ASSERT_EQ(runner.cancelled.size(), 1U) << "its tree still lives";
  line.calls.clear();
  line.events.notified("duet_events", "");
  line.take("read_events_v1").done(events({event(5, "taskStarted", 7, 2)}));
  const std::string attempts = R"([{"attempt":1,"total":3,"dropped":[]},{"attempt":2,"total":2,"dropped":[]}])";
  answer_state(R"([{"attempt":1,"total":3,"dropped":[]}])", 2);
  answer_state(attempts, 2);
  answer_output("0", "de", 2);
  EXPECT_EQ(told, (std::vector<std::string>{"taskStarted task-7", "task-7 3 de"})) << "and nothing of the one before";
  advance(300ms);
  EXPECT_TRUE(line.has("read_output_state_v1")) << "also for who waits for it";
}

TEST_F(LiveOutputTest, ComesBehindTheEventsOfADaemonThatIsBehind) {
  read_events();
  want(9);
  list(9, 1);
  line.events.notified("duet_events", "");
  std::vector<Result::Row> many;
  for (std::uint64_t seq = 5; seq < 1005; ++seq) many.push_back(event(seq, "notice", 0));
  line.take("read_events_v1").done(events(many));
  answer_state("[]");
  advance(300ms);
  EXPECT_FALSE(line.has("read_output_state_v1"));
  line.take("read_events_v1").done(events({}));
  advance(300ms);
  EXPECT_TRUE(line.has("read_output_state_v1"));
}

TEST_F(LiveOutputTest, TheEndOfATaskComesBehindItsLastOutput) {
  read_events();
  want(9);
  list(9, 1);
  answer_state("[]");
  answer_state("[]");
  line.take("read_output_v1").done(Result({"attempt", "start", "bytes", "marks"}, {}));
  line.events.notified("duet_events", "");
  line.take("read_events_v1").done(events({event(5, "taskCompleted", 9)}));
  EXPECT_TRUE(told.empty());
  answer_state(R"([{"attempt":1,"total":3,"dropped":[]}])", 1, 2);
  answer_output("0", "abc");
  turn();
  EXPECT_EQ(told, (std::vector<std::string>{"task-9 0 abc", "taskCompleted task-9"}));
}

TEST_F(LiveOutputTest, TheEndOfATaskDoesNotWaitLongForItsLastOutput) {
  read_events();
  want(9);
  list(9, 1);
  line.events.notified("duet_events", "");
  line.take("read_events_v1").done(events({event(5, "taskCompleted", 9)}));
  advance(1s);
  EXPECT_EQ(told, std::vector<std::string>{"taskCompleted task-9"});
}

}  // namespace
}  // namespace duet::task::postgres
