#include "task/output_follower.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>

#include "duet/base/log_tape_test.h"
#include "task/run_record.h"
#include "task/store_fixture_test.h"

namespace duet::task {
namespace {

class OutputFollowerTest : public testing::Test, public Runner {
 protected:
  using Told = std::vector<std::pair<std::uint64_t, std::string>>;

  void start(const Assignment&) override {}
  void adopt(RunId) override {}
  void cancel(RunId) override {}
  void acknowledge(RunId) override {}
  std::optional<RunId> run_of_keeper(pid_t /*keeper*/) override { return std::nullopt; }
  std::optional<LeftRun> left_by(RunId /*run*/) override { return std::nullopt; }
  std::vector<RunId> outputs() override { return {}; }
  void remove_output(RunId /*run*/) override {}
  void follow(RunId, std::uint64_t offset) override { asked.push_back(offset); }

  void write(std::string_view bytes) {
    std::ofstream(folder.file(output_name(run)), std::ios::binary | std::ios::app) << bytes;
  }
  /// The output of this run cannot be read: a link is not followed.
  void hide_output() {
    hidden = folder.file(output_name(run));
    std::filesystem::rename(hidden, hidden + ".away");
    std::filesystem::create_symlink(hidden + ".away", hidden);
  }
  void show_output() const {
    std::filesystem::remove(hidden);
    std::filesystem::rename(hidden + ".away", hidden);
  }
  Told take() {
    for (int i = 0; i < 100; ++i) loop.turn(loop.now());
    return std::exchange(told, {});
  }

  template <typename Done>
  bool turn_until(base::Duration patience, Done done) {
    const auto deadline = loop.now() + patience;
    while (!done() && loop.now() < deadline) loop.turn(std::min(deadline, loop.now() + std::chrono::milliseconds(20)));
    return done();
  }
  Told take_until_told(base::Duration patience) {
    turn_until(patience, [&] { return !told.empty(); });
    return std::exchange(told, {});
  }
  transport::TemporaryFolder folder;
  transport::Loop loop;
  base::LogTape tape;
  base::Fd tasks = open_folder(folder.path());
  RunId run{7, 1};
  std::string hidden;
  bool wanted = true;
  std::optional<GoneOutput> gone_output = GoneOutput{};
  std::vector<std::uint64_t> asked;
  Told told;
  OutputFollower follower{loop,
                          tape.log(),
                          tasks.get(),
                          [this](RunId) { return gone_output; },
                          {.wants = [this](TaskId) { return wanted; },
                           .tell = [this](TaskId, std::uint64_t offset, Stream,
                                          std::string_view text) { told.emplace_back(offset, text); }}};
};

TEST_F(OutputFollowerTest, TellsWhatIsNewAndThenAsksForMore) {
  follower.add(*this, run, true);
  follower.began(run.task);
  write("hello");
  follower.more(run);
  write(" world");
  follower.more(run);
  EXPECT_EQ(take(), (Told{{0, "hello"}, {5, " world"}}));
  EXPECT_EQ(asked, (std::vector<std::uint64_t>{0, 5, 11}));
  follower.gone(run);
  EXPECT_EQ(take(), (Told{{11, ""}}));
}

TEST_F(OutputFollowerTest, WaitsForTheRestOfACharacterWithoutAskingForWhatIsThere) {
  follower.add(*this, run, true);
  follower.began(run.task);
  write("a\xE2\x82");
  follower.more(run);
  EXPECT_EQ(take(), (Told{{0, "a"}}));
  EXPECT_EQ(asked.back(), 3U);
  write("\xAC");
  follower.more(run);
  EXPECT_EQ(take(), (Told{{1, "\u20ac"}}));
}

TEST_F(OutputFollowerTest, AtTheEndTellsEverythingInPieces) {
  follower.add(*this, run, true);
  follower.began(run.task);
  write(std::string(150'000, 'x') + "\xE2");
  follower.gone(run);
  const Told all = take();
  ASSERT_EQ(all.size(), 4U);
  EXPECT_EQ(all[1].first, 65536U);
  EXPECT_EQ(all[2].second.back(), '\xE2');
  EXPECT_EQ(all[3], (std::pair<std::uint64_t, std::string>(150'001, "")));
}

TEST_F(OutputFollowerTest, WhatCameBeforeSomebodyWantedItIsNotTold) {
  wanted = false;
  follower.add(*this, run, true);
  follower.began(run.task);
  write("before");
  wanted = true;
  follower.audience_changed();
  follower.audience_changed();
  EXPECT_EQ(asked, (std::vector<std::uint64_t>{6}));
  write("after");
  follower.more(run);
  EXPECT_EQ(take(), (Told{{6, "after"}}));
  wanted = false;
  write("more");
  follower.more(run);
  EXPECT_EQ(take(), (Told{}));
  EXPECT_EQ(asked.size(), 2U);
}

TEST_F(OutputFollowerTest, OffsetsGoOnInTheNextAttempt) {
  write("first");
  run.attempt = 2;
  follower.add(*this, run, true);
  follower.began(run.task);
  write("second");
  follower.more(run);
  EXPECT_EQ(take(), (Told{{5, "second"}}));
}

TEST_F(OutputFollowerTest, OffsetsGoOnBehindOutputThatWasLetGo) {
  run.attempt = 2;
  write("second");
  run.attempt = 3;
  gone_output.reset();  // it cannot be read now
  follower.add(*this, run, true);
  follower.began(run.task);
  write("third");
  follower.more(run);
  EXPECT_EQ(take(), (Told{}));
  gone_output = {.attempts = 1, .bytes = 100};
  EXPECT_EQ(take_until_told(std::chrono::seconds(20)), (Told{{106, "third"}}));
}

TEST_F(OutputFollowerTest, OutputComesAfterTheNewsThatTheTaskRuns) {
  follower.add(*this, run, true);
  write("hello");
  follower.more(run);
  EXPECT_EQ(take(), (Told{}));
  follower.began(run.task);
  EXPECT_EQ(take(), (Told{{0, "hello"}}));
}

TEST_F(OutputFollowerTest, ATaskThatIsGoneBeforeThatNewsIsToldInFull) {
  follower.add(*this, run, true);
  write("hello");
  follower.gone(run);
  EXPECT_EQ(take(), (Told{}));
  follower.began(run.task);
  EXPECT_EQ(take(), (Told{{0, "hello"}, {5, ""}}));
}

TEST_F(OutputFollowerTest, WhatCannotBeReadIsTriedAgainInASecondAndLoggedOnce) {
  write("hello");
  hide_output();
  follower.add(*this, run, true);
  follower.began(run.task);
  for (int i = 0; i < 20; ++i) follower.more(run);
  EXPECT_EQ(take(), (Told{}));
  EXPECT_EQ(asked, (std::vector<std::uint64_t>{0}));  // a keeper would answer at once
  follower.gone(run);
  EXPECT_EQ(take_until_told(std::chrono::milliseconds(1500)), (Told{}));
  show_output();
  EXPECT_EQ(take_until_told(std::chrono::seconds(20)), (Told{{0, "hello"}, {5, ""}}));
  EXPECT_EQ(tape.lines().size(), 1U);
}

TEST_F(OutputFollowerTest, ACharacterThatAGapCutsHoldsNothingUp) {
  const RunRecord record = RunRecord::create(tasks.get(), run, "nobody");
  write(std::string("a\xE2\x82") + std::string(4, '\0') + "rest");
  Extent extent{.capacity = 1000, .total = 11};
  extent.drop({3, 7});
  ASSERT_TRUE(record.write_extent(extent, 1));
  follower.add(*this, run, true);
  follower.began(run.task);
  for (int i = 0; i < 4; ++i) follower.more(run);
  follower.gone(run);
  EXPECT_EQ(take(), (Told{{0, "a"}, {1, "\xE2\x82"}, {7, "rest"}, {11, ""}}));
}

// It asks for more by itself, also if it could not be placed at first.
TEST_F(OutputFollowerTest, AnAttemptThatHadToWaitIsFollowedWhileItRuns) {
  write("first");
  hide_output();
  follower.add(*this, run, true);
  follower.began(run.task);
  follower.gone(run);
  run = {7, 2};
  follower.add(*this, run, true);
  follower.began(run.task);
  EXPECT_EQ(take(), (Told{}));
  write("second");
  show_output();
  turn_until(std::chrono::seconds(60), [&] { return told.size() == 3; });
  EXPECT_EQ(told, (Told{{0, "first"}, {5, ""}, {5, "second"}}));
  EXPECT_EQ(asked.back(), 6U);
}

TEST_F(OutputFollowerTest, AnAttemptIsToldWhenAllOfTheOneBeforeIsTold) {
  write("first");
  hide_output();
  follower.add(*this, run, true);
  follower.began(run.task);
  follower.gone(run);
  run = {7, 2};
  follower.add(*this, run, true);
  follower.began(run.task);
  write("second");
  follower.more(run);
  follower.gone(run);
  EXPECT_EQ(take(), (Told{}));
  show_output();
  turn_until(std::chrono::seconds(60), [&] { return told.size() == 4; });
  EXPECT_EQ(told, (Told{{0, "first"}, {5, ""}, {5, "second"}, {11, ""}}));
}

TEST_F(OutputFollowerTest, TheEndOfWhatIsErasedMeanwhileIsWhereItWasLeft) {
  write("hello");
  follower.add(*this, run, true);
  follower.began(run.task);
  follower.more(run);
  EXPECT_EQ(take(), (Told{{0, "hello"}}));
  std::filesystem::remove(folder.file(output_name(run)));
  follower.gone(run);
  EXPECT_EQ(take(), (Told{{5, ""}}));
}

TEST_F(OutputFollowerTest, WhereARunGoesOnIsFoundOutWhenItCanBeRead) {
  write("before");
  hide_output();
  follower.add(*this, run, false);
  follower.began(run.task);
  EXPECT_TRUE(asked.empty());
  show_output();
  EXPECT_TRUE(turn_until(std::chrono::seconds(60), [&] { return !asked.empty(); }));
  EXPECT_EQ(asked.front(), 6U);
  write("after");
  follower.more(run);
  EXPECT_EQ(take(), (Told{{6, "after"}}));
}

TEST_F(OutputFollowerTest, ARunThatNeverBeganLeavesNothing) {
  follower.add(*this, run, true);
  follower.drop(run);
  EXPECT_EQ(take(), (Told{}));
  follower.add(*this, run, true);
  follower.began(run.task);
  EXPECT_EQ(take(), (Told{}));
  write("hello");
  follower.more(run);
  EXPECT_EQ(take(), (Told{{0, "hello"}}));
}

}  // namespace
}  // namespace duet::task
