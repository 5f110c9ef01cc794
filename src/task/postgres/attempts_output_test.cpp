#include <filesystem>

#include "task/postgres/attempts_fixture_test.h"

// How the output of attempts goes to the database, and before which end.

namespace duet::task::postgres {
namespace {

constexpr std::size_t mebibyte = std::size_t{1} << 20U;

class AttemptsOutputTest : public AttemptsTest {
 protected:
  /// A bound that is more than one report holds.
  void keep_much() {
    make_attempts(16 * mebibyte);
    attempts->joined({});
  }
  /// Answers report after report, until the end of that one was told; false if that does not come.
  bool take_until_end_of(TaskId task) {
    for (int i = 0; i < 100; ++i) {
      if (!is_reporting()) advance(500ms);
      if (!is_reporting()) continue;
      const FakeLine::Call call = line.take("report_v1");
      const ReportTold told(call.arguments);
      for (const ReportTold::Piece& piece : told.pieces) {
        if (piece.offset > kept[piece.task].size()) return false;
        kept[piece.task].replace(piece.offset, piece.bytes.size(), piece.bytes);
        if (piece.last) closed.push_back(piece.task);
      }
      for (const TaskId start : told.starts) starts.push_back(start);
      largest = std::max(largest, call.arguments.at(21).value_or("").size());
      std::vector<Result::Row> answered;
      for (std::size_t at = 0; at < told.ends.size(); ++at) answered.push_back(end(told.ends[at], told.fences[at]));
      call.done(rows(answered));
      if (told.has_end(task)) return true;
    }
    return false;
  }

  /// It runs, and its start was told.
  void run_seven() {
    have({claim(7, 31)});
    started(seven);
    advance(10ms);
    answer({});
  }
  /// What is in its place can be opened, and not read.
  void hide_output() const {
    std::filesystem::rename(output_file, output_file + ".away");
    std::filesystem::create_directory(output_file);
  }
  void show_output() const {
    std::filesystem::remove(output_file);
    std::filesystem::rename(output_file + ".away", output_file);
  }
  /// Answers all that is told meanwhile.
  bool tells_end_within(base::Duration time) {
    bool has_end = false;
    for (base::Duration passed = 0s; passed < time; passed += 500ms) {
      while (is_reporting()) {
        const FakeLine::Call call = line.take("report_v1");
        has_end = has_end || !ReportTold(call.arguments).ends.empty();
        call.done(rows({}));
      }
      advance(500ms);
    }
    while (is_reporting()) answer({});
    return has_end;
  }

  const std::string output_file = folder.file(output_name(seven));
  std::map<TaskId, std::string> kept;
  std::vector<TaskId> starts;
  std::vector<TaskId> closed;
  std::size_t largest = 0;
};

TEST_F(AttemptsOutputTest, OutputGoesWhileItRunsAndTheRestWithTheEnd) {
  run_seven();
  write_output(seven, "one ");
  advance(500ms);
  const FakeLine::Call call = line.take("report_v1");
  ASSERT_EQ(ReportTold(call.arguments).pieces.size(), 1U);
  EXPECT_FALSE(ReportTold(call.arguments).pieces.front().last);
  call.done(rows({}));
  write_output(seven, "two");
  exited(seven);
  const ReportTold told = report();
  ASSERT_EQ(told.pieces.size(), 1U);
  EXPECT_EQ(told.pieces.front().offset, 4U);
  EXPECT_EQ(told.pieces.front().bytes, "two");
  EXPECT_TRUE(told.pieces.front().last);
  EXPECT_TRUE(told.has_end(7));
}

TEST_F(AttemptsOutputTest, OutputOfAReportThatWasLostGoesAgain) {
  have({claim(7, 31)});
  started(seven);
  write_output(seven, "one");
  exited(seven);
  line.fail("report_v1", Fault::Kind::unknown);
  advance(1s);
  const ReportTold told = report();
  ASSERT_EQ(told.pieces.size(), 1U);
  EXPECT_EQ(told.pieces.front().offset, 0U);
  EXPECT_EQ(told.pieces.front().bytes, "one");
}

TEST_F(AttemptsOutputTest, AnEndBeforeItsStartWasToldWithMoreOutputThanOneReportHoldsComesWhole) {
  keep_much();
  have({claim(7, 31)});
  std::string written(5 * mebibyte, 'x');
  for (std::size_t at = 0; at < written.size(); at += 1000) written[at] = static_cast<char>('a' + at / 1000 % 26);
  write_output(seven, written);
  started(seven);
  exited(seven);
  tell.gone(seven);
  ASSERT_TRUE(take_until_end_of(7));
  EXPECT_TRUE(kept[7] == written);
  EXPECT_EQ(starts, std::vector<TaskId>{7});
  EXPECT_EQ(closed, std::vector<TaskId>{7});
  EXPECT_LT(largest, 8 * mebibyte) << "a report has a bound";
  EXPECT_TRUE(attempts->is_empty());
}

TEST_F(AttemptsOutputTest, AnEndWithoutAStartWaitsForNoOutputThatCannotGoBefore) {
  keep_much();
  have({claim(7, 31)});
  write_output(seven, std::string(5 * mebibyte, 'x'));
  tell.ended(seven, {.kind = Outcome::Kind::lost, .ended_at = clock.utc()});
  tell.gone(seven);
  EXPECT_TRUE(take_until_end_of(7));
  EXPECT_TRUE(attempts->is_empty());
}

TEST_F(AttemptsOutputTest, OneThatWritesWithoutEndDoesNotKeepAnothersEndBack) {
  keep_much();
  have({claim(7, 31), claim(8, 32)});
  started(seven);
  started(eight);
  write_output(seven, std::string(6 * mebibyte, 'y'));
  write_output(eight, std::string(5 * mebibyte, 'x'));
  exited(eight);
  tell.gone(eight);
  ASSERT_TRUE(take_until_end_of(8));
  EXPECT_EQ(kept[8].size(), 5 * mebibyte);
  EXPECT_LE(kept[7].size(), mebibyte) << "whose end waits comes first";
}

TEST_F(AttemptsOutputTest, ManyEndsOfMuchOutputAreNotOneReport) {
  settings.max_running = 3;
  std::vector<Result::Row> claims;
  for (TaskId id = 1; id <= 3; ++id) claims.push_back(claim(id, static_cast<std::int64_t>(30 + id)));
  have(claims);
  line.up = false;
  for (TaskId id = 1; id <= 3; ++id) {
    write_output({id, 1}, std::string(2 * mebibyte + 100'000, 'x'));
    started({id, 1});
    exited({id, 1});
    tell.gone({id, 1});
  }
  line.up = true;
  advance(500ms);
  const FakeLine::Call call = line.take("report_v1");
  const ReportTold told(call.arguments);
  EXPECT_EQ(told.ends.size(), 2U);
  EXPECT_EQ(told.starts.size(), 1U) << "the other is at least known to have begun";
  call.done(rows({end(1, 31), end(2, 32)}));
  ASSERT_TRUE(is_reporting()) << "and what is left goes at once";
  EXPECT_EQ(report().ends, std::vector<TaskId>{3});
}

TEST_F(AttemptsOutputTest, AnEndWaitsForOutputThatCannotBeReadAndTheRestIsToldAsDropped) {
  run_seven();
  write_output(seven, "one ");
  advance(500ms);
  answer({});
  hide_output();
  tell.ended(seven, {.kind = Outcome::Kind::exited,
                     .started = Started{100, clock.utc()},
                     .ended_at = clock.utc(),
                     .usage = Usage{.output_bytes = 9}});
  EXPECT_FALSE(tells_end_within(29s));
  advance(2s);
  const FakeLine::Call call = line.take("report_v1");
  ASSERT_TRUE(ReportTold(call.arguments).has_end(7)) << "it keeps no end back for ever";
  EXPECT_NE(call.arguments.at(21)->find(R"("total":9,"dropped":[[4,9]],"last":true)"), std::string::npos)
      << *call.arguments.at(21);
}

TEST_F(AttemptsOutputTest, AnEndGoesWhenItsOutputCanBeReadAgain) {
  run_seven();
  write_output(seven, "all");
  hide_output();
  exited(seven);
  EXPECT_FALSE(tells_end_within(1s));
  show_output();
  EXPECT_TRUE(take_until_end_of(7));
  EXPECT_EQ(kept[7], "all");
}

TEST_F(AttemptsOutputTest, OutputOfALostAttemptThatNoConnectionTakesAtOnceIsDroppedAndNothingWaitsForIt) {
  make_attempts(64 * mebibyte);
  attempts->joined({});
  write_output(seven, std::string(40 * mebibyte, 'x'));
  have({claim(8, 32)});
  attempts->joined({{.task = 8, .fence = 32, .attempt = 1}, {.task = 7, .fence = 31, .attempt = 1, .started = true}});
  advance(10ms);
  const FakeLine::Call call = line.take("report_v1");
  EXPECT_TRUE(ReportTold(call.arguments).has_end(7));
  EXPECT_LT(call.arguments.at(21).value_or("").size(), mebibyte);
}

}  // namespace
}  // namespace duet::task::postgres
