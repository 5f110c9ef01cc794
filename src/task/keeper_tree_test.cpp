#include "task/keeper_fixture_test.h"

namespace duet::task {
namespace {

using std::chrono::milliseconds;
using Kind = Outcome::Kind;

constexpr RunId first{1, 1};

class KeeperTreeTest : public KeeperTest {
 protected:
  /// Starts it, and waits until it says so and has this many processes.
  void begin(const Assignment& assignment, std::size_t processes) {
    keepers().start(assignment);
    ASSERT_TRUE(await_file("ready"));
    ASSERT_TRUE(turn_until([&] { return living().size() >= processes; })) << living().size();
  }
  void cancel_and_finish() {
    keepers().cancel(first);
    ASSERT_TRUE(finish(first));
    EXPECT_TRUE(living().empty());
  }
};

TEST_F(KeeperTreeTest, CancelReachesSessionsDoubleForksAndNohup) {
  begin(shell("setsid sleep 1000 & (setsid sh -c 'sleep 1000 & sleep 1000 &' &) ; nohup sleep 1000 >/dev/null 2>&1 & "
              "touch ready; wait; sleep 1000"),
        5);
  cancel_and_finish();
}

TEST_F(KeeperTreeTest, WhoIgnoresTermIsKilled) {
  begin(shell("trap '' TERM HUP INT; (trap '' TERM; setsid sh -c 'while :; do sleep 0.05; done') & "
              "touch ready; while :; do sleep 0.05; done"),
        4);
  const auto before = std::chrono::steady_clock::now();
  cancel_and_finish();
  EXPECT_GE(std::chrono::steady_clock::now() - before, settings_.grace);
  EXPECT_EQ(story(first).outcome->signal, SIGKILL);
}

TEST_F(KeeperTreeTest, TwoHundredChildrenEnd) {
  begin(shell("trap '' TERM; i=0; while [ $i -lt 200 ]; do setsid sleep 1000 & i=$((i+1)); done; touch ready; wait"),
        201);
  cancel_and_finish();
}

TEST_F(KeeperTreeTest, WhoKeepsForkingIsCaught) {
  // Each process lives for a fork, half of them in sessions of their own; the end of the time keeps a failure bounded.
  const std::string forker =
      "import os, time\n"
      "end = time.time() + 20\n"
      "os.close(os.open('ready', os.O_CREAT))\n"
      "while time.time() < end:\n"
      "  if os.fork(): os._exit(0)\n"
      "  if os.getpid() % 2: os.setsid()\n";
  Assignment assignment = shell("");
  assignment.arguments = {"python3", "-c", forker};
  keepers().start(assignment);
  ASSERT_TRUE(await_file("ready"));
  ASSERT_TRUE(turn_until([&] { return story(first).gone; }));
  EXPECT_EQ(story(first).outcome->code, 0);
  EXPECT_TRUE(living().empty());
}

TEST_F(KeeperTreeTest, TheEndOfTheMainProcessIsToldWhileAnotherHoldsThePipe) {
  settings_.grace = milliseconds(4000);
  keepers().start(
      shell("(trap '' TERM; touch ready; while :; do sleep 0.01; done) & "
            "while [ ! -e ready ]; do sleep 0.01; done; exit 3"));
  ASSERT_TRUE(turn_until([&] { return story(first).outcome.has_value(); }));
  EXPECT_FALSE(story(first).gone);
  EXPECT_EQ(story(first).outcome->code, 3);
  EXPECT_EQ(keepers().count(), 1U);
  const auto told = std::chrono::steady_clock::now();
  const base::UtcTime told_at = base::system_clock().utc();
  ASSERT_TRUE(finish(first));
  EXPECT_GE(std::chrono::steady_clock::now() - told, milliseconds(500));
  EXPECT_TRUE(living().empty());
  EXPECT_LE(story(first).outcome->ended_at, told_at);
}

TEST_F(KeeperTreeTest, WhatIsLeftAtTheEndGetsATerm) {
  settings_.grace = std::chrono::seconds(20);
  const Story told =
      run(shell("(trap 'echo terminated; exit 0' TERM; touch ready; while :; do sleep 0.01; done) & "
                "while [ ! -e ready ]; do sleep 0.01; done"));
  EXPECT_EQ(told.outcome->code, 0);
  EXPECT_NE(output_of(first).find("terminated\n"), std::string::npos);
}

TEST_F(KeeperTreeTest, ACancelTerminatesAlsoWhoseParentEndsOfItAtOnce) {
  settings_.grace = std::chrono::seconds(20);
  begin(shell("(trap 'echo terminated; exit 0' TERM; touch ready; while :; do sleep 0.01; done) & wait"), 2);
  cancel_and_finish();
  EXPECT_NE(output_of(first).find("terminated\n"), std::string::npos);
}

TEST_F(KeeperTreeTest, WhoCleansUpAfterATermIsLeftToIt) {
  settings_.grace = std::chrono::seconds(20);
  begin(shell("trap 'sleep 0.2 && echo cleaned; exit 0' TERM; touch ready; sleep 1000 & wait"), 2);
  cancel_and_finish();
  EXPECT_NE(output_of(first).find("cleaned\n"), std::string::npos);
}

TEST_F(KeeperTreeTest, OrphansAreReaped) {
  keepers().start(shell("i=0; while [ $i -lt 30 ]; do (true &) ; i=$((i+1)); done; touch ready; sleep 1000"));
  ASSERT_TRUE(await_file("ready"));
  ASSERT_TRUE(turn_until([&] { return story(first).started.has_value(); }));
  const pid_t keeper = keeper_of(first);
  EXPECT_TRUE(turn_until([&] {
    const auto all = process::all_processes();
    return std::none_of(all.begin(), all.end(),
                        [&](const auto& each) { return each.parent == keeper && each.is_zombie(); });
  }));
  cancel_and_finish();
}

TEST_F(KeeperTreeTest, ATimeLimitEndsTheWholeTree) {
  Assignment assignment = shell("setsid sh -c 'trap \"\" TERM; while :; do sleep 0.05; done' & sleep 1000");
  assignment.time_limit = milliseconds(200);
  const Story told = run(assignment);
  EXPECT_TRUE(told.outcome->timed_out);
  EXPECT_EQ(told.outcome->kind, Kind::signalled);
  EXPECT_TRUE(living().empty());
}

TEST_F(KeeperTreeTest, ADaemonThatATaskStartsIsNoPartOfIt) {
  for (const std::string variable : {"DUET_RPC_READY_FD=3", "DUET_RPC_NURSERY=1"}) {
    std::filesystem::remove(folder_.file("daemon"));
    std::filesystem::remove(folder_.file("ready"));
    const Story told = run(shell("env " + variable +
                                 " setsid sh -c 'sleep 1000 & echo $! > child; echo $$ > daemon; wait' & "
                                 "(trap '' TERM; touch ready; while :; do sleep 0.01; done) & "
                                 "while [ ! -s daemon -o ! -e ready ]; do sleep 0.01; done; exit 3"));
    EXPECT_EQ(told.outcome->code, 3);
    EXPECT_TRUE(told.gone);
    const pid_t daemon = std::stoi(file_text("daemon"));
    const pid_t child = std::stoi(file_text("child"));
    EXPECT_EQ(living().size(), 2U);
    EXPECT_TRUE(is_alive(daemon) && is_alive(child));
    const pid_t keeper = process::read_process(daemon)->parent;
    EXPECT_TRUE(turn_until([&] { return !is_alive(keeper) || keeper == 1; }));  // it does not keep what is not its own
    kill(-daemon, SIGKILL);
    EXPECT_TRUE(turn_until([&] { return living().empty(); }));
  }
}

TEST_F(KeeperTreeTest, WhatADaemonThatATaskStartsUsesIsNotTheTasks) {
  const std::string work = "import time; list(iter(lambda: time.process_time() < 1.5, False))";
  const Story told = run(shell("mkfifo done; env DUET_RPC_READY_FD=3 setsid sh -c 'python3 -c \"" + work +
                               "\"; echo > done; exec sleep 1000' & read line < done"));
  EXPECT_LT(told.outcome->usage->cpu, milliseconds(1000));
  for (const pid_t pid : living()) kill(pid, SIGKILL);
  EXPECT_TRUE(turn_until([&] { return living().empty(); }));
}

TEST_F(KeeperTreeTest, AKeeperIgnoresWhatWouldEndIt) {
  keepers().start(shell("while [ ! -e go ]; do sleep 0.01; done; exit 5"));
  ASSERT_TRUE(turn_until([&] { return story(first).started.has_value(); }));
  for (const int signal : {SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGPIPE, SIGUSR1}) kill(keeper_of(first), signal);
  std::ofstream(folder_.file("go")) << "";
  ASSERT_TRUE(finish(first));
  EXPECT_EQ(story(first).outcome->code, 5);
}

TEST_F(KeeperTreeTest, WhatATaskSaysOfItselfDoesNotSpareIt) {
  const std::vector<std::pair<std::string, std::string>> names{{"DUET_RPC_NURSERY", "1"}, {"DUET_RPC_READY_FD", "3"}};
  for (const auto& [name, value] : names) {
    Assignment assignment = shell("env | grep ^DUET_RPC; sleep 1000");
    assignment.environment[name] = value;
    assignment.time_limit = milliseconds(200);
    Story told = run(assignment);
    EXPECT_TRUE(told.outcome->timed_out);
    EXPECT_EQ(told.outcome->result, "");
    EXPECT_TRUE(living().empty());
    assignment = shell("exec env " + name + '=' + value + " sleep 1000", 2);
    assignment.time_limit = milliseconds(200);
    told = run(assignment);
    EXPECT_TRUE(told.outcome->timed_out);
    EXPECT_TRUE(living().empty());
  }
}

}  // namespace
}  // namespace duet::task
