#include "task/postgres/postgres_queue.h"

#include "duet/rpc/object_text.h"
#include "task/postgres/postgres_queue_fixture_test.h"
#include "task/postgres/records.h"

namespace duet::task::postgres {
namespace {

TEST_F(PostgresQueueTest, UntilItIsJoinedWhoAsksIsToldThatTheQueueIsAway) {
  const auto is_away = [](const rpc::Error& error) {
    return error.code() == -32003 && error.data().find(R"("away":true)") != std::string::npos;
  };
  std::vector<bool> heard;
  const auto hear = [&](const auto& answer) { heard.push_back(!answer && is_away(answer.error())); };
  queue->find(7, hear);
  queue->cancel(7, hear);
  queue->list(
      {}, [](const Task&) { return true; },
      [&](const std::optional<rpc::Error>& error) { heard.push_back(error && is_away(*error)); });
  queue->look(hear);
  queue->events_after(0, 10, hear);
  queue->wait(7, std::nullopt, hear);
  EXPECT_EQ(heard, std::vector<bool>(6, true));
  EXPECT_FALSE(queue->is_joined());
}

TEST_F(PostgresQueueTest, ATaskThatIsNotThereIsUnknown) {
  join_queue();
  queue->find(7, note());
  line.take("read_task_v1").done(Result({"id"}, {}));
  EXPECT_EQ(answers, std::vector<std::string>{"-32000"});
}

TEST_F(PostgresQueueTest, ALongPromptIsAskedForWhole) {
  join_queue();
  const std::string prompt(5000, 'x');
  std::string found;
  queue->find(7, [&found](const tl::expected<Task, rpc::Error>& task) { found = task.value().prompt; });
  line.take("read_task_v1").done(task_row(7, State::queued, prompt));
  EXPECT_EQ(found, "");
  line.answer("read_request_v1", rpc::to_text(boost::json::object{{"body", to_body({.prompt = prompt})}}));
  EXPECT_EQ(found, prompt);
}

TEST_F(PostgresQueueTest, WhoWaitsHearsOfTheEndOnce) {
  join_queue();
  queue->wait(7, std::nullopt, note());
  line.take("read_task_v1").done(task_row(7, State::running));
  EXPECT_TRUE(answers.empty());
  EXPECT_TRUE(line.channels.contains("duet_events")) << "by an event";
  queue->take({.seq = 5, .kind = "taskCompleted", .task = 7, .params = "{}"});
  queue->take({.seq = 6, .kind = "taskCompleted", .task = 7, .params = "{}"});
  line.take("read_task_v1").done(task_row(7, State::completed));
  line.take("read_task_v1").done(task_row(7, State::completed));
  EXPECT_EQ(answers, std::vector<std::string>{"task-7 completed"});
  advance(5s);
  advance(3s);
  EXPECT_FALSE(line.channels.contains("duet_events")) << "nobody wants them any more";
}

TEST_F(PostgresQueueTest, AnEndThatNoEventToldOfIsFoundByALook) {
  join_queue();
  queue->wait(7, std::nullopt, note());
  line.take("read_task_v1").done(task_row(7, State::running));
  advance(5s);
  line.fail("read_task_v1", Fault::Kind::unknown);
  EXPECT_TRUE(answers.empty()) << "a question that failed is asked again";
  advance(5s);
  line.take("read_task_v1").done(Result({"id"}, {}));
  EXPECT_TRUE(answers.empty()) << "an event may tell how it ended";
  while (line.has("number_v1")) line.answer("number_v1", "0");
  EXPECT_EQ(answers, std::vector<std::string>{"-32000"}) << "it was removed meanwhile";
}

TEST_F(PostgresQueueTest, AWaitWithALimitIsAnsweredThen) {
  join_queue();
  queue->wait(7, 2s, note());
  line.take("read_task_v1").done(task_row(7, State::running));
  advance(2s);
  line.take("read_task_v1").done(task_row(7, State::running));
  EXPECT_EQ(answers, std::vector<std::string>{"task-7 running"});
}

TEST_F(PostgresQueueTest, ACancelReachesTheWorkerThatHasTheTask) {
  join_queue();
  const auto cancel = [this] {
    queue->cancel(7, [this](const tl::expected<void, rpc::Error>& done) {
      answers.push_back(done ? "ok" : std::to_string(done.error().code()));
    });
  };
  cancel();
  line.answer("cancel_v1", R"({"outcome":"cancelling","worker":9,"state":1})");
  EXPECT_EQ(line.take("nudge_v1").arguments.at(2), "9");
  EXPECT_FALSE(line.has("beat_v1"));
  cancel();
  line.answer("cancel_v1", R"({"outcome":"cancelling","worker":4,"state":1})");
  EXPECT_TRUE(line.has("beat_v1")) << "a beat brings it";
  cancel();
  line.answer("cancel_v1", R"({"outcome":"unknown"})");
  cancel();
  line.answer("cancel_v1", R"({"outcome":"ended","state":2})");
  EXPECT_EQ(answers.size(), 4U);
  EXPECT_EQ(answers.at(1), "ok");
  EXPECT_EQ(answers.at(2), "-32000");
  EXPECT_NE(answers.at(3), "ok");
}

TEST_F(PostgresQueueTest, ACleanWhoseAnswerWasLostDoesNotSayThatNothingWasRemoved) {
  join_queue();
  queue->clean({}, {}, [this](const tl::expected<Queue::Removal, rpc::Error>& removal) {
    answers.push_back(removal ? std::to_string(removal->removed.size()) : std::to_string(removal.error().code()));
  });
  line.fail("remove_v1", Fault::Kind::unknown);
  line.answer("remove_v1", R"({"removed":[],"kept":[],"more":false})");
  EXPECT_EQ(answers, std::vector<std::string>{"-32003"});
}

TEST_F(PostgresQueueTest, ARemovalWhoseAnswerWasLostKnowsWhatItRemoved) {
  join_queue();
  queue->remove({7, 8}, [this](const tl::expected<Queue::Removal, rpc::Error>& removal) {
    answers.push_back(removal ? std::to_string(removal->removed.size()) : std::to_string(removal.error().code()));
  });
  line.fail("remove_v1", Fault::Kind::unknown);
  line.answer("remove_v1", R"({"removed":[],"kept":[{"id":7,"reason":"unknown"},{"id":8,"reason":"unknown"}]})");
  EXPECT_EQ(answers, std::vector<std::string>{"2"});
}

TEST_F(PostgresQueueTest, ARuleAsksForTasksOfRulesAlone) {
  join_queue();
  queue->list(
      {.state = State::queued, .of_rules = true}, [](const Task&) { return true; },
      [](const std::optional<rpc::Error>&) {});
  const boost::json::value asked = rpc::parse_value(line.take("read_tasks_v1").arguments.at(0).value());
  EXPECT_EQ(asked.as_object().at("ofRules"), true);
  queue->list(
      {}, [](const Task&) { return true; }, [](const std::optional<rpc::Error>&) {});
  EXPECT_FALSE(rpc::parse_value(line.take("read_tasks_v1").arguments.at(0).value()).as_object().contains("ofRules"));
}

TEST_F(PostgresQueueTest, ASubmitIsTakenOrItsKeyBelongsToAnother) {
  join_queue();
  const auto submit = [this](const std::string& prompt) {
    queue->submit({.prompt = prompt, .key = "k"}, [this](const tl::expected<Accepted, rpc::Error>& accepted) {
      answers.push_back(accepted ? to_text(accepted->id) : std::to_string(accepted.error().code()));
    });
    turn();
    return line.take("submit_v1");
  };
  const FakeLine::Call first = submit("a");
  const std::vector<std::string> columns{"place", "id", "state", "fresh", "body", "refusal", "lane"};
  first.done(Result(columns, {{"1", "7", "0", "t", {}, {}, "1"}}));
  const FakeLine::Call again = submit("a");
  again.done(Result(columns, {{"1", "7", "0", "f", to_body({.prompt = "a", .key = "k"}), {}, "1"}}));
  const FakeLine::Call other = submit("b");
  other.done(Result(columns, {{"1", "7", "0", "f", to_body({.prompt = "a", .key = "k"}), {}, "1"}}));
  EXPECT_EQ(answers, (std::vector<std::string>{"task-7", "task-7", "-32602"}));
}

TEST_F(PostgresQueueTest, OutputThatWasWrittenElsewhereComesFromTheDatabase) {
  join_queue();
  std::string bytes;
  queue->read_output({.id = 7, .limit = 100}, [&bytes](const tl::expected<Queue::Output, rpc::Error>& output) {
    bytes = output.value().piece.bytes;
  });
  line.answer("read_output_state_v1", R"({"state":2,"attempt":1,"attempts":[{"attempt":1,"total":3,"dropped":[]}]})");
  EXPECT_TRUE(line.has("read_output_v1"));
}

TEST_F(PostgresQueueTest, AnEventOfThisDaemonIsToldUntilTheDatabaseHasIt) {
  join_queue();
  store->write({.apply = [](StoreWriter& writer) { writer.tell("ruleFired", 0, rpc::ObjectText()); },
                .kind = Change::Kind::fact});
  store->write({.apply = [](StoreWriter& writer) { writer.tell("ruleHeld", 0, rpc::ObjectText()); },
                .kind = Change::Kind::fact});
  wait_for_store();
  turn();
  line.fail("tell_v1", Fault::Kind::unknown);
  EXPECT_FALSE(line.has("tell_v1"));
  advance(2s);
  const FakeLine::Call again = line.take("tell_v1");
  EXPECT_EQ(again.arguments.at(3), "ruleFired");
  EXPECT_EQ(again.arguments.at(4), "{}") << "the database has numbers of its own";
  again.done(tl::unexpected(Fault{Fault::Kind::refused, "22P02", "never to be taken"}));
  EXPECT_EQ(line.take("tell_v1").arguments.at(3), "ruleHeld") << "one that is bad keeps no other back";
}

TEST_F(PostgresQueueTest, EventsBeyondWhatIsKeptInMemoryWaitInTheStore) {
  constexpr int many = 10'003;
  join_queue();
  store->write({.apply =
                    [](StoreWriter& writer) {
                      for (int i = 0; i < many; ++i) writer.tell("notice", 0, rpc::ObjectText());
                    },
                .kind = Change::Kind::fact});
  wait_for_store();
  turn();
  std::set<std::string> numbers;
  while (line.has("tell_v1")) {
    const FakeLine::Call call = line.take("tell_v1");
    EXPECT_TRUE(numbers.insert(*call.arguments.at(2)).second);
    call.done(Result({"tell_v1"}, {{"t"}}));
  }
  EXPECT_EQ(numbers.size(), static_cast<std::size_t>(many));
}

TEST_F(PostgresQueueTest, WithNothingRunningAStopLeavesTheQueue) {
  join_queue();
  bool stopped = false;
  queue->stop(
      false, [&stopped] { stopped = true; }, std::nullopt);
  see_off();
  EXPECT_TRUE(stopped);
}

TEST_F(PostgresQueueTest, AStopThatFallsIntoALookForTasksNeedsNoPatience) {
  join_queue();
  line.events.notified("duet_w4", "task");
  line.answer("wait_v1", "");
  ASSERT_TRUE(line.has("report_v1"));
  bool stopped = false;
  queue->stop(
      false, [&stopped] { stopped = true; }, std::nullopt);
  line.take("report_v1").done(Result({"what"}, {}));
  ASSERT_TRUE(line.has("read_stats_v1"));
  see_off();
  EXPECT_TRUE(stopped);
}

TEST_F(PostgresQueueTest, AStopBehindAFailoverTellsWhatHasEndedBeforeItLeaves) {
  join_queue();
  end_seven();
  fail_over_queue();
  bool stopped = false;
  queue->stop(
      false, [&stopped] { stopped = true; }, std::nullopt);
  EXPECT_FALSE(line.has("read_stats_v1")) << "the server takes it for one that never began";
  line.answer("recover_v1", R"({"fenced":[],"output":[[31,0]],"recovering":false})");
  advance(10ms);
  answer_end();
  see_off();
  EXPECT_TRUE(stopped);
}

TEST_F(PostgresQueueTest, AStopThatFindsAnotherServerBehindAPoolerTellsWhatHasEnded) {
  join_queue();
  end_seven();
  bool stopped = false;
  queue->stop(
      false, [&stopped] { stopped = true; }, std::nullopt);
  for (int i = 0; i < 3; ++i) line.answer("read_stats_v1", "{}");
  line.fail("leave_v1", Fault::Kind::refused, Membership::untold_state);
  fail_over_queue();
  line.answer("recover_v1", R"({"fenced":[],"output":[[31,0]],"recovering":false})");
  EXPECT_FALSE(line.has("read_stats_v1"));
  advance(10ms);
  answer_end();
  see_off();
  EXPECT_TRUE(stopped);
}

TEST_F(PostgresQueueTest, AStopThatCannotTellAnotherServerEndsAllTheSame) {
  join_queue();
  bool stopped = false;
  queue->stop(
      false, [&stopped] { stopped = true; }, std::nullopt);
  for (int i = 0; i < 3; ++i) line.answer("read_stats_v1", "{}");
  line.fail("leave_v1", Fault::Kind::refused, Membership::untold_state);
  advance(10s);
  while (line.has("read_stats_v1")) line.answer("read_stats_v1", "{}");
  wait_for_store();
  EXPECT_TRUE(stopped);
}

TEST_F(PostgresQueueTest, AStopBehindAFailoverLeavesWhenThereWasNothingToTell) {
  join_queue();
  fail_over_queue();
  bool stopped = false;
  queue->stop(
      false, [&stopped] { stopped = true; }, std::nullopt);
  line.answer("recover_v1", R"({"fenced":[],"output":[],"recovering":false})");
  see_off();
  EXPECT_TRUE(stopped);
}

TEST_F(PostgresQueueTest, AServerThatWasNotToldAnythingIsNotLeft) {
  join_queue();
  fail_over_queue();
  bool stopped = false;
  queue->stop(
      false, [&stopped] { stopped = true; }, std::nullopt);
  advance(10s);
  while (line.has("read_stats_v1")) line.answer("read_stats_v1", "{}");
  EXPECT_FALSE(line.has("leave_v1")) << "the next daemon tells";
  wait_for_store();
  EXPECT_TRUE(stopped);
}

TEST_F(PostgresQueueTest, WhoWaitsHearsOfTheStop) {
  join_queue();
  queue->wait(7, std::nullopt, note());
  line.take("read_task_v1").done(task_row(7, State::running));
  queue->stop(
      false, [] {}, std::nullopt);
  see_off();
  ASSERT_EQ(answers.size(), 1U);
  queue->wait(8, std::nullopt, note());
  EXPECT_EQ(answers.size(), 2U);
  EXPECT_EQ(answers.at(0), answers.at(1));
}

TEST_F(PostgresQueueTest, AnEndThatCannotBeToldKeepsADrainFromItsEndOnlyForAWhile) {
  join_queue();
  have_seven();
  line.up = false;
  tell.started({7, 1}, {.pid = 100, .at = clock.utc()});
  tell.ended({7, 1}, {.kind = Outcome::Kind::exited, .started = Started{100, clock.utc()}, .ended_at = clock.utc()});
  tell.gone({7, 1});
  bool stopped = false;
  queue->stop(
      false, [&stopped] { stopped = true; }, std::nullopt);
  EXPECT_FALSE(stopped);
  advance(10s);
  wait_for_store();
  EXPECT_TRUE(stopped) << "the next daemon finds it";
}

TEST_F(PostgresQueueTest, OneThatNeverBeganKeepsADrainFromItsEndOnlyForAWhile) {
  join_queue();
  have_seven();
  line.up = false;
  bool stopped = false;
  queue->stop(
      false, [&stopped] { stopped = true; }, std::nullopt);
  tell.never_began({7, 1}, "no room");
  advance(10s);
  wait_for_store();
  EXPECT_TRUE(stopped);
}

TEST_F(PostgresQueueTest, AnAgentOfSomebodyWhoHasJustComeIsNotRefused) {
  join_queue();
  std::vector<int> codes;
  const auto submit = [&] {
    queue->submit({.prompt = "p", .agent = "new"}, [&codes](const tl::expected<Accepted, rpc::Error>& accepted) {
      codes.push_back(accepted ? 0 : accepted.error().code());
    });
  };
  submit();
  EXPECT_TRUE(codes.empty()) << "it is asked first";
  line.answer("beat_v1", beat_text());
  EXPECT_EQ(codes, std::vector<int>{-32003});
  submit();
  line.answer("beat_v1", R"({"shortestLease":90000,"epoch":"e","agents":["new"]})");
  turn();
  EXPECT_TRUE(line.has("submit_v1"));
}

TEST_F(PostgresQueueTest, AnEditLeavesWhoHasAskedForIt) {
  join_queue();
  const std::string request = rpc::ObjectText()
                                  .add("body", to_body({.prompt = "p"}))
                                  .add("agent", "shell")
                                  .add("metadata", R"({"by":"ann","cause":{"taskId":"task-1","depth":2}})")
                                  .take();
  queue->edit(7, {.prompt = "q"}, note());
  line.answer("read_request_v1", request);
  const auto change = [this] { return rpc::parse_value(line.take("edit_v1").arguments.at(3).value()).as_object(); };
  EXPECT_FALSE(change().contains("metadata"));
  Queue::Edit edit;
  edit.after = std::vector<TaskId>{3};
  queue->edit(7, edit, note());
  line.answer("read_request_v1", request);
  EXPECT_EQ(text_in(change(), "metadata"), R"({"by":"ann","cause":{"taskId":"task-1","depth":2},"after":["task-3"]})");
}

TEST_F(PostgresQueueTest, APauseOfTheSettingsIsToldWhenItIsChanged) {
  join_queue();
  TaskSettings settings = queue->settings();
  settings.groups["g"].paused = true;
  queue->change_settings(settings);
  const std::vector<Argument> called = line.take("pause_v1").arguments;
  EXPECT_EQ(std::vector(called.begin() + 2, called.end()),
            (std::vector<Argument>{"g", argument_of(true), argument_of(true)}));
}

TEST_F(PostgresQueueTest, ADatabaseThatDoesNotAnswerIsAProblemWhenThatIsOverdue) {
  line.waited = 9s;
  EXPECT_EQ(queue->delay(), "");
  line.waited = 12500ms;
  EXPECT_NE(queue->delay().find("for 12 s"), std::string::npos);
}

TEST_F(PostgresQueueTest, AfterAFailoverATaskWaitsForWhatWorkersTell) {
  join_queue();
  std::vector<std::string> texts;
  queue->explain(7, [&texts](const tl::expected<Explanation, rpc::Error>& explained) {
    for (const WaitReason& reason : explained.value().reasons) texts.push_back(reason.text);
  });
  line.take("read_task_v1").done(task_row(7, State::queued));
  line.answer(
      "read_explain_v1",
      R"({"agent":"shell","group":"default","slots":{"all":2,"used":2,"free":0},"recovering":true,"before":0})");
  EXPECT_EQ(texts, std::vector<std::string>{"after a failover the queue waits for all workers to tell what they run"});
}

TEST_F(PostgresQueueTest, SlotsAreThoseOfAllWorkers) {
  EXPECT_EQ(queue->slots(), 2U) << "nobody has told of others yet";
  join_queue();
  queue->look([](const tl::expected<Queue::Standing, rpc::Error>&) {});
  line.answer("read_stats_v1", R"({"queued":1,"running":2,"completed":3,"failed":4,"cancelled":5,"slots":7})");
  EXPECT_EQ(queue->slots(), 7U);
}

}  // namespace
}  // namespace duet::task::postgres
