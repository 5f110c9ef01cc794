#include "task/postgres/attempts_fixture_test.h"

// What attempts do when another server takes over that may lack the last moments.

namespace duet::task::postgres {
namespace {

class AttemptsFailoverTest : public AttemptsTest {
 protected:
  /// The runs that recover_v1 is told of, by fence.
  std::map<std::int64_t, boost::json::object> told_running() {
    const FakeLine::Call call = line.take("recover_v1");
    std::map<std::int64_t, boost::json::object> running;
    const boost::json::value parsed = rpc::parse_value(call.arguments.at(2).value());
    for (const boost::json::value& each : parsed.as_array()) {
      running[number_in(each.as_object(), "fence")] = each.as_object();
    }
    done = call.done;
    return running;
  }
  void answer_recovery(const std::string& others, const std::string& output) {
    done(Result({"recover_v1"}, {{R"({"fenced":)" + others + R"(,"output":)" + output + R"(,"recovering":false})"}}));
  }
  /// A daemon before ours left records, and the server it told of them is gone.
  void restart(const std::string& attached) {
    attempts.reset();
    make();
    make_attempts();
    line.calls.clear();
    EXPECT_EQ(greet(hello(2)), std::nullopt);
    membership->line_is_up();
    line.answer("attach_v1", attached);
  }
  /// It has run and ended, and the server was told.
  void end_seven(const std::string& bytes = {}) {
    have({claim(7, 31)});
    started(seven);
    if (!bytes.empty()) write_output(seven, bytes);
    exited(seven);
    tell.gone(seven);
    answer({end(7, 31)});
    while (is_reporting()) answer({});  // it asks for more
  }
  void write_and_send(RunId run, const std::string& bytes) {
    write_output(run, bytes);
    advance(500ms);
    answer({});
  }

  void fail_over_again() {
    EXPECT_EQ(greet(hello(3)), std::nullopt);
    membership->line_is_up();
  }

  Line::Done done;
};

TEST_F(AttemptsFailoverTest, WhatRunsIsToldWithWhatItWasClaimedWith) {
  Result::Row spared = claim(7, 31, 3);
  spared.at(9) = "2";
  have({spared});
  started({7, 3});
  advance(10ms);
  answer({});
  fail_over();
  const auto running = told_running();
  ASSERT_EQ(running.size(), 1U);
  EXPECT_EQ(number_in(running.at(31), "task"), 7);
  EXPECT_EQ(number_in(running.at(31), "pid"), 100);
  EXPECT_EQ(text_in(running.at(31), "agent"), "shell");
  EXPECT_EQ(number_in(running.at(31), "spared"), 2) << "else two of its retries were gone";
}

TEST_F(AttemptsFailoverTest, WhatIsSomebodyElsesNowIsEndedAndTheOthersGoOn) {
  have({claim(7, 31), claim(8, 32)});
  started(seven);
  started(eight);
  advance(10ms);
  answer({});
  fail_over();
  told_running();
  answer_recovery("[31]", "[[31,0],[32,0]]");
  EXPECT_EQ(runner.cancelled, std::vector<RunId>{seven});
  EXPECT_TRUE(attempts->is_live(eight));
  exited(eight);
  EXPECT_TRUE(report().has_end(8));
}

TEST_F(AttemptsFailoverTest, AReportThatComesBeforeTheServerIsToldGoesAgain) {
  have({claim(7, 31)});
  started(seven);
  advance(10ms);
  const FakeLine::Call waiting = line.take("report_v1");
  fail_over();
  waiting.done(tl::unexpected(Fault{Fault::Kind::refused, Membership::untold_state, "untold"}));
  EXPECT_TRUE(runner.cancelled.empty());
  advance(50ms);
  EXPECT_TRUE(told_running().contains(31));
  answer_recovery("[]", "[[31,0]]");
  advance(1s);
  EXPECT_EQ(report().starts, std::vector<TaskId>{7}) << "the server was not told before";
}

TEST_F(AttemptsFailoverTest, WhoIsGivenUpEndsAllThatRuns) {
  have({claim(7, 31), claim(8, 32)});
  started(seven);
  started(eight);
  attempts->given_up();
  attempts->given_up();
  EXPECT_EQ(runner.cancelled, (std::vector<RunId>{seven, eight}));
}

TEST_F(AttemptsFailoverTest, AReportSaysWhichServerWasTold) {
  have({claim(7, 31)});
  started(seven);
  advance(10ms);
  const FakeLine::Call made_before = line.take("report_v1");
  EXPECT_EQ(ReportTold(made_before.arguments).timeline, 1);
  made_before.done(tl::unexpected(Fault{Fault::Kind::unknown, "", "the connection broke"}));
  fail_over();
  told_running();
  answer_recovery("[]", "[[31,0]]");
  advance(1s);
  EXPECT_EQ(report().timeline, 2) << "the one of before may still come, and is refused by its timeline";
}

// ---- output ----

TEST_F(AttemptsFailoverTest, OutputThatTheServerLacksGoesAgain) {
  have({claim(7, 31)});
  started(seven);
  advance(10ms);
  answer({});
  write_and_send(seven, "one ");
  write_and_send(seven, "two ");
  fail_over();
  told_running();
  answer_recovery("[]", "[[31,4]]");
  write_output(seven, "three");
  exited(seven);
  const ReportTold told = report();
  ASSERT_EQ(told.pieces.size(), 1U);
  EXPECT_EQ(told.pieces.front().offset, 4U);
  EXPECT_EQ(told.pieces.front().bytes, "two three");
}

TEST_F(AttemptsFailoverTest, OutputThatTheServerHasDoesNotGoAgain) {
  have({claim(7, 31)});
  started(seven);
  advance(10ms);
  answer({});
  write_and_send(seven, "one ");
  fail_over();
  told_running();
  answer_recovery("[]", "[[31,4]]");
  write_output(seven, "two");
  exited(seven);
  EXPECT_EQ(report().pieces.front().bytes, "two");
}

TEST_F(AttemptsFailoverTest, AnEndThatTheServerLacksIsToldAgainWithItsOutput) {
  end_seven("all of it");
  ASSERT_TRUE(attempts->is_empty());
  fail_over();
  EXPECT_TRUE(told_running().contains(31));
  answer_recovery("[]", "[[31,0]]");
  advance(10ms);
  const FakeLine::Call call = line.take("report_v1");
  const ReportTold told(call.arguments);
  EXPECT_EQ(told.ends, std::vector<TaskId>{7});
  EXPECT_EQ(told.fences, std::vector<std::int64_t>{31});
  ASSERT_EQ(told.pieces.size(), 1U);
  EXPECT_EQ(told.pieces.front().bytes, "all of it");
  EXPECT_TRUE(told.pieces.front().last);
  call.done(rows({end(7, 31)}));
  EXPECT_TRUE(attempts->is_empty());
  EXPECT_EQ(runner.acknowledged, std::vector<RunId>{seven}) << "its keeper has heard of it once";
}

TEST_F(AttemptsFailoverTest, AnEndThatTheServerLacksIsNotLostForWhoJoinsAnew) {
  end_seven();
  fail_over();
  attempts->joined({{.task = 7, .fence = 31, .attempt = 1, .started = true}});  // its lease was over
  EXPECT_TRUE(attempts->is_empty()) << "it is known how it ended";
  EXPECT_TRUE(told_running().contains(31));
  answer_recovery("[]", "[[31,0]]");
  advance(10ms);
  EXPECT_TRUE(report().has_end(7));
}

TEST_F(AttemptsFailoverTest, AnEndBeforeAnOutageThatWasLongerThanTheLeaseIsToldAgain) {
  end_seven();
  boot += 91s;
  EXPECT_EQ(greet(hello(2)), std::nullopt);
  membership->line_is_up();
  line.answer("attach_v1", R"({"worker":4,"recovering":true,"running":[]})");
  EXPECT_TRUE(told_running().contains(31)) << "the join is no sign that the new server knows it";
}

TEST_F(AttemptsFailoverTest, AnEndOfLongAgoIsNotToldAgain) {
  end_seven();
  for (int i = 0; i < 9; ++i) {
    advance(15s);
    while (is_reporting()) answer({});
    if (line.has("beat_v1")) line.answer("beat_v1", beat_text());
  }
  fail_over();
  EXPECT_TRUE(told_running().empty()) << "it may have been removed since";
}

TEST_F(AttemptsFailoverTest, AnEndThatOneServerKnowsIsToldToTheNextToo) {
  end_seven();
  fail_over();
  EXPECT_TRUE(told_running().contains(31));
  answer_recovery("[31]", "[[31,0]]");
  const auto kept = rpc::parse_value(attempts->remembered());
  ASSERT_EQ(kept.as_array().size(), 1U);
  EXPECT_EQ(number_in(kept.at(0).as_object(), "fence"), 31);
}

TEST_F(AttemptsFailoverTest, ACancelIsToldAgain) {
  have({claim(7, 31)});
  started(seven);
  advance(10ms);
  answer({});
  Membership::Calls::Beat beat;
  beat.mine = {{7, 31}};
  beat.cancels = {{7, 31}};
  attempts->beaten(beat);
  fail_over();
  EXPECT_TRUE(told_running().at(31).contains("cancelling"));
}

TEST_F(AttemptsFailoverTest, ACancelThatOnlyTheDatabaseKnewIsToldAgainWithTheEnd) {
  have({claim(7, 31)});
  started(seven);
  exited(seven);
  tell.gone(seven);
  answer({end(7, 31, State::cancelled)});
  fail_over();
  EXPECT_TRUE(told_running().at(31).contains("cancelling"));
}

TEST_F(AttemptsFailoverTest, AnEndIsToldAgainWhileItsTreeIsNotGoneYet) {
  have({claim(7, 31)});
  started(seven);
  exited(seven);
  answer({end(7, 31)});
  fail_over();
  told_running();
  answer_recovery("[]", "[[31,0]]");
  advance(10ms);
  const FakeLine::Call call = line.take("report_v1");
  EXPECT_TRUE(ReportTold(call.arguments).has_end(7));
  call.done(rows({end(7, 31)}));
  EXPECT_EQ(attempts->slots_in_use(), 1U);
  tell.gone(seven);
  EXPECT_TRUE(attempts->is_empty());
}

TEST_F(AttemptsFailoverTest, AnEndThatTheServerHasIsNotToldAgain) {
  end_seven();
  fail_over();
  told_running();
  answer_recovery("[31]", "[[31,3]]");
  EXPECT_TRUE(attempts->is_empty());
  EXPECT_TRUE(runner.cancelled.empty());
}

TEST_F(AttemptsFailoverTest, OfTwoEndsOfOneAttemptTheNewestIsToldAgain) {
  end_seven();
  have({claim(7, 40)});  // a server that took over knew nothing of the other claim
  started(seven);
  exited(seven, 3);
  tell.gone(seven);
  answer({end(7, 40, State::failed)});
  while (is_reporting()) answer({});
  fail_over();
  EXPECT_EQ(told_running().size(), 2U);
  answer_recovery("[]", "[[31,0],[40,0]]");
  advance(10ms);
  EXPECT_EQ(report().fences, std::vector<std::int64_t>{40});
}

// ---- two servers that take over, one after the other ----

TEST_F(AttemptsFailoverTest, WhatOneServerRefusedIsToldToTheNextWhichMayKnowLess) {
  have({claim(7, 31)});
  started(seven);
  advance(10ms);
  answer({});
  fail_over();
  told_running();
  answer_recovery("[31]", "[[31,0]]");
  EXPECT_EQ(runner.cancelled, std::vector<RunId>{seven});
  EXPECT_EQ(attempts->remembered(), "[]") << "that one has said what it thinks";
  fail_over_again();
  const auto running = told_running();
  ASSERT_TRUE(running.contains(31)) << "else it runs there again";
  EXPECT_FALSE(running.at(31).contains("body")) << "it may have been removed, and does not come back";
  answer_recovery("[]", "[[31,0]]");
  while (is_reporting()) answer({});
  tell.ended(seven, {.kind = Outcome::Kind::signalled, .signal = 15, .ended_at = clock.utc()});
  const ReportTold told = report();
  EXPECT_EQ(told.fences, std::vector<std::int64_t>{31});
  EXPECT_EQ(told.reasons, std::vector<std::int64_t>{static_cast<std::int64_t>(Reason::lost)})
      << "we have ended it, and nobody has asked for that";
}

TEST_F(AttemptsFailoverTest, SoIsTheEndOfWhatItRefused) {
  have({claim(7, 31)});
  started(seven);
  exited(seven);
  fail_over();
  told_running();
  line.take("report_v1").done(tl::unexpected(Fault{Fault::Kind::refused, Membership::untold_state, "untold"}));
  answer_recovery("[31]", "[[31,0]]");
  tell.gone(seven);
  advance(1s);
  answer({fenced_row(7, 31)});
  EXPECT_TRUE(attempts->is_empty());
  while (is_reporting()) answer({});
  fail_over_again();
  EXPECT_TRUE(told_running().contains(31));
  answer_recovery("[]", "[[31,0]]");
  advance(10ms);
  const ReportTold told = report();
  EXPECT_EQ(told.fences, std::vector<std::int64_t>{31});
  EXPECT_TRUE(told.reasons.empty()) << "it ended by itself";
}

// ---- a daemon that was restarted meanwhile ----

TEST_F(AttemptsFailoverTest, WhatADaemonBeforeRanAndTheServerHasForgottenIsToldAndGoesOn) {
  recorded = {seven};
  runner.left[seven] = {.claim = {.fence = 31, .worker = "one"}};
  restart(R"({"worker":4,"recovering":true,"running":[]})");
  EXPECT_EQ(runner.adopted, std::vector<RunId>{seven}) << "else it is ended as a stray, and run again";
  started(seven);
  EXPECT_FALSE(is_reporting()) << "not before the server knows of it";
  EXPECT_EQ(number_in(told_running().at(31), "task"), 7);
  answer_recovery("[]", "[[31,0]]");
  EXPECT_TRUE(runner.cancelled.empty());
  advance(10ms);
  EXPECT_EQ(report().start_fences, std::vector<std::int64_t>{31});
}

TEST_F(AttemptsFailoverTest, WhatADaemonBeforeRanAndSomebodyElseHasNowIsEnded) {
  recorded = {seven};
  runner.left[seven] = {.claim = {.fence = 31, .worker = "one"}};
  restart(R"({"worker":4,"recovering":true,"running":[]})");
  told_running();
  answer_recovery("[31]", "[[31,0]]");
  EXPECT_EQ(runner.cancelled, std::vector<RunId>{seven});
}

TEST_F(AttemptsFailoverTest, WhatADaemonBeforeHasToldTheEndOfIsNotRunAgain) {
  write_output(seven, "it has run");
  restart(R"({"worker":4,"recovering":true,"running":[{"task":7,"fence":31,"attempt":1,"onLost":1},)"
          R"({"task":8,"fence":32,"attempt":1,"onLost":1}]})");
  told_running();
  answer_recovery("[]", "[]");
  advance(10ms);
  const ReportTold told = report();
  EXPECT_EQ(told.ends, (std::vector<TaskId>{7, 8}));
  EXPECT_EQ(told.reasons.front(), static_cast<std::int64_t>(Reason::lost));
  EXPECT_EQ(told.flags.front() & End::put_back, 0);
  EXPECT_NE(told.flags.back() & End::put_back, 0) << "that one never began";
}

TEST_F(AttemptsFailoverTest, WhatIsToRunOnceAtMostMayHaveRunWithoutAWord) {
  restart(R"({"worker":4,"recovering":true,"running":[{"task":7,"fence":31,"attempt":1}]})");
  told_running();
  answer_recovery("[]", "[]");
  advance(10ms);
  const ReportTold told = report();
  EXPECT_EQ(told.ends, std::vector<TaskId>{7});
  EXPECT_EQ(told.reasons.front(), static_cast<std::int64_t>(Reason::lost));
  EXPECT_EQ(told.flags.front() & End::put_back, 0) << "a daemon before may have told its end";
}

TEST_F(AttemptsFailoverTest, WhatADaemonBeforeHadClaimedAndNoServerHasLostIsPutBack) {
  restart(R"({"worker":4,"recovering":false,"running":[{"task":7,"fence":31,"attempt":1}]})");
  advance(10ms);
  EXPECT_NE(report().flags.front() & End::put_back, 0);
}

TEST_F(AttemptsFailoverTest, AStartThatNobodyHasHeardOfIsToldWithTheAttempt) {
  have({claim(7, 31), claim(8, 32)});
  exited(eight);
  started(seven);
  line.lose("report_v1");
  fail_over();
  const auto running = told_running();
  EXPECT_EQ(number_in(running.at(31), "pid"), 100);
  EXPECT_EQ(number_in(running.at(32), "pid"), 100) << "its end tells of it, too";
}

TEST_F(AttemptsFailoverTest, WhatWasGivenUpWhileThereWasNoDaemonIsEndedAndItsEndTold) {
  recorded = {seven, eight};
  runner.left[seven] = {.claim = {.fence = 31, .worker = "one"}};
  restart(R"({"worker":4,"recovering":false,"running":[{"task":8,"fence":32,"attempt":1,"started":true}]})");
  EXPECT_EQ(runner.adopted, (std::vector<RunId>{eight, seven}));
  EXPECT_EQ(runner.cancelled, std::vector<RunId>{seven});
  line.calls.clear();
  exited(seven, 3);
  EXPECT_EQ(report().fences, std::vector<std::int64_t>{31}) << "the database keeps it as one that came late";
}

TEST_F(AttemptsFailoverTest, SoIsTheEndOfWhatHadEndedBefore) {
  recorded = {seven, eight};
  const Outcome exited_before{.kind = Outcome::Kind::exited, .code = 3, .ended_at = clock.utc()};
  runner.left[seven] = {.claim = {.fence = 31, .worker = "one"}, .gone = true, .outcome = exited_before};
  runner.left[eight] = runner.left[seven];
  runner.left[eight].outcome->ended_at -= std::chrono::hours(24 * 8);
  restart(R"({"worker":4,"recovering":false,"running":[]})");
  EXPECT_TRUE(runner.adopted.empty());
  advance(10ms);
  const FakeLine::Call call = line.take("report_v1");
  EXPECT_EQ(ReportTold(call.arguments).fences, std::vector<std::int64_t>{31}) << "the other one is too old";
  call.done(rows({fenced_row(7, 31)}));
  EXPECT_TRUE(attempts->is_empty());
  EXPECT_TRUE(runner.acknowledged.empty()) << "no keeper is there";
}

TEST_F(AttemptsFailoverTest, WhatWasGivenUpIsNotRunAgainIfTheNextServerHasForgottenThat) {
  recorded = {seven};
  const Outcome exited_before{.kind = Outcome::Kind::exited, .code = 3, .ended_at = clock.utc()};
  runner.left[seven] = {.claim = {.fence = 31, .worker = "one"}, .gone = true, .outcome = exited_before};
  restart(R"({"worker":4,"recovering":false,"running":[]})");
  advance(10ms);
  answer({fenced_row(7, 31)});
  while (is_reporting()) answer({});
  attempts->joined({{.task = 7, .fence = 31, .attempt = 1}});
  advance(1s);
  const ReportTold told = report();
  EXPECT_EQ(told.ends, std::vector<TaskId>{7});
  EXPECT_EQ(told.reasons, std::vector<std::int64_t>{static_cast<std::int64_t>(Reason::lost)});
  EXPECT_EQ(told.flags.front() & End::put_back, 0);
}

}  // namespace
}  // namespace duet::task::postgres
