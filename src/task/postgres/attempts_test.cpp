#include "task/postgres/attempts.h"

#include "task/postgres/attempts_fixture_test.h"

namespace duet::task::postgres {
namespace {

TEST_F(AttemptsTest, AsksForAsManyTasksAsItHasSlots) {
  attempts->look(false);
  EXPECT_EQ(report().most, 2);
}

TEST_F(AttemptsTest, AClaimIsStartedOnceItIsAnsweredAndItsStartIsTold) {
  attempts->look(false);
  EXPECT_TRUE(runner.started.empty());
  answer({claim(7, 31), claim(8, 32)});
  ASSERT_EQ(runner.started.size(), 2U);
  EXPECT_EQ(runner.started.at(0).run, seven);
  EXPECT_EQ(runner.started.at(0).claim->fence, 31U);
  EXPECT_EQ(runner.started.at(0).claim->worker, "one");
  started(seven);
  started(eight);
  advance(10ms);
  const ReportTold told = report();
  EXPECT_EQ(told.starts, (std::vector<TaskId>{7, 8})) << "what comes together is told together";
  EXPECT_EQ(told.most, 0) << "no slot is free";
}

TEST_F(AttemptsTest, WithoutLimitsOrPausesTheDatabaseMayTakeItsShortWay) {
  attempts->look(false);
  const FakeLine::Call call = line.take("report_v1");
  EXPECT_EQ(call.arguments.at(24), "{}");
  EXPECT_EQ(call.arguments.at(25), "{}");
  EXPECT_EQ(call.arguments.at(26), std::nullopt);
}

TEST_F(AttemptsTest, LimitsAndPausesOfTheSettingsGoWithTheClaim) {
  settings.groups["night"] = {.max_running = 1, .paused = true};
  settings.agents["cat"] = {.command = {"cat"}, .max_running = 3};
  agents->change_settings(settings);
  attempts->look(false);
  const FakeLine::Call call = line.take("report_v1");
  EXPECT_EQ(call.arguments.at(24), R"({"night"})");
  EXPECT_EQ(rpc::parse_value(call.arguments.at(25).value()),
            rpc::parse_value(R"({"groups":{"night":1},"agents":{"cat":3}})"));
}

TEST_F(AttemptsTest, AnEndIsToldAndThenForgotten) {
  have({claim(7, 31)});
  started(seven);
  exited(seven);
  const ReportTold told = report();
  EXPECT_EQ(told.ends, std::vector<TaskId>{7});
  EXPECT_TRUE(told.starts.empty()) << "the end tells of it";
  EXPECT_EQ(told.fences, std::vector<std::int64_t>{31});
  EXPECT_TRUE(runner.acknowledged.empty()) << "the record stays until the database has the end";
}

TEST_F(AttemptsTest, TheRecordGoesWhenTheDatabaseHasTheEndAndTheSlotWhenTheTreeIsGone) {
  have({claim(7, 31)});
  started(seven);
  exited(seven);
  answer({end(7, 31)});
  EXPECT_EQ(runner.acknowledged, std::vector<RunId>{seven});
  EXPECT_EQ(ended, std::vector<TaskId>{7});
  EXPECT_EQ(attempts->slots_in_use(), 1U);
  EXPECT_FALSE(attempts->is_empty());
  tell.gone(seven);
  EXPECT_TRUE(attempts->is_empty());
  EXPECT_EQ(attempts->slots_in_use(), 0U);
}

TEST_F(AttemptsTest, WhatHappensWhileAReportIsOnItsWayIsToldWhenThatIsAnswered) {
  have({claim(7, 31), claim(8, 32)});
  started(seven);
  started(eight);
  advance(10ms);
  ASSERT_TRUE(is_reporting());
  exited(seven);
  tell.gone(seven);
  EXPECT_EQ(line.calls.size(), 1U);
  answer({});
  ASSERT_TRUE(is_reporting()) << "a slot is free, and would wait for the next look";
  const ReportTold told = report();
  EXPECT_EQ(told.ends, std::vector<TaskId>{7});
  EXPECT_EQ(told.most, 1);
}

TEST_F(AttemptsTest, AStartThatFellIntoAReportIsToldBehindIt) {
  have({claim(7, 31), claim(8, 32)});
  started(seven);
  advance(10ms);
  started(eight);
  advance(10ms);
  answer({});
  advance(10ms);
  ASSERT_TRUE(is_reporting());
  EXPECT_EQ(report().starts, std::vector<TaskId>{8});
}

TEST_F(AttemptsTest, WhatDidNotArriveIsToldAgain) {
  have({claim(7, 31)});
  started(seven);
  exited(seven);
  line.fail("report_v1", Fault::Kind::unknown);
  advance(1s);
  EXPECT_EQ(report().ends, std::vector<TaskId>{7});
}

TEST_F(AttemptsTest, ARefusedReportIsToldAgainAfterASecond) {
  have({claim(7, 31)});
  started(seven);
  advance(10ms);
  line.fail("report_v1", Fault::Kind::refused, "53100");
  turn();
  EXPECT_FALSE(is_reporting());
  advance(1s);
  EXPECT_EQ(report().starts, std::vector<TaskId>{7});
}

TEST_F(AttemptsTest, AnEndThatWasNotAnsweredIsToldAgainALittleLater) {
  have({claim(7, 31)});
  started(seven);
  exited(seven);
  tell.gone(seven);
  answer({});
  turn();
  EXPECT_FALSE(is_reporting()) << "not at once, else it would be asked without end";
  advance(1s);
  EXPECT_EQ(report().ends, std::vector<TaskId>{7});
}

TEST_F(AttemptsTest, OneThatCannotBeStartedHasAnEndThatSaysWhy) {
  have({claim(7, 31, 1, "nobody")});
  EXPECT_TRUE(runner.started.empty());
  advance(10ms);
  const FakeLine::Call call = line.take("report_v1");
  EXPECT_NE(call.arguments.at(9)->find("no agent of that name"), std::string::npos);
  call.done(rows({end(7, 31, State::failed)}));
  EXPECT_TRUE(attempts->is_empty());
  EXPECT_TRUE(runner.acknowledged.empty()) << "no keeper knows of it";
}

TEST_F(AttemptsTest, OneThatNeverBeganIsPutBack) {
  have({claim(7, 31)});
  tell.never_began(seven, "the disk is full");
  EXPECT_NE(attempts->shortages().text(), "");
  advance(10ms);
  const FakeLine::Call call = line.take("report_v1");
  EXPECT_EQ(ReportTold(call.arguments).flags, std::vector<std::int64_t>{End::put_back | End::tree_is_gone});
  EXPECT_EQ(call.arguments.at(16), R"({"1000"})") << "after a second";
  call.done(rows({end(7, 31, State::queued), claim(7, 40)}));
  EXPECT_EQ(runner.started.size(), 2U) << "the same attempt, under another fence";
  EXPECT_TRUE(attempts->is_live(seven));
}

TEST_F(AttemptsTest, WhatItMayNotStartAnyMoreItPutsBack) {
  attempts->look(false);
  attempts->close();
  answer({claim(7, 31)});
  EXPECT_TRUE(runner.started.empty());
  advance(10ms);
  const ReportTold told = report();
  EXPECT_EQ(told.ends, std::vector<TaskId>{7});
  EXPECT_EQ(told.flags, std::vector<std::int64_t>{End::put_back | End::tree_is_gone});
  EXPECT_EQ(told.most, 0);
}

TEST_F(AttemptsTest, WhatComesWhenItsLeaseIsOverItPutsBack) {
  attempts->look(false);
  const FakeLine::Call asked = line.take("report_v1");
  boot += 91s;  // it was stopped, and others may have given it up
  asked.done(rows({claim(7, 31)}));
  EXPECT_TRUE(runner.started.empty());
}

TEST_F(AttemptsTest, WhatWasClaimedBeforeItJoinedAnewDoesNotStart) {
  attempts->look(false);
  const FakeLine::Call asked = line.take("report_v1");
  boot += 91s;
  membership->line_is_up();
  line.answer("attach_v1", R"({"worker":4,"name":"one","took_over":true,"running":[]})");
  asked.done(rows({claim(7, 31)}));
  EXPECT_TRUE(runner.started.empty());
  EXPECT_TRUE(attempts->is_empty());
}

TEST_F(AttemptsTest, ALimitThatCannotBeKeptPutsItBackForAWhile) {
  provide_for = [](const process::Limits& /*limits*/) -> tl::expected<void, std::string> {
    return tl::unexpected(std::string("no cgroups"));
  };
  make_attempts();
  attempts->joined({});
  Result::Row limited = claim(7, 31);
  limited.at(10) = to_body({.prompt = "true", .limits = {.memory = 1U << 30U}});
  have({limited});
  EXPECT_TRUE(runner.started.empty());
  advance(10ms);
  EXPECT_EQ(line.take("report_v1").arguments.at(16), R"({"10000"})");
}

// ---- claims whose answer was lost ----

TEST_F(AttemptsTest, NothingIsAskedForUntilABeatSaysWhatALostClaimGave) {
  attempts->look(false);
  line.fail("report_v1", Fault::Kind::unknown);
  advance(6s);
  EXPECT_FALSE(is_reporting());
  line.answer("beat_v1", beat_with(R"([{"task":7,"fence":31,"attempt":1,"started":false}])"));
  ASSERT_TRUE(is_reporting());
  EXPECT_EQ(line.calls.back().function, "report_v1");
  advance(10ms);
  const ReportTold told = report();
  EXPECT_EQ(told.ends, std::vector<TaskId>{7});
  EXPECT_EQ(told.flags, std::vector<std::int64_t>{End::put_back | End::tree_is_gone});
  EXPECT_TRUE(runner.started.empty()) << "it was never begun here";
}

TEST_F(AttemptsTest, ABeatThatWasSentBeforeAClaimWasOverSaysNothingOfIt) {
  membership->beat_soon();
  const FakeLine::Call beat = line.take("beat_v1");
  boot += 1ms;
  have({claim(7, 31)});
  started(seven);
  exited(seven);
  tell.gone(seven);
  answer({end(7, 31)});
  ASSERT_TRUE(attempts->is_empty());
  beat.done(Result({"beat_v1"}, {{beat_with(R"([{"task":7,"fence":31,"attempt":1,"started":false}])")}}));
  EXPECT_TRUE(attempts->is_empty()) << "its end was told while the beat was on its way";
}

// ---- attempts that are not ours any more ----

TEST_F(AttemptsTest, AnAttemptThatABeatDoesNotTellOfIsEnded) {
  have({claim(7, 31)});
  started(seven);
  advance(10ms);
  answer({});
  advance(1s);
  membership->beat_soon();
  if (line.has("report_v1")) answer({});
  line.answer("beat_v1", beat_with("[]"));
  EXPECT_EQ(runner.cancelled, std::vector<RunId>{seven});
  exited(seven);
  const ReportTold told = report();
  EXPECT_EQ(told.ends, std::vector<TaskId>{7}) << "as one that came late";
}

TEST_F(AttemptsTest, AFencedEndIsToldOnceAndForgotten) {
  have({claim(7, 31)});
  started(seven);
  exited(seven);
  tell.gone(seven);
  answer({fenced_row(7, 31)});
  EXPECT_TRUE(attempts->is_empty());
  EXPECT_EQ(runner.acknowledged, std::vector<RunId>{seven});
}

TEST_F(AttemptsTest, AFencedStartEndsTheProcess) {
  have({claim(7, 31)});
  started(seven);
  advance(10ms);
  answer({fenced_row(7, 31)});
  EXPECT_EQ(runner.cancelled, std::vector<RunId>{seven});
  EXPECT_EQ(attempts->slots_in_use(), 1U) << "until its processes are gone";
}

TEST_F(AttemptsTest, AfterANewJoinOnlyWhatTheDatabaseNamesIsOurs) {
  have({claim(7, 31), claim(8, 32)});
  started(seven);
  started(eight);
  attempts->joined({{.task = 8, .fence = 32, .attempt = 1, .started = true}});
  EXPECT_EQ(runner.cancelled, std::vector<RunId>{seven});
}

TEST_F(AttemptsTest, WhoHasFoundLessThanItAskedForDoesNotLookAgainWhenATreeIsGone) {
  have({claim(7, 31)});
  attempts->look(true);
  line.answer("wait_v1", "");
  answer({});
  started(seven);
  exited(seven);
  answer({end(7, 31)});
  tell.gone(seven);
  EXPECT_FALSE(is_reporting()) << "what comes wakes it";
}

// A row of report_v1: the look has walked over so many entries of tasks that are gone.
Result::Row slow_row(std::int64_t entries) {
  Result::Row row(16);
  row.at(0) = "slow";
  row.at(2) = std::to_string(entries);
  return row;
}

TEST_F(AttemptsTest, BetweenFullLooksThatAreSlowItLooksBehindWhatItTookLast) {
  have({claim(7, 31), slow_row(20'000)});
  attempts->look(false);
  EXPECT_EQ(line.take("report_v1").arguments.at(26), Argument(R"({"1":[0,7]})"));
}

TEST_F(AttemptsTest, AFullLookComesAgainWhenItIsWorthIt) {
  have({claim(7, 31), slow_row(20'000)});
  advance(200ms);
  attempts->look(false);
  EXPECT_EQ(line.take("report_v1").arguments.at(26), Argument());
}

TEST_F(AttemptsTest, ALookBehindThatFindsLessIsFollowedByAFullOneWhenThatIsWorthIt) {
  have({claim(7, 31), slow_row(200'000)});
  attempts->look(true);
  line.answer("wait_v1", "");
  answer({});
  EXPECT_FALSE(is_reporting());
  advance(1s);
  EXPECT_EQ(line.take("report_v1").arguments.at(26), Argument()) << "nobody has woken it";
}

TEST_F(AttemptsTest, APlaceIsTheLastInOrderWhateverTheOrderOfTheRows) {
  Result::Row first = claim(8, 32);
  first.at(7) = "5";
  have({claim(7, 31), first, slow_row(20'000)});
  settings.max_running = 9;
  attempts->look(false);
  EXPECT_EQ(line.take("report_v1").arguments.at(26), Argument(R"({"1":[0,7]})"));
}

TEST_F(AttemptsTest, WhoWasFullLooksWhenATreeIsGone) {
  settings.max_running = 1;
  attempts->look(true);
  line.answer("wait_v1", "");
  answer({claim(7, 31)});
  started(seven);
  exited(seven);
  answer({end(7, 31)});
  tell.gone(seven);
  EXPECT_GT(report().most, 0) << "tasks may have come that nobody could wake it for";
}

TEST_F(AttemptsTest, ACancelEndsTheTreeAndTheEndIsToldWhenThatIsGone) {
  have({claim(7, 31)});
  started(seven);
  membership->beat_soon();
  line.answer("beat_v1",
              R"({"mine":[{"task":7,"fence":31,"attempt":1}],"cancels":[{"task":7,"fence":31}],"epoch":"e"})");
  EXPECT_EQ(runner.cancelled, std::vector<RunId>{seven});
  exited(seven, 143);
  const FakeLine::Call call = line.take("report_v1");
  EXPECT_FALSE(ReportTold(call.arguments).has_end(7)) << "its start, at most";
  call.done(rows({}));
  tell.gone(seven);
  const ReportTold told = report();
  EXPECT_EQ(told.flags, std::vector<std::int64_t>{End::tree_is_gone});
}

TEST_F(AttemptsTest, AnEndOfATaskThatIsBeingCancelledCountsWhenItsTreeIsGone) {
  have({claim(7, 31)});
  started(seven);
  exited(seven);
  answer({end(7, 31, State::running)});
  EXPECT_EQ(runner.cancelled, std::vector<RunId>{seven});
  EXPECT_TRUE(runner.acknowledged.empty());
  tell.gone(seven);
  EXPECT_EQ(report().ends, std::vector<TaskId>{7});
}

TEST_F(AttemptsTest, AnAttemptAfterWhichATaskMayBeTriedAgainIsOverWhenItsTreeIsGone) {
  Result::Row retried = claim(7, 31);
  retried[8] = "1";
  have({retried, claim(8, 32)});
  started(seven);
  started({8, 1});
  exited(seven, 1);
  exited({8, 1}, 1);
  const FakeLine::Call call = line.take("report_v1");
  EXPECT_EQ(ReportTold(call.arguments).ends, std::vector<TaskId>{});
  call.done(rows({}));
  const FakeLine::Call next = line.take("report_v1");
  EXPECT_EQ(ReportTold(next.arguments).ends, std::vector<TaskId>{8}) << "it has no retries";
  next.done(rows({end(8, 32, State::failed)}));
  tell.gone(seven);
  EXPECT_EQ(report().flags, std::vector<std::int64_t>{End::tree_is_gone});
}

// ---- what a daemon before has left ----

TEST_F(AttemptsTest, WhatADaemonBeforeHasLeftIsAdoptedOrPutBack) {
  recorded = {seven};
  make_attempts();
  attempts->joined({{.task = 7, .fence = 31, .attempt = 1}, {.task = 8, .fence = 32, .attempt = 1}});
  EXPECT_EQ(runner.adopted, std::vector<RunId>{seven});
  advance(10ms);
  const ReportTold told = report();
  EXPECT_EQ(told.ends, std::vector<TaskId>{8}) << "it left no record: it never began";
}

TEST_F(AttemptsTest, AnAdoptedAttemptOfWhichNothingIsLeftIsLost) {
  make_attempts();
  attempts->joined({{.task = 7, .fence = 31, .attempt = 1, .started = true}});
  ASSERT_EQ(runner.adopted, std::vector<RunId>{seven});
  tell.never_began(seven, "");
  const FakeLine::Call call = line.take("report_v1");
  EXPECT_EQ(ReportTold(call.arguments).flags, std::vector<std::int64_t>{End::tree_is_gone});
  call.done(rows({end(7, 31, State::failed)}));
  EXPECT_TRUE(attempts->is_empty());
}

// ---- waiting and stopping ----

TEST_F(AttemptsTest, WhoGetsLessThanItAskedForSaysThatItWaitsAndLooksOnceMore) {
  attempts->look(false);
  answer({});
  EXPECT_FALSE(attempts->is_waiting());
  line.answer("wait_v1", "");
  EXPECT_TRUE(attempts->is_waiting());
  EXPECT_EQ(report().most, 2) << "a task that came between was not told";
}

TEST_F(AttemptsTest, WhoWaitsLooksOnceMoreWhenABeatIsOver) {
  attempts->look(true);
  line.answer("wait_v1", "");
  answer({});
  membership->beat_soon();
  EXPECT_FALSE(is_reporting());
  answer_beat();
  ASSERT_TRUE(is_reporting()) << "nobody could wake it meanwhile";
  answer({claim(7, 31), claim(8, 32)});
  membership->beat_soon();
  answer_beat();
  EXPECT_FALSE(is_reporting()) << "it has no room";
}

TEST_F(AttemptsTest, WhoWaitsPutsBackWhatABeatTellsOfAllTheSame) {
  attempts->look(true);
  line.answer("wait_v1", "");
  answer({});
  membership->beat_soon();
  line.answer("beat_v1", beat_with(R"([{"task":7,"fence":31,"attempt":1}])"));
  ASSERT_TRUE(is_reporting());
  EXPECT_EQ(report().flags, std::vector<std::int64_t>{End::put_back | End::tree_is_gone});
}

TEST_F(AttemptsTest, AWakeUpBeforeTheAnswerOfTheWaitEndsTheWait) {
  attempts->look(false);
  answer({});
  attempts->look(true);  // the database has chosen us, and takes us off the list
  line.answer("wait_v1", "");
  EXPECT_FALSE(attempts->is_waiting());
  answer({});
  EXPECT_TRUE(line.has("wait_v1")) << "else no wake-up comes until the next beat";
}

TEST_F(AttemptsTest, WhoIsWokenSaysThatItWaitsAndLooksOnlyOnce) {
  attempts->look(true);
  EXPECT_FALSE(line.has("report_v1"));
  line.answer("wait_v1", "");
  answer({});
  EXPECT_TRUE(attempts->is_waiting());
  EXPECT_FALSE(line.has("wait_v1"));
  EXPECT_FALSE(line.has("report_v1"));
}

TEST_F(AttemptsTest, WhoIsWokenLooksAlsoIfItCannotSayThatItWaits) {
  attempts->look(true);
  line.fail("wait_v1", Fault::Kind::refused);
  EXPECT_FALSE(attempts->is_waiting());
  EXPECT_EQ(report().most, 2);
}

TEST_F(AttemptsTest, AStopThatFindsAnAskingUnderWayHearsWhenThatIsOver) {
  attempts->look(false);
  attempts->close();
  EXPECT_FALSE(attempts->is_idle());
  answer({});
  EXPECT_TRUE(attempts->is_idle());
  EXPECT_EQ(stops, 1);
}

TEST_F(AttemptsTest, AStopThatFindsAWaitUnderWayHearsWhenThatIsOver) {
  attempts->look(false);
  answer({});
  attempts->close();
  stops = 0;
  line.fail("wait_v1", Fault::Kind::unknown);
  EXPECT_EQ(stops, 1);
}

TEST_F(AttemptsTest, WhatAStopEndsIsToldSo) {
  have({claim(7, 31)});
  started(seven);
  attempts->close();
  attempts->end_running();
  EXPECT_EQ(runner.cancelled, std::vector<RunId>{seven});
  exited(seven, 0);
  const ReportTold told = report();
  EXPECT_EQ(told.flags, std::vector<std::int64_t>{End::by_stop});
  EXPECT_EQ(told.reasons, std::vector<std::int64_t>{static_cast<int>(Reason::signal)}) << "whatever it made of TERM";
  EXPECT_NE(told.messages.find("ended when the daemon was stopped"), std::string::npos);
}

TEST_F(AttemptsTest, AStopEndsNothingThatCannotBegin) {
  have({claim(7, 31)});
  attempts->close();
  attempts->end_running();
  tell.ended(seven, {.kind = Outcome::Kind::not_started, .problem = "no such program"});
  const ReportTold told = report();
  EXPECT_EQ(told.flags, std::vector<std::int64_t>{0});
  EXPECT_EQ(told.reasons, std::vector<std::int64_t>{static_cast<int>(Reason::spawn)});
}

TEST_F(AttemptsTest, APromptThatItsProgramCannotBeGivenIsNotCutShort) {
  Result::Row row = claim(7, 31);
  row.at(10) = to_body({.prompt = std::string("rm -r a\0b", 9)});
  have({row});
  advance(10ms);
  EXPECT_TRUE(runner.started.empty());
  const ReportTold told = report();
  EXPECT_EQ(told.reasons, std::vector<std::int64_t>{static_cast<int>(Reason::spawn)});
  EXPECT_NE(told.messages.find("without NUL"), std::string::npos) << told.messages;
}

TEST_F(AttemptsTest, WhatRunsIsRememberedWithAllThatItsTaskNeedsToComeBack) {
  Submission asked{.prompt = "true", .key = "K"};
  asked.labels["a"] = "b";
  Result::Row row = claim(7, 31);
  row.at(10) = to_body(asked);
  row.at(11) = R"({"A":"b"})";
  row.at(14) = "gpu";
  row.at(15) = "two";
  have({row});
  started(seven);
  const std::string running = attempts->remembered();
  const boost::json::object told = rpc::parse_value(running).at(0).as_object();
  EXPECT_EQ(text_in(told, "needs"), "gpu");
  EXPECT_EQ(text_in(told, "submitter"), "two");
  EXPECT_EQ(text_in(told, "key"), "K");
  EXPECT_EQ(text_in(told, "prompt"), R"("true")");
  EXPECT_EQ(text_in(told, "labels"), R"({"a":"b"})");
  EXPECT_EQ(text_in(told, "env"), R"({"A":"b"})") << "it may be tried again";
}

}  // namespace
}  // namespace duet::task::postgres
