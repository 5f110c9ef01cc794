#include "task/keeper_core.h"

#include <signal.h>

#include <cerrno>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "task/lease_file.h"

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
  LeaseLeft lease_left() override {
    ++lease_looks;
    return {.until_end = lease.end() - boot, .until_over = lease.deadline - boot};
  }
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
  BootTime boot{std::chrono::hours(1)};  // what CLOCK_BOOTTIME says
  LeaseTerm lease = {};
  int lease_looks = 0;
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

using std::chrono::seconds;

// A lease of 90 s, of which a beat was answered just now.
class LeasedCoreTest : public KeeperCoreTest {
 protected:
  LeasedCoreTest() { extend(seconds(90)); }

  static Order leased() {
    Order order = KeeperCoreTest::order();
    order.assignment.claim = Claim{.fence = 5, .worker = "build-3", .leased = true};
    return order;
  }
  void extend(seconds length) { hands_.lease = {hands_.boot + length, length}; }
  void begin() {
    ASSERT_TRUE(core_.begin());
    core_.started({.pid = 4711, .at = clock_.utc()});
    core_.time_passed();
  }
  void pass(base::Duration time) {
    hands_.boot += time;
    clock_.advance(time);
    core_.time_passed();
  }
  // The clock that is waited on does not count that.
  void suspend(base::Duration time) {
    hands_.boot += time;
    core_.time_passed();
  }
  Outcome end(int status) {
    core_.main_ended(status, used);
    core_.reaped(true);
    core_.heard({.kind = Kind::ask, .attempt = run.attempt, .task = run.task});
    return *hands_.sent.back().report->outcome;
  }
  base::Duration until_deadline() const { return core_.deadline().value() - clock_.now(); }

  KeeperCore core_{leased(), hands_, clock_, true};
};

TEST_F(LeasedCoreTest, AtTwoThirdsItIsToldToEndAndAfterTheGraceKilled) {
  begin();
  core_.contact_lost();
  EXPECT_EQ(until_deadline(), seconds(60));
  pass(milliseconds(59'999));
  EXPECT_TRUE(hands_.signals.empty());
  pass(milliseconds(1));
  EXPECT_EQ(hands_.signals, std::vector<int>{SIGTERM});
  EXPECT_EQ(until_deadline(), milliseconds(500));
  pass(milliseconds(499));
  EXPECT_EQ(hands_.signals.size(), 1U);
  pass(milliseconds(1));
  EXPECT_EQ(hands_.signals, (std::vector<int>{SIGTERM, SIGKILL}));
  core_.contact_met();
  const Outcome outcome = end(SIGKILL);
  EXPECT_EQ(outcome.kind, Outcome::Kind::signalled);
  EXPECT_EQ(outcome.signal, SIGKILL);
  EXPECT_TRUE(outcome.ended_with_lease());
  EXPECT_FALSE(outcome.timed_out);
}

TEST_F(LeasedCoreTest, WhatItMakesOfItCounts) {
  begin();
  pass(seconds(60));
  const Outcome outcome = end(exit_code_3);
  EXPECT_EQ(outcome.kind, Outcome::Kind::exited);
  EXPECT_EQ(outcome.code, 3);
  EXPECT_EQ(outcome.problem, "its worker's lease was over");
}

TEST_F(LeasedCoreTest, ALeaseThatIsExtendedLetsItGoOn) {
  begin();
  for (int beats = 0; beats < 10; ++beats) {
    pass(until_deadline() - seconds(1));
    extend(seconds(90));
    pass(seconds(1));  // the end it knew; nobody has told it of the beat
    EXPECT_EQ(until_deadline(), seconds(59));
  }
  EXPECT_TRUE(hands_.signals.empty());
  EXPECT_FALSE(end(0).ended_with_lease());
  EXPECT_EQ(hands_.sent.back().report->outcome->problem, "");
}

TEST_F(LeasedCoreTest, ALeaseThatIsMadeShorterIsSeenAtTheNextLook) {
  begin();
  hands_.lease = {hands_.boot + seconds(31), seconds(30)};
  pass(seconds(4));
  EXPECT_EQ(until_deadline(), seconds(17));
}

TEST_F(LeasedCoreTest, AMachineThatSleptBeyondTwoThirdsEndsItAtOnce) {
  begin();
  suspend(seconds(70));
  EXPECT_EQ(hands_.signals, std::vector<int>{SIGTERM});
  EXPECT_EQ(until_deadline(), milliseconds(500));
}

TEST_F(LeasedCoreTest, TheGraceIsNoLongerThanTheLease) {
  begin();
  suspend(milliseconds(89'900));
  EXPECT_EQ(hands_.signals, std::vector<int>{SIGTERM});
  EXPECT_EQ(until_deadline(), milliseconds(100));
  pass(milliseconds(100));
  EXPECT_EQ(hands_.signals.back(), SIGKILL);
}

TEST_F(LeasedCoreTest, AMachineThatSleptBeyondTheLeaseKillsItAtOnce) {
  begin();
  suspend(std::chrono::hours(8));
  EXPECT_EQ(hands_.signals, (std::vector<int>{SIGTERM, SIGKILL}));
  EXPECT_TRUE(end(SIGKILL).ended_with_lease());
}

TEST_F(LeasedCoreTest, AMachineThatSleepsWithinTheGraceKillsItWhenItWakes) {
  begin();
  pass(seconds(60));
  suspend(seconds(30));
  EXPECT_EQ(hands_.signals, (std::vector<int>{SIGTERM, SIGKILL}));
}

TEST_F(LeasedCoreTest, ALeaseThatIsExtendedAfterTermTakesNothingBack) {
  begin();
  pass(seconds(60));
  extend(seconds(90));
  pass(milliseconds(500));
  EXPECT_EQ(hands_.signals, (std::vector<int>{SIGTERM, SIGKILL}));
  EXPECT_TRUE(end(SIGKILL).ended_with_lease());
}

TEST_F(LeasedCoreTest, WithoutALeaseItDoesNotBegin) {
  hands_.lease = {};
  EXPECT_FALSE(core_.begin());
  EXPECT_TRUE(hands_.done.empty());
  ASSERT_EQ(hands_.sent.size(), 1U);
  EXPECT_EQ(hands_.sent.front().report->outcome->kind, Outcome::Kind::not_started);
  EXPECT_EQ(hands_.sent.front().report->outcome->code, EAGAIN) << "so that the daemon calls it never begun";
  EXPECT_EQ(hands_.sent.front().report->outcome->problem, lease_was_over);
  EXPECT_FALSE(hands_.sent.front().report->outcome->ended_with_lease()) << "nothing has run";
}

TEST_F(LeasedCoreTest, BeyondTwoThirdsItDoesNotBegin) {
  hands_.boot += seconds(60);
  EXPECT_FALSE(core_.begin());
}

TEST_F(LeasedCoreTest, WhoIsCancelledBeforeDoesNotEndForTheLeaseButIsKilledWithIt) {
  begin();
  pass(milliseconds(59'800));
  core_.heard({.kind = Kind::cancel, .attempt = run.attempt, .task = run.task});
  suspend(seconds(31));
  EXPECT_EQ(hands_.signals, (std::vector<int>{SIGTERM, SIGKILL}));
  EXPECT_EQ(end(SIGKILL).problem, "");
}

TEST_F(LeasedCoreTest, WhatItsMainProcessLeavesIsKilledWithTheLease) {
  begin();
  core_.main_ended(0, used);
  core_.reaped(false);
  EXPECT_EQ(hands_.signals, std::vector<int>{SIGTERM});
  suspend(seconds(90));
  EXPECT_EQ(hands_.signals.back(), SIGKILL);
  core_.heard({.kind = Kind::ask, .attempt = run.attempt, .task = run.task});
  EXPECT_EQ(hands_.sent.back().report->outcome->problem, "");
}

TEST_F(LeasedCoreTest, WhenItIsGoneTheLeaseIsOfNoInterest) {
  begin();
  end(0);
  EXPECT_EQ(until_deadline(), seconds(2));
  hands_.signals.clear();
  suspend(std::chrono::hours(1));
  EXPECT_TRUE(hands_.signals.empty());
}

TEST_F(LeasedCoreTest, AClaimWithoutALeaseAsksForNone) {
  Order claimed = leased();
  claimed.assignment.claim->leased = false;
  hands_.lease = {};
  KeeperCore core(claimed, hands_, clock_, true);
  ASSERT_TRUE(core.begin());
  core.started({.pid = 1});
  core.time_passed();
  EXPECT_FALSE(core.deadline());
  EXPECT_EQ(hands_.lease_looks, 0);
  EXPECT_TRUE(hands_.signals.empty());
}

}  // namespace
}  // namespace duet::task
