#include "task/keeper_core.h"

#include <signal.h>

#include <cerrno>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace duet::task {
namespace {

using std::chrono::milliseconds;
using Kind = Message::Kind;

constexpr RunId run{7, 2};
constexpr int exit_code_3 = 3 << 8;  // as waitpid tells it
constexpr process::Usage used{std::chrono::microseconds(1'500'000), std::uint64_t{1} << 20U};

// A record and a daemon in memory; each can refuse.
class FakeHands final : public KeeperHands {
 public:
  int write_began(RunId, const std::string&) override { return note("began"); }
  int write_started(const Started&) override { return note("started"); }
  int write_outcome(const Outcome& outcome) override {
    if (!outcome.result.empty() && result_error != 0) return result_error;
    const int error = note("outcome");
    if (error == 0) result = outcome.result;
    return error;
  }
  int write_gone() override { return note("gone"); }
  int sync_record() override { return sync_error != 0 ? sync_error : note("sync"); }
  void append_output(std::string_view bytes, Stream /*stream*/) override { total += bytes.size(); }
  int note_output() override { return 0; }
  int sync_output() override {
    if (total > 0) done.emplace_back("sync output");
    return 0;
  }
  std::uint64_t output_total() const override { return total; }
  void signal_tree(int signal) override { signals.push_back(signal); }
  bool send(const Message& message) override {
    sent.push_back(message);
    return true;
  }

  int note(const char* what) {
    if (write_error == 0) done.emplace_back(what);
    return write_error;
  }

  int write_error = 0;
  int result_error = 0;
  int sync_error = 0;
  std::vector<std::string> done;
  std::string result;
  std::uint64_t total = 0;
  std::vector<int> signals;
  std::vector<Message> sent;
};

class KeeperCoreTest : public testing::Test {
 protected:
  static Order order() {
    Order order{.assignment = {.run = run, .arguments = {"true"}}, .mark = "mark"};
    order.grace = milliseconds(500);
    return order;
  }
  void begin() {
    ASSERT_TRUE(core_.begin());
    core_.started({.pid = 4711, .at = clock_.utc()});
  }
  void end(bool none_left = true) {
    core_.took_output("bye", true);
    core_.main_ended(exit_code_3, used);
    core_.reaped(none_left);
    core_.time_passed();
  }
  void pass(milliseconds time) {
    for (milliseconds passed{0}; passed < time; passed += milliseconds(10)) {
      clock_.advance(milliseconds(10));
      core_.time_passed();
    }
  }
  void hear(Kind kind, std::uint64_t value = 0) {
    core_.heard({.kind = kind, .attempt = run.attempt, .task = run.task, .value = value});
    core_.time_passed();
  }

  base::VirtualClock clock_;
  FakeHands hands_;
  KeeperCore core_{order(), hands_, clock_, true};
};

TEST_F(KeeperCoreTest, ARunIsWrittenDownInOrderAndFinishedWhenItIsSettled) {
  begin();
  EXPECT_EQ(hands_.sent.size(), 1U);
  EXPECT_FALSE(core_.deadline());
  end();
  EXPECT_EQ(hands_.done, (std::vector<std::string>{"began", "started", "sync output", "outcome", "gone"}));
  EXPECT_EQ(hands_.result, "bye");
  EXPECT_EQ(hands_.sent.back().kind, Kind::look);
  EXPECT_FALSE(core_.is_finished());
  hear(Kind::acknowledged);
  EXPECT_TRUE(core_.is_finished());
  EXPECT_TRUE(core_.leave());
}

TEST_F(KeeperCoreTest, WithoutADaemonsWordTheRecordIsSynced) {
  begin();
  end();
  pass(milliseconds(1900));
  EXPECT_FALSE(core_.is_finished());
  pass(milliseconds(200));
  EXPECT_TRUE(core_.is_finished());
  EXPECT_EQ(hands_.done.back(), "sync");
  EXPECT_FALSE(core_.leave());
}

TEST_F(KeeperCoreTest, AnOutcomeThatCannotBeWrittenIsSent) {
  begin();
  hands_.write_error = EROFS;
  end();
  const Message& told = hands_.sent.back();
  ASSERT_EQ(told.kind, Kind::report);
  ASSERT_TRUE(told.report && told.report->outcome);
  EXPECT_EQ(told.report->outcome->kind, Outcome::Kind::exited);
  EXPECT_EQ(told.report->outcome->code, 3);
  EXPECT_EQ(told.report->outcome->result, "bye");
  EXPECT_EQ(told.report->started->pid, 4711);
  EXPECT_TRUE(told.report->gone);
  hear(Kind::acknowledged);
  EXPECT_TRUE(core_.is_finished());
}

TEST_F(KeeperCoreTest, AnOutcomeThatCannotBeWrittenIsKeptForTheNextDaemon) {
  begin();
  core_.contact_lost();
  hands_.write_error = EROFS;
  end();
  pass(std::chrono::hours(1));
  EXPECT_FALSE(core_.is_finished());
  hands_.sent.clear();
  core_.contact_met();
  ASSERT_EQ(hands_.sent.size(), 1U);
  EXPECT_EQ(hands_.sent.front().report->outcome->code, 3);
}

TEST_F(KeeperCoreTest, AnOutcomeIsWrittenWhenItCanBe) {
  begin();
  core_.contact_lost();
  hands_.write_error = EROFS;
  end();
  pass(milliseconds(5000));
  hands_.write_error = 0;
  pass(milliseconds(1100));
  EXPECT_EQ(hands_.done, (std::vector<std::string>{"began", "started", "sync output", "outcome", "gone", "sync"}));
  EXPECT_EQ(hands_.result, "bye");
  EXPECT_TRUE(core_.is_finished());
}

TEST_F(KeeperCoreTest, ThatItIsGoneIsWrittenThoughThereIsNoRoomForTheResult) {
  begin();
  hands_.result_error = ENOSPC;
  end();
  EXPECT_EQ(hands_.done.back(), "gone");
  EXPECT_EQ(hands_.sent.back().report->outcome->result, "bye");
  hear(Kind::acknowledged);
  EXPECT_TRUE(core_.is_finished());
}

TEST_F(KeeperCoreTest, TheDaemonHearsWhenWhatItWasSentIsWritten) {
  begin();
  hands_.write_error = ENOSPC;
  end(false);
  EXPECT_EQ(hands_.sent.back().kind, Kind::report);
  EXPECT_FALSE(hands_.sent.back().report->gone);
  hands_.write_error = 0;
  pass(milliseconds(100));
  EXPECT_EQ(hands_.sent.back().kind, Kind::look);
}

TEST_F(KeeperCoreTest, AfterAFailedSyncAllIsWrittenAgain) {
  begin();
  core_.contact_lost();
  hands_.sync_error = EIO;
  end();
  EXPECT_FALSE(core_.is_finished());
  hands_.sync_error = 0;
  hands_.done.clear();
  pass(milliseconds(1100));
  EXPECT_EQ(hands_.done, (std::vector<std::string>{"started", "outcome", "gone", "sync"}));
  EXPECT_TRUE(core_.is_finished());
}

TEST_F(KeeperCoreTest, AStartThatCannotBeWrittenIsSentToo) {
  ASSERT_TRUE(core_.begin());
  hands_.write_error = EIO;
  core_.started({.pid = 4711, .at = clock_.utc()});
  ASSERT_TRUE(hands_.sent.back().report);
  EXPECT_EQ(hands_.sent.back().report->started->pid, 4711);
  EXPECT_TRUE(core_.deadline());
}

TEST_F(KeeperCoreTest, ARunThatCannotBeRecordedIsNotStartedAndToldSo) {
  hands_.write_error = EROFS;
  EXPECT_FALSE(core_.begin());
  ASSERT_EQ(hands_.sent.size(), 1U);
  EXPECT_EQ(hands_.sent.front().report->outcome->kind, Outcome::Kind::not_started);
  EXPECT_EQ(hands_.sent.front().report->outcome->code, EROFS);
}

TEST_F(KeeperCoreTest, AProgramThatCannotBeStartedTellsTheErrno) {
  ASSERT_TRUE(core_.begin());
  core_.not_started(EAGAIN, "no process");
  EXPECT_EQ(hands_.done, (std::vector<std::string>{"began", "outcome", "gone"}));
  EXPECT_EQ(hands_.sent.back().kind, Kind::look);
  hear(Kind::ask);
  EXPECT_EQ(hands_.sent.back().report->outcome->code, EAGAIN);
}

TEST_F(KeeperCoreTest, CancelIsTermAndAfterTheGraceKillUntilItIsGone) {
  begin();
  hear(Kind::cancel);
  EXPECT_EQ(hands_.sent.back().kind, Kind::terminated);
  EXPECT_EQ(hands_.signals, std::vector<int>{SIGTERM});
  pass(milliseconds(490));
  EXPECT_EQ(hands_.signals.size(), 1U);
  pass(milliseconds(40));
  EXPECT_GE(hands_.signals.size(), 3U);
  EXPECT_EQ(hands_.signals.back(), SIGKILL);
  end();
  EXPECT_EQ(core_.deadline(), clock_.now() + milliseconds(2000));
}

TEST_F(KeeperCoreTest, ATimeLimitMarksTheOutcome) {
  Order limited = order();
  limited.assignment.time_limit = milliseconds(100);
  KeeperCore core(limited, hands_, clock_, true);
  ASSERT_TRUE(core.begin());
  core.started({.pid = 1});
  EXPECT_EQ(core.deadline(), clock_.now() + milliseconds(100));
  clock_.advance(milliseconds(100));
  core.time_passed();
  EXPECT_EQ(hands_.signals, std::vector<int>{SIGTERM});
  core.main_ended(SIGTERM, used);
  core.reaped(true);
  core.heard({.kind = Kind::ask, .attempt = run.attempt, .task = run.task});
  EXPECT_TRUE(hands_.sent.back().report->outcome->timed_out);
  EXPECT_EQ(hands_.sent.back().report->outcome->signal, SIGTERM);
}

TEST_F(KeeperCoreTest, TheOutcomeSaysWhatWasUsed) {
  begin();
  end();
  core_.heard({.kind = Kind::ask, .attempt = run.attempt, .task = run.task});
  EXPECT_EQ(hands_.sent.back().report->outcome->usage, (Usage{used.cpu, used.max_memory, 3}));
}

TEST_F(KeeperCoreTest, FollowIsAnsweredOnceWhenThereIsMore) {
  begin();
  hear(Kind::follow, 0);
  hands_.sent.clear();
  core_.took_output("four", false);
  core_.took_output("more", true);
  ASSERT_EQ(hands_.sent.size(), 1U);
  EXPECT_EQ(hands_.sent.front().value, 4U);
  hear(Kind::follow, 4);
  EXPECT_EQ(hands_.sent.back().value, 8U);
}

}  // namespace
}  // namespace duet::task
