#include "task/journal.h"

#include <gtest/gtest.h>

#include "task/store_fixture_test.h"

namespace duet::task {
namespace {

using Numbers = std::vector<std::uint64_t>;

class JournalTest : public testing::Test {
 protected:
  void open(Journal::Limits limits = {}) {
    journal.reset();
    box.open();
    journal.emplace(*box.store, limits);
    journal->add_reader([this](const Event& event) { told.push_back(event.seq); });
  }
  void SetUp() override { open(); }
  void TearDown() override { journal.reset(); }

  Change telling(std::string params, std::optional<bool>& answer, Change::Kind kind = Change::Kind::request) {
    return {.apply = [params = std::move(params)](
                         StoreWriter& writer) { writer.tell("notice", 7, rpc::ObjectText(params)); },
            .done = [&answer](bool kept) { answer = kept; },
            .kind = kind};
  }
  bool tell(const std::string& params = "{}") {
    std::optional<bool> answer;
    box.store->write(telling(params, answer));
    return box.turn_until([&] { return answer.has_value(); }) && *answer;
  }
  std::uint64_t oldest_in_store() {
    std::uint64_t oldest = 0;
    EXPECT_TRUE(box.store->read(
        [&](StoreReader& reader) { reader.events_after(0, 1, [&](const Event& event) { oldest = event.seq; }); }));
    return oldest;
  }

  StoreBox box;
  std::optional<Journal> journal;
  Numbers told;
};

TEST_F(JournalTest, AnEventIsToldWhenItIsCommittedWithItsNumber) {
  std::optional<bool> answer;
  box.store->write(telling(R"({"a":1})", answer));
  EXPECT_EQ(told, Numbers{});
  ASSERT_TRUE(box.turn_until([&] { return answer.has_value(); }));
  ASSERT_TRUE(tell());
  EXPECT_EQ(told, (Numbers{1, 2}));
  EXPECT_EQ(journal->at(1).params, R"({"a":1,"seq":1})");
  EXPECT_EQ(journal->at(2).params, R"({"seq":2})");
  EXPECT_EQ(journal->at(1).task, 7U);
}

TEST_F(JournalTest, WhatWasRefusedIsNeverToldAndItsNumberIsGivenAgain) {
  ASSERT_TRUE(tell());
  box.write_fault = SQLITE_FULL;
  EXPECT_FALSE(tell());
  box.write_fault = SQLITE_OK;
  box.sync_fault = SQLITE_IOERR_FSYNC;
  EXPECT_FALSE(tell());
  box.sync_fault = SQLITE_OK;
  ASSERT_TRUE(tell());
  EXPECT_EQ(told, (Numbers{1, 2}));
}

TEST_F(JournalTest, AFactIsToldOnceWhenItCanBeWritten) {
  box.write_fault = SQLITE_FULL;
  std::optional<bool> answer;
  box.store->write(telling("{}", answer, Change::Kind::fact));
  EXPECT_FALSE(tell());
  EXPECT_EQ(told, Numbers{});
  box.write_fault = SQLITE_OK;
  ASSERT_TRUE(box.turn_until([&] { return answer.has_value(); }));
  EXPECT_EQ(told, (Numbers{1}));
}

TEST_F(JournalTest, NumbersAndEpochGoOnInTheNextDaemon) {
  ASSERT_TRUE(tell());
  ASSERT_TRUE(tell(R"({"last":true})"));
  const std::string epoch = journal->epoch();
  EXPECT_EQ(epoch.size(), 16U);
  open();
  EXPECT_EQ(journal->epoch(), epoch);
  EXPECT_EQ(journal->oldest(), 1U);
  EXPECT_EQ(journal->next(), 3U);
  EXPECT_EQ(journal->at(2).params, R"({"last":true,"seq":2})");
  ASSERT_TRUE(tell());
  EXPECT_EQ(told.back(), 3U);
}

TEST_F(JournalTest, ANewStoreIsANewEpoch) {
  const std::string epoch = journal->epoch();
  StoreBox other;
  other.open();
  EXPECT_NE(Journal(*other.store).epoch(), epoch);
}

TEST_F(JournalTest, TheOldestGoFromMemoryAndFromTheStore) {
  open({.bytes = 20'000});
  for (int round = 0; round < 12; ++round) {
    std::vector<std::optional<bool>> answers(200);
    for (auto& answer : answers) box.store->write(telling("{}", answer));
    ASSERT_TRUE(box.turn_until([&] { return answers.back().has_value(); }));
  }
  EXPECT_EQ(journal->next(), 2401U);
  EXPECT_GT(journal->oldest(), 2000U);
  ASSERT_TRUE(box.turn_until([&] { return oldest_in_store() > 1000; }));
  EXPECT_LE(oldest_in_store(), journal->oldest());
  open({.bytes = 20'000});
  EXPECT_EQ(journal->next(), 2401U);
  EXPECT_GT(journal->oldest(), 2000U);
}

TEST_F(JournalTest, WhatEarlierDaemonsLeftInTheStoreGoesToo) {
  for (int daemon = 0; daemon < 5; ++daemon) {
    open({.bytes = 2'000, .removed_at_once = 100});
    for (int i = 0; i < 60; ++i) ASSERT_TRUE(tell());
  }
  ASSERT_TRUE(box.turn_until([&] { return oldest_in_store() > 100; }));
  EXPECT_LE(oldest_in_store(), journal->oldest());
}

TEST_F(JournalTest, AnEventThatIsLargerThanTheLimitIsStillKept) {
  open({.bytes = 10});
  ASSERT_TRUE(tell(R"({"text":")" + std::string(1000, 'x') + R"("})"));
  EXPECT_EQ(journal->oldest(), 1U);
  ASSERT_TRUE(tell());
  EXPECT_EQ(journal->oldest(), 2U);
}

TEST_F(JournalTest, ChangeAndEventAreOneTransaction) {
  std::optional<bool> answer;
  box.store->write({.apply =
                        [](StoreWriter& writer) {
                          writer.remember("state", "new");
                          writer.tell("notice", 0, {});
                        },
                    .done = [&](bool kept) { answer = kept; }});
  box.store->write({.apply = [](StoreWriter& /*writer*/) { throw SqliteError(SQLITE_FULL, "no room for the next"); }});
  ASSERT_TRUE(box.turn_until([&] { return answer.has_value(); }));
  EXPECT_EQ(answer, false);
  EXPECT_EQ(box.store->read([](StoreReader& reader) { return reader.recall("state"); }).value(), std::nullopt);
  EXPECT_EQ(oldest_in_store(), 0U);
}

}  // namespace
}  // namespace duet::task
