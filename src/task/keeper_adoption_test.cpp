#include <sys/wait.h>

#include <random>

#include "task/keeper_fixture_test.h"

namespace duet::task {
namespace {

using std::chrono::milliseconds;
using Kind = Outcome::Kind;

constexpr RunId first{1, 1};

class KeeperAdoptionTest : public KeeperTest {
 protected:
  static constexpr const char* wait_for_go = "touch ready; while [ ! -e go ]; do sleep 0.01; done; ";

  void begin(const std::string& script) {
    keepers().start(shell(script));
    ASSERT_TRUE(await_file("ready"));
    ASSERT_TRUE(turn_until([&] { return story(first).started.has_value(); }));
  }
  void go() { std::ofstream(folder_.file("go")) << ""; }
  void linger() {
    keepers().adopt(first);
    keepers().cancel(first);
    keepers().acknowledge(first);
  }
  void suspend(pid_t keeper) {
    kill(keeper, SIGSTOP);
    ASSERT_TRUE(turn_until([&] { return process::read_process(keeper)->state == 'T'; }));
  }
  /// The main process has ended, something else has not.
  void begin_and_suspend_in_grace() {
    settings_.grace = milliseconds(4000);
    begin(
        "(trap '' TERM; touch ready; while :; do sleep 0.01; done) & "
        "while [ ! -e ready ]; do sleep 0.01; done; touch half; exit 3");
    ASSERT_TRUE(turn_until([&] { return story(first).outcome.has_value(); }));
    suspend(RunRecord::open(tasks_.get(), first).read().fingerprint.keeper);
  }
};

TEST_F(KeeperAdoptionTest, ARunningTaskIsAdoptedWithItsPid) {
  begin(std::string("echo before; ") + wait_for_go + "echo after; exit 7");
  const Started started = *story(first).started;
  restart_daemon();
  keepers().adopt(first);
  ASSERT_TRUE(turn_until([&] { return story(first).started.has_value(); }));
  EXPECT_EQ(story(first).started->pid, started.pid);
  EXPECT_EQ(story(first).started->at, started.at);
  go();
  ASSERT_TRUE(finish(first));
  EXPECT_EQ(story(first).outcome->code, 7);
  EXPECT_EQ(story(first).outcome->result, "before\nafter\n");
  EXPECT_EQ(output_of(first), "before\nafter\n");
}

// It may be of another version than the daemon, and not understand its orders.
TEST_F(KeeperAdoptionTest, AnAdoptedKeeperIsGivenNoOtherRun) {
  keep_spares();
  begin(std::string("echo $PPID; ") + wait_for_go);
  restart_daemon();
  keepers().adopt(first);
  go();
  ASSERT_TRUE(finish(first));
  const std::string keeper = story(first).outcome->result;
  const Story next = run(shell("echo $PPID", 2));
  ASSERT_TRUE(next.outcome);
  EXPECT_NE(next.outcome->result, keeper);
  EXPECT_EQ(run(shell("echo $PPID", 3)).outcome->result, next.outcome->result) << "which is ours, and kept";
}

TEST_F(KeeperAdoptionTest, AnAdoptedRunCanBeFollowedAndCancelled) {
  settings_.grace = std::chrono::hours(1);
  begin("trap 'echo bye; exit 4' TERM; echo before; touch ready; while :; do sleep 0.01; done");
  restart_daemon();
  keepers().adopt(first);
  keepers().follow(first, 0);
  ASSERT_TRUE(turn_until([&] { return story(first).output == 7; }));
  keepers().cancel(first);
  ASSERT_TRUE(finish(first));
  EXPECT_EQ(story(first).terminated, 1);
  EXPECT_EQ(story(first).outcome->code, 4);
  EXPECT_EQ(story(first).outcome->result, "before\nbye\n");
}

TEST_F(KeeperAdoptionTest, WhatEndedMeanwhileTellsItsTrueEnd) {
  begin(std::string(wait_for_go) + "echo done; exit 7");
  const pid_t keeper = keeper_of(first);
  const pid_t pid = story(first).started->pid;
  restart_daemon();
  go();
  ASSERT_TRUE(turn_until([&] { return !is_alive(keeper); }));
  const base::UtcTime back = base::system_clock().utc();
  keepers().adopt(first);
  ASSERT_TRUE(finish(first));
  EXPECT_EQ(story(first).outcome->kind, Kind::exited);
  EXPECT_EQ(story(first).outcome->code, 7);
  EXPECT_EQ(story(first).outcome->started->pid, pid);
  EXPECT_LT(story(first).outcome->ended_at, back);
  EXPECT_EQ(story(first).outcome->result, "done\n");
}

TEST_F(KeeperAdoptionTest, ATimeLimitHoldsWithoutADaemon) {
  settings_.grace = std::chrono::hours(1);
  acknowledge_at_once_ = false;
  Assignment assignment = shell("exec sleep 1000");
  assignment.time_limit = milliseconds(1000);
  keepers().start(assignment);
  ASSERT_TRUE(turn_until([&] { return story(first).started.has_value(); }));
  restart_daemon();
  acknowledge_at_once_ = true;
  ASSERT_TRUE(turn_until([&] { return living().empty(); }));
  keepers().adopt(first);
  ASSERT_TRUE(finish(first));
  EXPECT_TRUE(story(first).outcome->timed_out);
  EXPECT_EQ(story(first).outcome->signal, SIGTERM);
}

// A store that was put back from a backup gives out an id once more.
TEST_F(KeeperAdoptionTest, ARunThatIsStillBeingEndedAsAStrayIsStartedLater) {
  begin("echo old; touch ready; sleep 1000");
  restart_daemon();
  keepers().end_strays();
  EXPECT_TRUE(run(shell("exit 2")).never_began);
  ASSERT_TRUE(turn_until([&] { return keepers().count() == 0; }));
  EXPECT_EQ(run(shell("exit 2")).outcome->code, 2);
}

TEST_F(KeeperAdoptionTest, WhatWasNeverOrderedNeverBegan) {
  keepers().adopt(first);
  ASSERT_TRUE(finish(first));
  EXPECT_TRUE(story(first).never_began);
  EXPECT_EQ(run(shell("exit 2")).outcome->code, 2);
}

TEST_F(KeeperAdoptionTest, ARecordThatNobodyTookUpNeverBegan) {
  RunRecord::create(tasks_.get(), first, new_contact_name());
  keepers().adopt(first);
  ASSERT_TRUE(finish(first));
  EXPECT_TRUE(story(first).never_began);
  EXPECT_TRUE(files().empty());
}

TEST_F(KeeperAdoptionTest, WithoutItsKeeperItIsLostAndItsTreeIsEnded) {
  begin(
      "setsid sleep 1000 & (trap '' TERM; setsid sh -c 'env -i sleep 1000 & while :; do sleep 0.05; done') & "
      "touch ready; sleep 1000");
  ASSERT_TRUE(turn_until([&] { return living().size() >= 4; }));
  kill(keeper_of(first), SIGKILL);
  ASSERT_TRUE(finish(first));
  EXPECT_EQ(story(first).outcome->kind, Kind::lost);
  EXPECT_TRUE(story(first).outcome->started);
  EXPECT_TRUE(living().empty());
}

TEST_F(KeeperAdoptionTest, TheNextDaemonEndsWhatADeadKeeperLeft) {
  begin("env -i sh -c 'touch inner; exec sleep 1000' & touch ready; sleep 1000");
  ASSERT_TRUE(await_file("inner"));
  const pid_t keeper = keeper_of(first);
  restart_daemon();
  kill(keeper, SIGKILL);
  ASSERT_TRUE(turn_until([&] { return !is_alive(keeper); }));
  ASSERT_TRUE(turn_until([&] { return living().size() == 2; }));  // `touch` has ended, `sleep` has begun
  keepers().adopt(first);
  ASSERT_TRUE(finish(first));
  EXPECT_EQ(story(first).outcome->kind, Kind::lost);
  EXPECT_TRUE(living().empty());
}

TEST_F(KeeperAdoptionTest, AKeeperKilledWhileItEndsTheTreeLosesOnlyTheTree) {
  settings_.grace = std::chrono::seconds(20);
  begin(
      "(trap '' TERM; touch ready; while :; do sleep 0.05; done) & "
      "while [ ! -e ready ]; do sleep 0.01; done; exit 6");
  ASSERT_TRUE(turn_until([&] { return story(first).outcome.has_value(); }));
  restart_daemon();
  settings_.grace = milliseconds(200);
  for (const process::ProcessEntry& entry : process::all_processes()) {
    const auto parent = process::read_process(entry.parent);
    if (process::has_in_environment(entry.pid, "DUET_KEEPER_TEST=" + mark_) && parent &&
        !process::has_in_environment(parent->pid, "DUET_KEEPER_TEST=" + mark_)) {
      kill(parent->pid, SIGKILL);
    }
  }
  keepers().adopt(first);
  ASSERT_TRUE(finish(first));
  EXPECT_EQ(story(first).outcome->code, 6);
  EXPECT_TRUE(living().empty());
}

TEST_F(KeeperAdoptionTest, AnotherFoldersTasksAreLeftAlone) {
  transport::TemporaryFolder other;
  const base::Fd other_tasks(open(other.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  auto other_world = std::make_unique<SystemKeeperWorld>(loop_, other_tasks.get(), executable_.get());
  std::map<RunId, Story> told;
  std::swap(told, stories_);
  bool other_gone = false;
  KeeperEvents other_events = events();
  other_events.started = [](RunId, const Started&) {};
  other_events.ended = [](RunId, const Outcome&) {};
  other_events.gone = [&](RunId) { other_gone = true; };
  auto other_keepers = std::make_unique<Keepers>(loop_, log_, *other_world, settings_, other_events);
  Assignment bystander = shell("touch bystander; while [ ! -e go ]; do sleep 0.01; done; touch unharmed");
  bystander.environment.erase("DUET_KEEPER_TEST");
  other_keepers->start(bystander);
  ASSERT_TRUE(await_file("bystander"));
  begin("touch ready; sleep 1000");
  kill(keeper_of(first), SIGKILL);
  ASSERT_TRUE(finish(first));
  keepers().end_strays();
  EXPECT_FALSE(other_gone);
  go();
  EXPECT_TRUE(turn_until([&] { return other_gone; }));
  EXPECT_TRUE(has_file("unharmed"));
  other_keepers.reset();
  other_world.reset();
  EXPECT_TRUE(turn_until([&] { return names_in(other_tasks.get()).size() <= 3; }));  // the record, not acknowledged
}

TEST_F(KeeperAdoptionTest, StraysAreEnded) {
  begin("touch ready; sleep 1000");
  restart_daemon();
  keepers().end_strays();
  ASSERT_TRUE(turn_until([&] { return keepers().count() == 0; }));
  EXPECT_TRUE(living().empty());
  EXPECT_TRUE(stories_.empty());
  stop_daemon();
  EXPECT_TRUE(turn_until([&] { return files().empty(); }));
}

// As the supervisor does with a run whose end is in the store already.
TEST_F(KeeperAdoptionTest, WhatLingersIsGoneWhenItsProcessesAre) {
  settings_.grace = std::chrono::seconds(20);
  begin(
      "(trap '' TERM; touch ready; while [ ! -e go ]; do sleep 0.01; done) & "
      "while [ ! -e ready ]; do sleep 0.01; done; exit 3");
  ASSERT_TRUE(turn_until([&] { return story(first).outcome.has_value(); }));
  restart_daemon();
  linger();
  keepers().end_strays();
  EXPECT_EQ(keepers().count(), 1U);
  ASSERT_TRUE(turn_until([&] { return story(first).outcome.has_value(); }));
  EXPECT_EQ(story(first).outcome->code, 3);
  EXPECT_FALSE(story(first).gone);
  go();
  ASSERT_TRUE(finish(first));
  EXPECT_TRUE(living().empty());
}

TEST_F(KeeperAdoptionTest, WhatLingersWithoutItsKeeperIsGoneWhenItsProcessesAre) {
  begin(
      "(trap '' TERM; touch ready; while :; do sleep 0.01; done) & "
      "while [ ! -e ready ]; do sleep 0.01; done; touch half; while [ ! -e go ]; do sleep 0.01; done");
  const pid_t keeper = keeper_of(first);
  restart_daemon();
  kill(keeper, SIGKILL);
  ASSERT_TRUE(turn_until([&] { return !is_alive(keeper); }));
  linger();
  ASSERT_TRUE(finish(first));
  EXPECT_TRUE(story(first).gone);
  EXPECT_TRUE(living().empty());
}

TEST_F(KeeperAdoptionTest, ASuspendedKeeperIsWokenByTheNextDaemonsCancel) {
  settings_.grace = std::chrono::hours(1);
  begin("touch ready; exec sleep 1000");
  const pid_t keeper = keeper_of(first);
  restart_daemon();
  kill(keeper, SIGSTOP);
  ASSERT_TRUE(turn_until([&] { return process::read_process(keeper)->state == 'T'; }));
  keepers().adopt(first);
  keepers().cancel(first);
  ASSERT_TRUE(finish(first));
  EXPECT_EQ(story(first).terminated, 1);
  EXPECT_EQ(story(first).outcome->signal, SIGTERM);
}

TEST_F(KeeperAdoptionTest, ASuspendedKeeperIsWokenByTheNextDaemonAlsoWhenItsMainProcessIsGone) {
  begin_and_suspend_in_grace();
  restart_daemon();
  linger();
  ASSERT_TRUE(finish(first));
  EXPECT_TRUE(living().empty());
}

TEST_F(KeeperAdoptionTest, AKeeperThatIsSuspendedWhileItEndsTheTreeIsWoken) {
  begin_and_suspend_in_grace();
  ASSERT_TRUE(finish(first));
  EXPECT_TRUE(living().empty());
}

TEST_F(KeeperAdoptionTest, AKeeperThatIsSuspendedAfterItHasSentTheTermIsWoken) {
  settings_.grace = milliseconds(4000);
  begin("trap '' TERM; touch ready; while :; do sleep 0.01; done");
  keepers().cancel(first);
  ASSERT_TRUE(turn_until([&] { return story(first).terminated == 1; }));
  suspend(keeper_of(first));
  ASSERT_TRUE(finish(first));
  EXPECT_EQ(story(first).outcome->signal, SIGKILL);
  EXPECT_EQ(story(first).terminated, 1);
}

TEST_F(KeeperAdoptionTest, AnOutputStaysWhileItsRecordLeadsToProcesses) {
  std::ofstream(folder_.file("tasks/task-1.1.out")) << "hello";
  const RunRecord record = RunRecord::create(tasks_.get(), first, new_contact_name());
  keepers().remove_output(first);  // an order is on its way
  EXPECT_EQ(files().size(), 2U);
  ASSERT_TRUE(record.write_began(first, {}));
  keepers().remove_output(first);
  EXPECT_EQ(files().size(), 2U);
  ASSERT_TRUE(record.write_gone());
  keepers().remove_output(first);  // though its keeper may still hold it
  EXPECT_TRUE(files().empty());
}

TEST_F(KeeperAdoptionTest, WhatARunBelongsToIsReadFromItsRecord) {
  EXPECT_FALSE(keepers().left_by(first));
  const RunRecord record = RunRecord::create(tasks_.get(), first, new_contact_name());
  EXPECT_FALSE(keepers().left_by(first)) << "it has not begun";
  const Claim claim{.fence = 31, .worker = "one", .leased = true};
  ASSERT_TRUE(record.write_began(first, {}, claim));
  EXPECT_EQ(keepers().left_by(first)->claim, claim);
  EXPECT_FALSE(keepers().left_by(first)->gone);
}

TEST_F(KeeperAdoptionTest, ARunOfAStoreThatIsNoMoreMakesWay) {
  run(shell("echo old"));
  const RunRecord old = RunRecord::create(tasks_.get(), first, new_contact_name());
  ASSERT_TRUE(old.write_began(first, {}));
  EXPECT_TRUE(run(shell("true")).never_began);  // as long as somebody holds it
}

// The daemon is killed at random instants around the start of a run. Whatever happens, the task runs once.
TEST_F(KeeperAdoptionTest, AKilledDaemonStartsNothingTwiceAndLosesNothing) {
  auto span = std::chrono::microseconds::max();  // of a run, when nothing else holds it up
  for (std::uint64_t task = 1'000'000; task < 1'000'003; ++task) {
    const auto begin = std::chrono::steady_clock::now();
    run(shell("true", task));
    span = std::min(span, std::chrono::ceil<std::chrono::microseconds>(std::chrono::steady_clock::now() - begin));
  }
  std::mt19937 random(std::random_device{}());
  std::uniform_int_distribution<useconds_t> instant(0, static_cast<useconds_t>(span.count() * 3 / 2));
  const int rounds = 150;
  std::map<std::string, int> seen;
  for (int round = 1; round <= rounds; ++round) {
    const RunId id{static_cast<std::uint64_t>(round), 1};
    const Assignment assignment = shell("echo x >> count-" + std::to_string(round), id.task);
    const pid_t daemon = fork();
    if (daemon == 0) {
      acknowledge_at_once_ = false;
      transport::Loop loop;
      SystemKeeperWorld world(loop, tasks_.get(), executable_.get());
      Keepers doomed(loop, log_, world, settings_, events());
      doomed.start(assignment);
      loop.run();
      _exit(0);
    }
    usleep(instant(random));
    kill(daemon, SIGKILL);
    waitpid(daemon, nullptr, 0);
    restart_daemon();
    keepers().adopt(id);
    keepers().end_strays();
    ASSERT_TRUE(finish(id));
    ++seen[story(id).never_began ? "never began" : "adopted"];
    if (story(id).never_began) run(assignment);
    ASSERT_TRUE(story(id).outcome);
    EXPECT_EQ(story(id).outcome->kind, Kind::exited) << "round " << round;
    EXPECT_EQ(file_text("count-" + std::to_string(round)), "x\n") << "round " << round;
  }
  EXPECT_GT(seen["never began"], 0);
  EXPECT_GT(seen["adopted"], 0);
}

}  // namespace
}  // namespace duet::task
