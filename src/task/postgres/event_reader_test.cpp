#include "task/postgres/event_reader.h"

#include "task/postgres/member_fixture_test.h"

namespace duet::task::postgres {
namespace {

class EventReaderTest : public MemberTest {
 protected:
  EventReaderTest() {
    join();
    line.calls.clear();
    journal.add_reader([this](const Event& event) { told.push_back(event.seq); });
    reader.emplace(loop, line, *membership, journal,
                   EventReader::Calls{.began_anew = [this] { ++anew; }, .became_current = [this] { ++current; }});
  }

  static std::string state(std::uint64_t next, const std::string& epoch = "e", std::uint64_t oldest = 1) {
    return R"({"epoch":")" + epoch + R"(","oldest":)" + std::to_string(oldest) + R"(,"next":)" + std::to_string(next) +
           R"(,"unnumbered":false})";
  }
  static Result::Row event(std::uint64_t seq, TaskId task = 0, const std::string& task_state = {}) {
    const std::string record = R"({"agent":"shell","group":"g","metadata":"{}","state":)" + task_state + "}";
    return {std::to_string(seq),
            "taskStarted",
            std::to_string(task),
            "{}",
            "1000",
            task_state.empty() ? std::nullopt : std::optional(record)};
  }
  static Result rows(const std::vector<Result::Row>& rows) {
    return {{"seq", "kind", "task", "params", "arrived_ms", "record"}, rows};
  }
  static Result from_to(std::uint64_t first, std::uint64_t last) {
    std::vector<Result::Row> events;
    for (std::uint64_t seq = first; seq <= last; ++seq) events.push_back(event(seq));
    return rows(events);
  }
  void answer_state(std::uint64_t next, const std::string& epoch = "e", std::uint64_t oldest = 1) {
    line.answer("number_v1", "0");
    line.answer("read_events_state_v1", state(next, epoch, oldest));
  }
  void answer_events(const Result& events) { line.take("read_events_v1").done(events); }
  bool is_asking() const { return line.has("read_events_state_v1"); }
  bool is_reading() const { return line.has("read_events_v1"); }
  /// Wanted, and at the end of what there is.
  void be_current(std::uint64_t next = 5) {
    reader->set_wanted(true);
    answer_state(next);
    answer_events(rows({}));
  }
  std::shared_ptr<bool> prepare(std::optional<std::uint64_t> first) {
    auto done = std::make_shared<bool>(false);
    journal.prepare(first, [done] { *done = true; });
    return done;
  }

  Journal journal{Journal::Limits{}};
  std::vector<std::uint64_t> told;
  int anew = 0;
  int current = 0;
  std::optional<EventReader> reader;
};

TEST_F(EventReaderTest, ReadsNothingUntilSomebodyWantsIt) {
  advance(1min);
  EXPECT_FALSE(is_asking());
  EXPECT_FALSE(journal.is_current());
  reader->set_wanted(true);
  EXPECT_TRUE(line.channels.contains("duet_events"));
  answer_state(5);
  EXPECT_TRUE(journal.is_current());
  EXPECT_EQ(journal.next(), 5U);
  EXPECT_EQ(anew, 0) << "there was nothing before";
  EXPECT_EQ(current, 1);
  reader->set_wanted(false);
  EXPECT_TRUE(journal.is_current()) << "short visits often follow one another";
  advance(3s);
  EXPECT_FALSE(line.channels.contains("duet_events"));
  EXPECT_FALSE(journal.is_current());
}

TEST_F(EventReaderTest, WhatTheFirstClientChangesWaitsForItsPlace) {
  int changes = 0;
  const auto change = [&] { reader->after_placing([&] { ++changes; }); };
  reader->set_wanted(true);
  const auto placed = prepare(std::nullopt);
  change();
  EXPECT_EQ(changes, 0) << "its event might be numbered before the place is known";
  answer_state(5);
  EXPECT_TRUE(*placed);
  EXPECT_EQ(changes, 1);
  change();
  EXPECT_EQ(changes, 2);
}

TEST_F(EventReaderTest, NoChangeWaitsLongForAPlace) {
  int changes = 0;
  reader->set_wanted(true);
  reader->after_placing([&] { ++changes; });
  advance(1s);
  EXPECT_EQ(changes, 1);
  answer_state(5);
  EXPECT_EQ(changes, 1);
}

TEST_F(EventReaderTest, AWakeUpBringsWhatIsNew) {
  be_current();
  reader->look();
  EXPECT_EQ(line.calls.back().arguments.at(0), "4");
  answer_events(from_to(5, 7));
  EXPECT_EQ(told, (std::vector<std::uint64_t>{5, 6, 7}));
  EXPECT_EQ(journal.at(6).params, R"({"seq":6})");
  EXPECT_FALSE(is_reading());
}

TEST_F(EventReaderTest, AWakeUpDuringAReadIsFollowedByAnother) {
  be_current();
  reader->look();
  reader->look();
  answer_events(from_to(5, 5));
  ASSERT_TRUE(is_reading());
  answer_events(from_to(6, 6));
  EXPECT_FALSE(is_reading());
  EXPECT_EQ(told, (std::vector<std::uint64_t>{5, 6}));
}

TEST_F(EventReaderTest, AFullPortionIsFollowedByTheNext) {
  be_current();
  reader->look();
  answer_events(from_to(5, 1004));
  ASSERT_TRUE(is_reading());
  answer_events(rows({}));
  EXPECT_EQ(told.size(), 1000U);
}

TEST_F(EventReaderTest, WithoutAWakeUpItLooksNowAndThen) {
  be_current();
  advance(5s);
  EXPECT_TRUE(is_reading());
  answer_events(rows({}));
  line.listens = false;
  advance(5s);
  answer_events(rows({}));
  advance(1s);
  EXPECT_TRUE(is_reading());
}

TEST_F(EventReaderTest, AStateThatCouldNotBeAskedForIsAskedForAgain) {
  reader->set_wanted(true);
  line.fail("read_events_state_v1", Fault::Kind::unknown);
  EXPECT_FALSE(journal.is_current());
  line.calls.clear();
  advance(5s);
  ASSERT_TRUE(is_asking());
  answer_state(5);
  EXPECT_TRUE(journal.is_current());
  EXPECT_TRUE(is_reading());
}

TEST_F(EventReaderTest, AReadThatFailedIsTriedAgain) {
  be_current();
  reader->look();
  line.fail("read_events_v1", Fault::Kind::unknown);
  EXPECT_FALSE(is_reading());
  advance(5s);
  answer_events(from_to(5, 5));
  EXPECT_EQ(told, std::vector<std::uint64_t>{5});
}

TEST_F(EventReaderTest, AJournalThatBeginsAnewDuringAReadIsReadOn) {
  be_current();
  reader->look();
  const FakeLine::Call read = line.take("read_events_v1");
  reader->set_wanted(false);
  advance(3s);
  reader->set_wanted(true);
  answer_state(9);
  EXPECT_FALSE(is_reading()) << "one read at a time";
  read.done(from_to(5, 8));
  EXPECT_TRUE(told.empty()) << "what happened while nobody wanted it is not told";
  ASSERT_TRUE(is_reading());
  EXPECT_EQ(line.calls.back().arguments.at(0), "8");
  answer_events(from_to(9, 9));
  EXPECT_EQ(told, std::vector<std::uint64_t>{9});
}

TEST_F(EventReaderTest, EventsThatWentBeforeTheyWereReadAreTold) {
  be_current();
  reader->look();
  answer_events(from_to(50, 52));
  EXPECT_TRUE(told.empty());
  EXPECT_EQ(anew, 1);
  answer_state(53);
  EXPECT_EQ(anew, 1) << "once";
  EXPECT_EQ(journal.next(), 53U);
  EXPECT_TRUE(journal.is_current());
}

TEST_F(EventReaderTest, AnotherEpochBeginsAnew) {
  be_current();
  EXPECT_EQ(greet(hello(2, R"(,"epoch":"f")").replace(hello(2).find(R"("epoch":"e",)"), 12, "")), std::nullopt);
  line.calls.clear();
  reader->look();
  answer_state(1000005, "f", 1000003);
  EXPECT_EQ(anew, 1);
  EXPECT_EQ(journal.epoch(), "f");
  EXPECT_EQ(journal.next(), 1000003U) << "none of its events is passed over";
  EXPECT_TRUE(is_reading());
}

TEST_F(EventReaderTest, AnEpochThatBeganWhileNobodyWantedItsEventsIsNotToldFromItsBeginning) {
  be_current();
  reader->set_wanted(false);
  advance(3s);
  reader->set_wanted(true);
  answer_state(1000005, "f", 1000003);
  EXPECT_EQ(journal.next(), 1000005U);
}

TEST_F(EventReaderTest, AnEpochThatABeatHasNotToldOfYetIsNotAskedForAgainAndAgain) {
  reader->set_wanted(true);
  answer_state(1000005, "f");
  EXPECT_EQ(journal.epoch(), "f");
  EXPECT_FALSE(is_asking());
  EXPECT_TRUE(is_reading());
}

TEST_F(EventReaderTest, WhoWaitsForTheJournalIsToldWhateverBecomesOfTheQuestion) {
  const auto first = prepare(std::nullopt);
  EXPECT_FALSE(*first);
  line.fail("read_events_state_v1", Fault::Kind::unknown);
  EXPECT_TRUE(*first);
  const auto second = prepare(std::nullopt);
  reader->line_is_down();
  EXPECT_TRUE(*second);
  line.up = false;
  EXPECT_TRUE(*prepare(1));
}

TEST_F(EventReaderTest, OlderEventsAreFetchedAPortionAtATimeFromTheNewestBack) {
  be_current(2501);
  const auto done = prepare(300);
  EXPECT_EQ(line.calls.back().arguments, (std::vector<Argument>{"1500", "1000"}));
  answer_events(from_to(1501, 2500));
  EXPECT_EQ(line.calls.back().arguments, (std::vector<Argument>{"500", "1000"}));
  answer_events(from_to(501, 1500));
  EXPECT_EQ(line.calls.back().arguments, (std::vector<Argument>{"299", "201"}));
  EXPECT_FALSE(*done);
  answer_events(from_to(300, 500));
  EXPECT_TRUE(*done);
  EXPECT_EQ(journal.oldest(), 300U);
  EXPECT_TRUE(told.empty()) << "they are not new";
}

TEST_F(EventReaderTest, WhatIsNotKeptAnyMoreIsNotWaitedFor) {
  be_current(2501);
  const auto done = prepare(1);
  answer_events(from_to(2000, 2500));
  EXPECT_TRUE(*done);
  EXPECT_EQ(journal.oldest(), 2000U);
  const auto again = prepare(1);
  line.fail("read_events_v1", Fault::Kind::unknown);
  EXPECT_TRUE(*again);
}

TEST_F(EventReaderTest, EventsThatComeDuringAFetchAreBehindWhatIsFetched) {
  be_current(11);
  const auto done = prepare(1);
  const FakeLine::Call fetch = line.take("read_events_v1");
  reader->look();
  answer_events(from_to(11, 12));
  fetch.done(from_to(1, 10));
  EXPECT_TRUE(*done);
  EXPECT_EQ(journal.oldest(), 1U);
  EXPECT_EQ(journal.next(), 13U);
  for (std::uint64_t seq = 1; seq < 13; ++seq) EXPECT_EQ(journal.at(seq).seq, seq);
}

TEST_F(EventReaderTest, WhatTheJournalHasNoRoomForIsNotFetchedWithoutEnd) {
  be_current(3001);
  const auto done = prepare(1);
  answer_events(from_to(2001, 3000));
  ASSERT_FALSE(*done);
  reader->look();
  const FakeLine::Call fetch = line.take("read_events_v1");
  Result::Row large = event(3001);
  large.at(3) = R"({"text":")" + std::string(Journal::Limits{}.bytes, 'x') + R"("})";
  answer_events(rows({large}));
  EXPECT_EQ(journal.oldest(), 3001U) << "all that was fetched went again";
  fetch.done(from_to(1001, 2000));
  EXPECT_TRUE(*done);
  EXPECT_FALSE(is_reading());
}

TEST_F(EventReaderTest, EventsAreReadOnAfterAFault) {
  reader->set_wanted(true);
  line.lose("read_events_state_v1");
  line.calls.clear();
  advance(5s);
  answer_state(5);
  line.lose("read_events_v1");
  advance(5s);
  line.has_no_memory = true;
  Result::Row late = event(5);
  late.at(4) = "900000";  // it is written down that such a one was seen
  EXPECT_THROW(answer_events(rows({late})), std::bad_alloc);
  EXPECT_THROW(advance(5s), std::bad_alloc);
  line.has_no_memory = false;
  advance(5s);
  answer_events(from_to(5, 5));
  EXPECT_EQ(told, std::vector<std::uint64_t>{5});
}

TEST_F(EventReaderTest, ATaskThatAnEventToldOfIsKnown) {
  be_current();
  reader->look();
  answer_events(rows({event(5, 7, "1"), event(6, 8)}));
  ASSERT_NE(reader->known(7), nullptr);
  EXPECT_EQ(reader->known(7)->value().progress.state, State::running);
  EXPECT_EQ(reader->known(7)->value().group, "g");
  ASSERT_NE(reader->known(8), nullptr);
  EXPECT_FALSE(*reader->known(8)) << "it was removed";
  EXPECT_EQ(reader->known(9), nullptr);
}

TEST_F(EventReaderTest, WhatIsReadOfThePastHidesNothingThatHasHappenedSince) {
  be_current();
  reader->look();
  answer_events(rows({event(5, 7, "2")}));
  const auto done = prepare(1);
  answer_events(rows({event(1, 7, "1"), event(2), event(3), event(4)}));
  ASSERT_TRUE(*done);
  reader->read(0, 2, [](const auto& /*events*/) {});
  answer_events(rows({event(1, 7, "1"), event(2, 8, "1")}));
  EXPECT_EQ(reader->known(7)->value().progress.state, State::completed);
  ASSERT_NE(reader->known(8), nullptr) << "rules that catch up ask of it";
  EXPECT_EQ(reader->known(8)->value().progress.state, State::running);
}

TEST_F(EventReaderTest, OnlyTheLatestTasksAreKnown) {
  be_current(1);
  reader->look();
  for (std::uint64_t from = 1; from <= 5001; from += 1000) {
    std::vector<Result::Row> events;
    for (std::uint64_t seq = from; seq < from + 1000; ++seq) events.push_back(event(seq, seq, "2"));
    answer_events(rows(events));
  }
  EXPECT_EQ(reader->known(1), nullptr);
  EXPECT_EQ(reader->known(6000 - 4096), nullptr);
  EXPECT_NE(reader->known(6000 - 4095), nullptr);
  EXPECT_NE(reader->known(6000), nullptr);
}

}  // namespace
}  // namespace duet::task::postgres
