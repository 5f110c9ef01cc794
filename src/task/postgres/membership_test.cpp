#include "task/postgres/membership.h"

#include "task/postgres/member_fixture_test.h"

namespace duet::task::postgres {
namespace {

TEST_F(MemberTest, TakesAServerOfItsProjectAndNoOther) {
  EXPECT_EQ(greet(hello()), std::nullopt);
  EXPECT_NE(greet(R"({"version":1,"oldest":1,"project":"other","adopted":true})")->find("'other'"), std::string::npos);
  EXPECT_NE(membership->refusal(), "");
  EXPECT_NE(greet(R"({"version":0})")->find("cluster migrate"), std::string::npos);
  EXPECT_NE(greet(R"({"version":9,"oldest":2,"project":"site","adopted":true})")->find("upgrade"), std::string::npos);
  EXPECT_NE(greet(R"({"version":1,"oldest":1,"project":"site","adopted":false})")->find("adopt"), std::string::npos);
  EXPECT_TRUE(greet(R"({"recovery":true})"));
}

TEST_F(MemberTest, AnOldPrimaryAndAnOldBackupAreRefused) {
  EXPECT_EQ(greet(hello(3)), std::nullopt);
  EXPECT_EQ(memory_of(memory)->timeline, 3) << "it is known after a restart, too";
  EXPECT_NE(greet(hello(2))->find("old primary"), std::string::npos);
  membership->saw_event_at(1'000'000);
  EXPECT_NE(greet(hello(3))->find("old backup"), std::string::npos);
  EXPECT_EQ(greet(hello(4)), std::nullopt) << "a failover may lack the last moments";
  EXPECT_EQ(greet(hello(4)), std::nullopt) << "the other connection comes to the same server";
  EXPECT_EQ(memory_of(memory)->newest_event_ms, 1'000);
  membership->saw_event_at(62'000);
  EXPECT_NE(greet(hello(4))->find("old backup"), std::string::npos) << "what was seen there counts";
}

TEST_F(MemberTest, WhatTheOtherConnectionSeesWhileThisOneGreetsDoesNotMakeItsServerOld) {
  EXPECT_EQ(greet(hello(3)), std::nullopt);
  std::optional<std::string> why = "no verdict";
  const Line::Ask ask = [this](std::string_view /*function*/, const std::vector<Argument>& /*arguments*/,
                               const Line::Done& done) {
    membership->saw_event_at(1'000'000);
    done(Result({"hello_v1"}, {{hello(3)}}));
  };
  membership->greet(Line::Way::work, ask, [&why](const std::optional<std::string>& verdict) { why = verdict; });
  EXPECT_EQ(why, std::nullopt);
}

TEST_F(MemberTest, TwoGreetingsAtOnceOnANewTimelineAreBothTaken) {
  EXPECT_EQ(greet(hello(3)), std::nullopt);
  membership->saw_event_at(1'000'000);
  std::optional<std::string> second = "no verdict";
  const Line::Ask ask = [this](std::string_view /*function*/, const std::vector<Argument>& /*arguments*/,
                               const Line::Done& done) {
    EXPECT_EQ(greet(hello(4)), std::nullopt);
    done(Result({"hello_v1"}, {{hello(4)}}));
  };
  membership->greet(Line::Way::watch, ask, [&second](const std::optional<std::string>& why) { second = why; });
  EXPECT_EQ(second, std::nullopt);
}

TEST_F(MemberTest, WhoWantsToKnowTheOthersHearsAfterABeatThatWasSentThen) {
  join();
  int heard = 0;
  advance(15s);
  membership->after_beat([&heard] { ++heard; });
  answer_beat();
  EXPECT_EQ(heard, 0) << "that one was on its way";
  answer_beat();
  EXPECT_EQ(heard, 1);
  membership->after_beat([&heard] { ++heard; });
  line.fail("beat_v1", Fault::Kind::unknown);
  EXPECT_EQ(heard, 2) << "it will not get any newer";
  line.up = false;
  membership->after_beat([&heard] { ++heard; });
  EXPECT_EQ(heard, 3);
}

TEST_F(MemberTest, ABeatTellsThatWeWaitAndLeavesTheRestToTheDatabase) {
  join();
  advance(15s);
  EXPECT_EQ(line.take("beat_v1").arguments.at(2), std::nullopt)
      << "one that is on its way could undo what wait_v1 says";
}

TEST_F(MemberTest, ASilentWorkerThatStillHasWhatCanBeRepeatedIsSilencedAgain) {
  join();
  const std::string other = R"([{"id":8,"beat":5,"state":2,"toRepeat":true,"lease":30000,"lostAfter":60000}])";
  for (int i = 0; i < 7; ++i) {
    advance(5s);
    if (!line.has("beat_v1")) membership->beat_soon();
    answer_beat(other);
  }
  EXPECT_TRUE(line.has("silence_v1"));
}

TEST_F(MemberTest, EveryEventThatWasSeenCountsAndAfterAKillAllButTheLastMoments) {
  EXPECT_EQ(greet(hello()), std::nullopt);
  for (std::int64_t seen = 1'000; seen <= 62'000; seen += 1'000) membership->saw_event_at(seen);
  EXPECT_NE(greet(hello())->find("old backup"), std::string::npos) << "the server's newest is of 1,000";
  EXPECT_GT(memory_of(memory)->newest_event_ms, 62'000 - 5'000);
  membership->saw_event_at(30'000);
  EXPECT_GT(memory_of(memory)->newest_event_ms, 62'000 - 5'000) << "an older one changes nothing";
}

TEST_F(MemberTest, OnANewTimelineTheNumbersMoveOnBeforeAnythingElse) {
  EXPECT_EQ(greet(R"({"version":1,"oldest":1,"project":"site","queue":"q","system":"5","timeline":1,)"
                  R"("serverTimeline":2,"epoch":"e","nextSeq":3,"adopted":true})"),
            std::nullopt);
  EXPECT_EQ(membership->epoch(), "f");
  EXPECT_EQ(membership->next_seq(), 1000003U);
}

TEST_F(MemberTest, TheNewIncarnationIsWrittenDownBeforeTheDatabaseHearsOfIt) {
  EXPECT_EQ(greet(hello()), std::nullopt);
  membership->line_is_up();
  const FakeLine::Call attach = line.take("attach_v1");
  const WorkerMemory before = memory_of(memory).value();
  EXPECT_EQ(before.next, attach.arguments.at(3));
  // Killed here, the next daemon shows both.
  make();
  EXPECT_EQ(greet(hello()), std::nullopt);
  membership->line_is_up();
  const FakeLine::Call again = line.take("attach_v1");
  EXPECT_EQ(again.arguments.at(2), "{\"" + before.next + "\"}");
}

TEST_F(MemberTest, ACopyOfTheFolderIsAnotherWorker) {
  join();
  memory.replace(memory.find("\"here\""), 6, "\"elsewhere\"");
  make();
  EXPECT_EQ(greet(hello()), std::nullopt);
  membership->line_is_up();
  EXPECT_EQ(line.take("attach_v1").arguments.at(1), std::nullopt);
}

TEST_F(MemberTest, ACopyOfTheFolderIsKnownAsOne) {
  EXPECT_FALSE(membership->is_copy());
  join();
  make();
  EXPECT_FALSE(membership->is_copy());
  memory.replace(memory.find("\"here\""), 6, "\"elsewhere\"");
  make();
  EXPECT_TRUE(membership->is_copy());
}

TEST_F(MemberTest, NothingIsCalledBeforeAnybodyKnowsUs) {
  EXPECT_EQ(greet(hello()), std::nullopt);
  std::optional<Fault::Kind> fault;
  membership->call(Line::Way::work, "report_v1", {}, [&fault](const Answer& answer) { fault = answer.error().kind; });
  EXPECT_FALSE(line.has("report_v1"));
  EXPECT_EQ(fault, std::nullopt) << "not within the call";
  turn();
  EXPECT_EQ(fault, Fault::Kind::never);
}

TEST_F(MemberTest, AQueueThatHasBecomeAnotherOneIsJoinedAnew) {
  join();
  std::string adopted = hello();
  adopted.replace(adopted.find("\"q\""), 3, "\"r\"");
  EXPECT_EQ(greet(adopted), std::nullopt);
  EXPECT_FALSE(membership->is_joined());
  membership->line_is_up();
  EXPECT_EQ(line.take("attach_v1").arguments.at(1), std::nullopt) << "nobody knows us there";
  EXPECT_EQ(memory_of(memory)->queue, "r");
}

TEST_F(MemberTest, WithoutAQueueOrAPartInItTheRefusalSaysWhatToDo) {
  const auto greeted = [this](const std::string& state) {
    std::string why;
    const Line::Ask ask = [&state](std::string_view, const std::vector<Argument>&, const Line::Done& done) {
      done(tl::unexpected(Fault{Fault::Kind::refused, state, "no"}));
    };
    membership->greet(Line::Way::work, ask, [&why](const std::optional<std::string>& verdict) { why = *verdict; });
    return why;
  };
  EXPECT_EQ(greeted("57014"), "no");
  EXPECT_EQ(membership->refusal(), "") << "it may pass";
  EXPECT_NE(greeted("3F000").find("cluster init"), std::string::npos);
  EXPECT_NE(membership->refusal().find("cluster init"), std::string::npos);
  EXPECT_NE(greeted("42501").find("duet_worker"), std::string::npos);
}

TEST_F(MemberTest, AnAnsweredBeatExtendsTheLeaseFromWhenItWasSent) {
  join();
  EXPECT_EQ(lease_until, 1090s);
  advance(15s);
  const FakeLine::Call beat = line.take("beat_v1");
  boot += 3s;  // it takes so long
  beat.done(Result({"beat_v1"}, {{beat_text()}}));
  EXPECT_EQ(lease_until, 1015s + 90s);
}

TEST_F(MemberTest, WhoseLeaseIsOverJoinsUnderANewIncarnation) {
  join();
  const std::string before = membership->incarnation();
  boot += 91s;  // the machine slept: only this clock went on
  clock.advance(15s);
  turn();
  EXPECT_FALSE(line.has("beat_v1"));
  line.answer("attach_v1", R"({"worker":4,"running":[{"task":7,"fence":9,"attempt":1}]})");
  EXPECT_NE(membership->incarnation(), before);
  EXPECT_EQ(joined.back(), 1U);
}

TEST_F(MemberTest, WhoJoinsAnewShowsWhoItWasBeforeToo) {
  join();
  const std::string first = membership->incarnation();
  boot += 91s;
  clock.advance(15s);
  turn();
  line.answer("attach_v1", R"({"worker":4,"running":[]})");
  answer_beat();
  const std::string second = membership->incarnation();
  boot += 91s;
  clock.advance(15s);
  turn();
  const std::string shown = line.take("attach_v1").arguments.at(2).value();
  EXPECT_NE(shown.find(first), std::string::npos) << "a failover may have lost that it was taken over";
  EXPECT_NE(shown.find(second), std::string::npos);
}

TEST_F(MemberTest, WhoIsToldThatItIsFencedJoinsAnew) {
  join();
  advance(15s);
  line.fail("beat_v1", Fault::Kind::refused, "DU001");
  EXPECT_TRUE(line.has("attach_v1"));
  EXPECT_FALSE(membership->is_joined());
}

TEST_F(MemberTest, AWorkerThatDoesNotBeatIsGivenUpByTheBeatThatWasSeen) {
  join();
  const std::string other = R"([{"id":8,"beat":5,"state":0,"lease":30000,"lostAfter":60000}])";
  for (int i = 0; i < 7; ++i) {
    advance(5s);
    if (!line.has("beat_v1")) membership->beat_soon();
    answer_beat(other);
  }
  const FakeLine::Call silence = line.take("silence_v1");
  EXPECT_EQ(silence.arguments.at(2), "8");
  EXPECT_EQ(silence.arguments.at(3), "5");
  silence.done(Result({"silence_v1"}, {{R"({"silent":true,"ready":[{"lane":3,"count":2}]})"}}));
  turn();
  EXPECT_EQ(line.take("wake_v1").arguments.at(2), "{3}");
}

TEST_F(MemberTest, ABeatThatWasSeenBeforeTheLineBrokeProvesNothing) {
  join();
  const std::string other = R"([{"id":8,"beat":5,"state":0,"lease":30000,"lostAfter":60000}])";
  for (int i = 0; i < 9; ++i) {
    advance(5s);
    if (i == 3) membership->line_is_down("it broke");
    if (!line.has("beat_v1")) membership->beat_soon();
    answer_beat(other);
  }
  EXPECT_FALSE(line.has("silence_v1")) << "the server may have lost a beat, and given its number again";
  advance(5s);
  if (!line.has("beat_v1")) membership->beat_soon();
  answer_beat(other);
  EXPECT_TRUE(line.has("silence_v1"));
}

TEST_F(MemberTest, NobodyIsWokenForWhatWeTakeOurselves) {
  has_room = true;
  join();
  line.calls.clear();
  advance(1s);
  membership->wake(3, 2);
  turn();
  EXPECT_FALSE(line.has("wake_v1")) << "our own look comes first";
  membership->took(3);
  membership->took(3);
  membership->looked();
  advance(1s);
  EXPECT_FALSE(line.has("wake_v1"));
  membership->wake(3, 2);
  membership->took(3);
  membership->looked();
  turn();
  EXPECT_EQ(line.take("wake_v1").arguments.at(3), "{1}") << "of what is left others hear at once";
}

TEST_F(MemberTest, OthersAreWokenAtOnceForALaneThatWeFoundNothingIn) {
  has_room = true;
  join();
  line.calls.clear();
  advance(1s);
  membership->wake(3, 1);
  membership->looked();
  turn();
  line.take("wake_v1").done(Result());
  advance(1s);
  membership->wake(3, 1);
  turn();
  EXPECT_TRUE(line.has("wake_v1")) << "it may be none that we serve";
  membership->took(3);
  advance(1s);
  line.calls.clear();
  membership->wake(3, 1);
  turn();
  EXPECT_FALSE(line.has("wake_v1")) << "it is one";
}

TEST_F(MemberTest, OthersAreWokenAtOnceIfThereIsNoRoomHere) {
  join();
  line.calls.clear();
  advance(1s);
  membership->wake(3, 1);
  turn();
  EXPECT_TRUE(line.has("wake_v1"));
}

TEST_F(MemberTest, OthersAreWokenIfOurOwnLookIsNotAnswered) {
  has_room = true;
  join();
  line.calls.clear();
  advance(1s);
  membership->wake(3, 1);
  advance(20ms);
  EXPECT_TRUE(line.has("wake_v1"));
}

TEST_F(MemberTest, WakeUpsAndNumbersGoOutTogether) {
  join();
  line.calls.clear();
  advance(1s);
  for (int i = 0; i < 5; ++i) {
    membership->wake(3, 1);
    membership->number_soon();
  }
  turn();
  EXPECT_EQ(line.take("wake_v1").arguments.at(3), "{5}");
  EXPECT_FALSE(line.has("wake_v1"));
  line.answer("number_v1", "5");
  EXPECT_EQ(numbered, 1);
  EXPECT_FALSE(line.has("number_v1"));
}

TEST_F(MemberTest, LeavingForgetsTheWorkerAndStaysSilentAfterwards) {
  join();
  line.calls.clear();
  bool left = false;
  membership->leave([&left](bool has_left) { left = has_left; });
  line.answer("leave_v1", R"({"left":true,"ready":[]})");
  EXPECT_TRUE(left);
  EXPECT_EQ(memory_of(memory)->worker, 0);
  EXPECT_FALSE(memory_of(memory)->incarnation.empty()) << "a late attach may still be carried out";
  advance(1h);
  EXPECT_TRUE(line.calls.empty());
}

TEST_F(MemberTest, WhoCannotLeaveBecauseAnotherServerHasTakenOverTellsThatFirst) {
  join();
  line.calls.clear();
  std::vector<bool> left;
  const auto leave = [&] { membership->leave([&left](bool has_left) { left.push_back(has_left); }); };
  leave();
  line.fail("leave_v1", Fault::Kind::refused, Membership::untold_state);
  EXPECT_EQ(left, std::vector<bool>{false});
  EXPECT_EQ(line.reconnects.size(), 2U) << "behind a pooler no connection breaks";
  EXPECT_TRUE(membership->is_telling_again());
  fail_over();
  line.answer("recover_v1", R"({"fenced":[],"output":[],"recovering":false})");
  EXPECT_FALSE(membership->is_telling_again());
  leave();
  line.answer("leave_v1", R"({"left":true,"ready":[]})");
  EXPECT_EQ(left, (std::vector<bool>{false, true}));
  EXPECT_EQ(memory_of(memory)->worker, 0);
}

// ---- a server that takes over ----

TEST_F(MemberTest, OnANewTimelineWhatRunsIsToldBeforeAnythingElse) {
  join();
  line.calls.clear();
  remembered = [] { return std::string("[1]"); };
  fail_over();
  EXPECT_FALSE(line.has("beat_v1"));
  const FakeLine::Call call = line.take("recover_v1");
  EXPECT_EQ(call.arguments.at(2), "[1]");
  EXPECT_TRUE(membership->is_telling_again());
  std::map<std::int64_t, std::uint64_t> output;
  on_recovered = [&output](const Membership::Calls::Recovery& recovery) { output = recovery.output; };
  call.done(Result({"recover_v1"}, {{R"({"fenced":[31],"output":[[32,700]],"recovering":true})"}}));
  EXPECT_FALSE(membership->is_telling_again());
  EXPECT_EQ(fenced, std::vector<std::int64_t>{31});
  EXPECT_EQ(output, (std::map<std::int64_t, std::uint64_t>{{32, 700}}));
  EXPECT_FALSE(membership->may_claim()) << "others have not told yet";
  EXPECT_TRUE(line.has("beat_v1"));
}

TEST_F(MemberTest, ADaemonThatWasRestartedInAFailoverTellsBeforeItBeats) {
  join();
  make();
  line.calls.clear();
  EXPECT_EQ(greet(hello(2)), std::nullopt);
  membership->line_is_up();
  line.answer("attach_v1", R"({"worker":4,"name":"one","took_over":true,"recovering":true,"running":[]})");
  EXPECT_TRUE(membership->is_telling_again());
  EXPECT_FALSE(line.has("beat_v1"));
  line.answer("recover_v1", R"({"fenced":[],"output":[],"recovering":false})");
  EXPECT_FALSE(membership->is_telling_again());
  EXPECT_TRUE(line.has("beat_v1"));
}

TEST_F(MemberTest, ADaemonThatWasRestartedOnAServerThatKnowsAllTellsNothingAgain) {
  join();
  make();
  line.calls.clear();
  EXPECT_EQ(greet(hello()), std::nullopt);
  membership->line_is_up();
  line.answer("attach_v1", R"({"worker":4,"name":"one","took_over":true,"recovering":false,"running":[]})");
  EXPECT_FALSE(membership->is_telling_again());
  EXPECT_FALSE(line.has("recover_v1"));
}

TEST_F(MemberTest, ATakenNameIsARefusalThatSaysWhatHelps) {
  refuse_join(R"({"refused":"name-taken","worker":1,"known":false})");
  EXPECT_NE(membership->refusal().find("cluster forget one"), std::string::npos);
  EXPECT_FALSE(membership->is_joined());
  EXPECT_EQ(times_given_up, 1) << "what runs here is another's";
}

TEST_F(MemberTest, WhoIsNotToldWhetherItIsKnownGivesNothingUp) {
  refuse_join(R"({"refused":"name-taken"})");
  EXPECT_EQ(times_given_up, 0) << "it may have been its own call, cut off before";
}

TEST_F(MemberTest, ANewNameThatIsTakenLeavesItWhatItHas) {
  refuse_join(R"({"refused":"name-taken","worker":1,"known":true})");
  EXPECT_FALSE(membership->is_joined());
  EXPECT_EQ(times_given_up, 0) << "its row is still there, under the old name";
}

TEST_F(MemberTest, ALeaseThatIsShorterSinceARestartIsNotToldBeforeTheKeepersKnow) {
  join();
  make(true, 30s);
  line.calls.clear();
  EXPECT_EQ(greet(hello()), std::nullopt);
  membership->line_is_up();
  const FakeLine::Call attach = line.take("attach_v1");
  EXPECT_EQ(attach.arguments.at(5), Argument("90000")) << "keepers of the daemon before go by it";
  attach.done(Result({"attach_v1"}, {{R"({"worker":4,"name":"one","took_over":true,"running":[]})"}}));
  EXPECT_EQ(lease_until - boot, 30s);
  EXPECT_EQ(line.take("beat_v1").arguments.at(7), Argument("30000"));
}

TEST_F(MemberTest, ABeatWithWhatIsNoNameIsReadAllTheSame) {
  join();
  std::string odd = beat_text();
  odd.replace(odd.find(R"(["claude",)"), 10, R"([null,7,"claude",)");
  membership->beat_soon();
  line.answer("beat_v1", odd);
  EXPECT_TRUE(membership->is_agent_known("claude"));
  EXPECT_EQ(beats.size(), 2U);
}

// ---- due tasks of who runs none ----

TEST_F(MemberTest, WhoRunsNoTasksAsksAWorkerToLookForWhatBecomesDueSoon) {
  make(false);
  EXPECT_EQ(greet(hello()), std::nullopt);
  membership->line_is_up();
  line.answer("attach_v1", R"({"worker":4,"name":"one","took_over":false,"running":[]})");
  answer_beat(R"([{"id":4,"runs":false,"state":0},{"id":6,"runs":true,"state":0},{"id":8,"runs":true,"state":2}])");
  advance(20ms);
  advance(1s);
  line.calls.clear();
  membership->sweep_in(3s);
  membership->sweep_in(4s);
  advance(20ms);
  const FakeLine::Call asked = line.take("nudge_v1");
  EXPECT_EQ(asked.arguments.at(2), "6");
  EXPECT_EQ(asked.arguments.at(3), "due");
  EXPECT_FALSE(line.has("nudge_v1")) << "once for both";
  membership->sweep_in(5s);
  advance(20ms);
  EXPECT_FALSE(line.has("nudge_v1")) << "a sweep is more than a hint";
  advance(1s);
  line.take("nudge_v1");
  membership->sweep_in(1h);
  advance(2s);
  EXPECT_FALSE(line.has("nudge_v1")) << "every worker will know of it by then";
  EXPECT_FALSE(line.has("sweep_v1"));
}

TEST_F(MemberTest, WhoWantsToKnowWhatABeatBringsIsNotLeftWaitingIfNoneCanBeSent) {
  join();
  boot += 91s;  // its lease is over: it has to join anew first
  bool called = false;
  membership->after_beat([&called] { called = true; });
  EXPECT_FALSE(called);
  advance(2s);
  EXPECT_TRUE(called);
}

TEST_F(MemberTest, WhoItWasItShowsToAQueueWithAnotherName) {
  join();
  const std::string known = membership->incarnation();
  std::string other = hello();
  other.replace(other.find(R"("queue":"q")"), 11, R"("queue":"r")");
  EXPECT_EQ(greet(other), std::nullopt);
  membership->line_is_up();
  EXPECT_NE(line.take("attach_v1").arguments.at(2)->find(known), std::string::npos)
      << "it may have joined before it heard that name";
}

TEST_F(MemberTest, ALeaseThatBecameShorterIsNotToldBeforeTheKeepersKnow) {
  join();
  advance(40s);
  line.calls.clear();
  ClusterSettings shorter;
  shorter.name = "one";
  shorter.lease = 30s;
  shorter.lost_after = 60s;
  membership->change_settings(shorter);
  EXPECT_FALSE(line.has("attach_v1")) << "90 s were told with the last beat, and they are not over";
  boot += 91s;
  membership->line_is_up();
  const FakeLine::Call attach = line.take("attach_v1");
  EXPECT_EQ(attach.arguments.at(5), Argument("90000")) << "the keepers still go by it";
  EXPECT_EQ(attach.arguments.at(6), Argument("90000")) << "a shorter one is refused";
}

TEST_F(MemberTest, WhatBecameDueWhileTheLineWasDownIsLookedForWhenItIsBack) {
  join();
  if (line.has("sweep_v1")) line.answer("sweep_v1", R"({"ready":[],"nextDueMs":-1})");
  line.calls.clear();
  membership->line_is_down("it broke");
  membership->line_is_up();
  advance(3s);
  EXPECT_TRUE(line.has("sweep_v1"));
}

TEST_F(MemberTest, WhatBecomesDueDuringASweepIsSweptNext) {
  join();
  membership->sweep_in({});
  turn();
  const FakeLine::Call first = line.take("sweep_v1");
  membership->sweep_in({});
  turn();
  EXPECT_FALSE(line.has("sweep_v1"));
  first.done(Result({"sweep_v1"}, {{R"({"ready":[],"nextDueMs":-1})"}}));
  turn();
  EXPECT_TRUE(line.has("sweep_v1"));
}

TEST_F(MemberTest, ARoleThatMayNotEvenAskIsARefusal) {
  EXPECT_EQ(greet(hello()), std::nullopt);
  membership->line_is_up();
  line.fail("attach_v1", Fault::Kind::refused, "42501");
  EXPECT_NE(membership->refusal().find("duet_worker"), std::string::npos) << membership->refusal();
}

}  // namespace
}  // namespace duet::task::postgres
