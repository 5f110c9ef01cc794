#include "task/keeper.h"

#include <sys/resource.h>

#include "duet/base/few_descriptors_test.h"
#include "duet/base/sanitizer_test.h"
#include "task/keeper_fixture_test.h"

namespace duet::task {
namespace {

using std::chrono::milliseconds;
using Kind = Outcome::Kind;

constexpr RunId first{1, 1};
constexpr RunId second{2, 1};

TEST_F(KeeperTest, ARunTellsItsPidItsCodeAndItsOutput) {
  const base::UtcTime before = base::system_clock().utc();
  const Story told = run(shell("echo $$; echo problem >&2; exit 7"));
  ASSERT_TRUE(told.started && told.outcome && told.gone);
  EXPECT_EQ(told.outcome->kind, Kind::exited);
  EXPECT_EQ(told.outcome->code, 7);
  EXPECT_EQ(told.outcome->result, std::to_string(told.started->pid) + "\n");
  EXPECT_EQ(told.outcome->started->pid, told.started->pid);
  EXPECT_GE(told.started->at, before - milliseconds(1));
  EXPECT_LE(told.started->at, told.outcome->ended_at);
  const std::string output = output_of(first);
  EXPECT_NE(output.find("problem\n"), std::string::npos);
  EXPECT_NE(output.find(told.outcome->result), std::string::npos);
}

TEST_F(KeeperTest, ARunTellsItsSignal) {
  const Story told = run(shell("kill -SEGV $$"));
  EXPECT_EQ(told.outcome->kind, Kind::signalled);
  EXPECT_EQ(told.outcome->signal, SIGSEGV);
}

TEST_F(KeeperTest, TheResultIsTheEndOfStdout) {
  const Story told = run(shell("seq 100000; seq 5 >&2"));
  EXPECT_EQ(told.outcome->result.size(), 64U * 1024);
  EXPECT_TRUE(told.outcome->result.ends_with("\n99999\n100000\n"));
  EXPECT_EQ(output_of(first).size(), 588'895U + 10U);
}

TEST_F(KeeperTest, InvalidBytesAreKeptAsTheyAre) {
  const Story told = run(shell("printf 'a\\000\\377\\303b'"));
  EXPECT_EQ(told.outcome->result, std::string("a\0\xff\xc3"
                                              "b",
                                              5));
  EXPECT_EQ(output_of(first), told.outcome->result);
}

TEST_F(KeeperTest, TheTaskSeesNothingOfOurs) {
  settings_.umask = 0027;
  const Story told =
      run(shell("readlink /proc/$$/fd/0; ls /proc/$$/fd; umask; pwd -P; cut -d' ' -f5,6 /proc/$$/stat; "
                "exec grep -E '^Sig(Blk|Ign)' /proc/self/status"));
  const std::string pid = std::to_string(told.started->pid);
  EXPECT_EQ(told.outcome->result, "/dev/null\n0\n1\n2\n0027\n" + std::filesystem::canonical(folder_.path()).string() +
                                      "\n" + pid + " " + pid + "\nSigBlk:\t0000000000000000\n" +
                                      "SigIgn:\t0000000000000000\n");
}

TEST_F(KeeperTest, TheEnvironmentIsTheGivenOneAndTheTasksName) {
  Assignment assignment = shell("");
  assignment.arguments = {"/usr/bin/env"};
  assignment.environment = {{"SECRET", "a=b\nc"}};
  const std::string result = run(assignment).outcome->result;
  EXPECT_EQ(result.find("DUET_TASK_ID=task-1\nDUET_TASK_MARK="), 0U) << result;
  EXPECT_TRUE(result.ends_with("SECRET=a=b\nc\n")) << result;
}

TEST_F(KeeperTest, OutputIsAPipeThatBlocks) {
  const Story told = run(shell("for n in 1 2; do cut -c7- /proc/$$/fdinfo/$n | sed -n 2p; done"));
  EXPECT_EQ(told.outcome->result, "\t01\n\t01\n");  // O_WRONLY and no O_NONBLOCK
}

TEST_F(KeeperTest, InputOfAnySizeArrivesOnStdin) {
  std::string input;
  while (input.size() < 3'000'000) input += "line " + std::to_string(input.size()) + " \"$(x)\" \xff\n";
  Assignment assignment = shell("cat > " + folder_.file("copy"));
  assignment.input = input;
  EXPECT_EQ(run(assignment).outcome->code, 0);
  EXPECT_EQ(file_text("copy"), input);
  Assignment empty = shell("wc -c", 2);
  empty.input = "";
  EXPECT_EQ(run(empty).outcome->result, "0\n");
}

TEST_F(KeeperTest, ALargeEnvironmentArrives) {
  Assignment assignment = shell("printf '%s' \"$LARGE\" | wc -c");
  assignment.environment["LARGE"] = std::string(120'000, 'x');
  EXPECT_EQ(run(assignment).outcome->result, "120000\n");
}

TEST_F(KeeperTest, WhatCannotBeStartedSaysWhy) {
  Assignment missing = shell("");
  missing.arguments = {"no-such-agent"};
  const Story told = run(missing);
  EXPECT_EQ(told.outcome->kind, Kind::not_started);
  EXPECT_EQ(told.outcome->problem, "no-such-agent: not found on the PATH");
  EXPECT_FALSE(told.started);
  EXPECT_TRUE(told.gone);
  Assignment nowhere = shell("true", 2);
  nowhere.directory = "/no/such/folder";
  EXPECT_EQ(run(nowhere).outcome->kind, Kind::not_started);
  EXPECT_EQ(run(shell("exit 3", 3)).outcome->code, 3);
}

TEST_F(KeeperTest, ATimeLimitEndsIt) {
  settings_.grace = std::chrono::hours(1);
  Assignment assignment = shell("exec sleep 1000");
  assignment.time_limit = milliseconds(100);
  const Story told = run(assignment);
  EXPECT_TRUE(told.outcome->timed_out);
  EXPECT_EQ(told.outcome->signal, SIGTERM);
  EXPECT_GE(told.outcome->ended_at - told.started->at, milliseconds(100));
}

TEST_F(KeeperTest, AnEndlessTimeLimitIsNone) {
  Assignment assignment = shell("true");
  assignment.time_limit = milliseconds::max();
  EXPECT_FALSE(run(assignment).outcome->timed_out);
}

TEST_F(KeeperTest, CancelIsAnsweredOnceTermIsSent) {
  settings_.grace = std::chrono::hours(1);
  keepers().start(shell("trap 'exit 4' TERM; touch ready; while :; do sleep 0.01; done"));
  ASSERT_TRUE(await_file("ready"));
  keepers().cancel(first);
  ASSERT_TRUE(turn_until([&] { return story(first).terminated == 1; }));
  ASSERT_TRUE(finish(first));
  EXPECT_EQ(story(first).outcome->code, 4);
  EXPECT_FALSE(story(first).outcome->timed_out);
  EXPECT_EQ(story(first).terminated, 1);
}

TEST_F(KeeperTest, CancelMayComeBeforeTheStart) {
  keepers().start(shell("sleep 1000"));
  keepers().cancel(first);
  ASSERT_TRUE(finish(first));
  EXPECT_EQ(story(first).terminated, 1);
  EXPECT_EQ(story(first).outcome->kind, Kind::signalled);
  EXPECT_EQ(living().size(), 0U);
}

TEST_F(KeeperTest, AStoppedTaskCanBeCancelled) {
  settings_.grace = std::chrono::hours(1);
  keepers().start(shell("touch ready; kill -STOP $$; sleep 1000"));
  ASSERT_TRUE(await_file("ready"));
  ASSERT_TRUE(turn_until(
      [&] { return story(first).started && process::read_process(story(first).started->pid)->state == 'T'; }));
  keepers().cancel(first);
  ASSERT_TRUE(finish(first));
  EXPECT_EQ(story(first).outcome->signal, SIGTERM);
}

TEST_F(KeeperTest, FollowTellsOnceWhenThereIsMore) {
  keepers().start(shell("echo one; while [ ! -e go ]; do sleep 0.01; done; echo two"));
  keepers().follow(first, 0);
  ASSERT_TRUE(turn_until([&] { return story(first).output == 4; }));
  keepers().follow(first, 4);
  keepers().follow(first, 4);
  std::ofstream(folder_.file("go")) << "";
  ASSERT_TRUE(turn_until([&] { return story(first).output == 8; }));
  ASSERT_TRUE(finish(first));
  EXPECT_EQ(output_of(first), "one\ntwo\n");
}

TEST_F(KeeperTest, NothingIsLeftInTheFolderButTheOutput) {
  run(shell("echo here"));
  run(shell("true", 2));
  stop_daemon();
  EXPECT_TRUE(turn_until([&] { return files() == std::vector<std::string>{"task-1.1.out"}; }));
  remove_output(tasks_.get(), first);
  EXPECT_TRUE(files().empty());
}

TEST_F(KeeperTest, FilesAreForTheUserAlone) {
  keepers().start(shell("echo here; while [ ! -e go ]; do sleep 0.01; done"));
  keepers().follow(first, 0);
  ASSERT_TRUE(turn_until([&] { return story(first).output > 0; }));
  ASSERT_EQ(files().size(), 3U);  // the record, the output, the keeper's socket
  for (const std::string& name : files()) {
    struct stat status {};
    fstatat(tasks_.get(), name.c_str(), &status, 0);
    EXPECT_EQ(status.st_mode & 0777, 0600U) << name;
  }
  std::ofstream(folder_.file("go")) << "";
  ASSERT_TRUE(finish(first));
}

TEST_F(KeeperTest, AKeeperIsUsedAgain) {
  keep_spares();
  acknowledge_at_once_ = false;
  run(shell("echo $PPID"));
  run(shell("echo $PPID", 2));
  const std::string keeper = story(first).outcome->result;
  EXPECT_NE(story(second).outcome->result, keeper);  // the first one still waits for its outcome to be acknowledged
  keepers().acknowledge(first);
  EXPECT_EQ(run(shell("echo $PPID", 3)).outcome->result, keeper);
}

TEST_F(KeeperTest, AKeeperThatIsNotUsedAgainEnds) {
  const std::string keeper = run(shell("echo $PPID")).outcome->result;
  EXPECT_TRUE(turn_until([&] { return !is_alive(std::stoi(keeper)); }));
}

TEST_F(KeeperTest, AKilledNurseryIsReplaced) {
  run(shell("true"));
  const std::string nursery = run(shell("ps -o ppid= -p $PPID", 2)).outcome->result;
  keepers().start(shell("while [ ! -e go ]; do sleep 0.01; done; exit 5", 3));
  ASSERT_TRUE(turn_until([&] { return story({3, 1}).started.has_value(); }));
  kill(std::stoi(nursery), SIGKILL);
  for (std::uint64_t task = 4; task < 10; ++task) keepers().start(shell("exit 6", task));
  for (std::uint64_t task = 4; task < 10; ++task) {
    ASSERT_TRUE(finish({task, 1}));
    if (!story({task, 1}).never_began) {
      EXPECT_EQ(story({task, 1}).outcome->code, 6);
    }
  }
  EXPECT_EQ(run(shell("exit 8", 10)).outcome->code, 8);
  std::ofstream(folder_.file("go")) << "";
  ASSERT_TRUE(finish({3, 1}));
  EXPECT_EQ(story({3, 1}).outcome->code, 5);
}

// That keepers die before they take up an order says nothing about the task.
TEST_F(KeeperTest, WhatNoKeeperTakesUpIsStartedLaterAndMoreAndMoreSeldom) {
  executable_.reset(open("/bin/true", O_RDONLY | O_CLOEXEC));
  std::vector<base::Duration> took;
  for (int tries = 0; tries < 7; ++tries) {
    const auto since = loop_.now();
    EXPECT_TRUE(run(shell("true")).never_began);
    took.push_back(loop_.now() - since);
  }
  EXPECT_GE(took.back(), std::chrono::milliseconds(3200));
  EXPECT_TRUE(files().empty());
  stories_.clear();
  keepers().start(shell("true"));
  const auto since = loop_.now();
  for (int turns = 0; turns < 5; ++turns) loop_.turn(loop_.now() + std::chrono::milliseconds(20));
  keepers().cancel(first);
  ASSERT_TRUE(finish(first));
  EXPECT_EQ(story(first).terminated, 1);
  EXPECT_LT(loop_.now() - since, std::chrono::milliseconds(6400));  // as it would take otherwise
}

TEST_F(KeeperTest, AProgramThatCannotBeExecutedEndsInAnOutcome) {
  executable_.reset(open("/etc/passwd", O_RDONLY | O_CLOEXEC));
  const Story told = run(shell("true"));
  ASSERT_TRUE(told.outcome);
  EXPECT_EQ(told.outcome->kind, Kind::not_started);
  EXPECT_TRUE(files().empty());
}

TEST_F(KeeperTest, WithoutRoomForTheRecordItMayBeStartedLater) {
  if (base::under_sanitizer) GTEST_SKIP() << "the sanitizer needs descriptors itself to look at an object's type";
  Keepers& all = keepers();
  {
    const base::FewDescriptors none;
    all.start(shell("exit 3"));
  }
  ASSERT_TRUE(finish(first));
  EXPECT_TRUE(story(first).never_began);
  EXPECT_TRUE(files().empty());
  EXPECT_EQ(run(shell("exit 3")).outcome->code, 3);
}

TEST_F(KeeperTest, AFolderWithALongPathWorks) {
  use_folder(folder_.file_of_length(1000, "tasks"));
  const Story told = run(shell("echo long"));
  EXPECT_EQ(told.outcome->code, 0);
  EXPECT_EQ(output_of(first), "long\n");
}

TEST_F(KeeperTest, OverTheLimitTheMiddleOfTheOutputIsDropped) {
  constexpr std::uint64_t mebibyte = 1 << 20;
  Assignment assignment = shell("");
  assignment.arguments = {"python3", "-c",  // 70 times a line with its number that makes a mebibyte
                          "import sys\n"
                          "for n in range(70): sys.stdout.write(('%015d\\n' % n) * 65536)\n"};
  const Story told = run(assignment);
  EXPECT_EQ(told.outcome->code, 0);
  const auto line = [](std::uint64_t number) {
    const std::string digits = std::to_string(number);
    return std::string(15 - digits.size(), '0') + digits + '\n';
  };
  for (std::uint64_t offset = 0; offset < 70 * mebibyte;) {
    const OutputPiece piece = read_output(tasks_.get(), first, offset, mebibyte);
    ASSERT_EQ(piece.total, 70 * mebibyte);
    ASSERT_EQ(piece.offset, offset == 32 * mebibyte ? 38 * mebibyte : offset);
    ASSERT_EQ(piece.dropped.has_value(), piece.offset != offset);
    std::string expected = line(piece.offset / mebibyte);
    while (expected.size() < mebibyte) expected += expected;
    ASSERT_EQ(piece.bytes == expected, true) << "at " << piece.offset;
    offset = piece.next;
  }
  EXPECT_TRUE(told.outcome->result.ends_with(line(69)));
}

TEST_F(KeeperTest, AFullDiskCostsOutputAndNothingElse) {
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit small{.rlim_cur = 200'000, .rlim_max = before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  keepers().start(shell("trap '' XFSZ; seq 100000; exit 6"));  // the nursery and its keepers have the limit, too
  setrlimit(RLIMIT_FSIZE, &before);
  ASSERT_TRUE(finish(first));
  EXPECT_EQ(story(first).outcome->code, 6);
  EXPECT_TRUE(story(first).outcome->result.ends_with("\n100000\n"));
  EXPECT_EQ(dropped_output(tasks_.get(), first), (std::vector<OutputRange>{{200'000, 588'895}}));
}

TEST_F(KeeperTest, ManyRunsAtOnce) {
  for (std::uint64_t task = 1; task <= 40; ++task) keepers().start(shell("echo $DUET_TASK_ID; exit $DUET_CODE", task));
  for (std::uint64_t task = 1; task <= 40; ++task) {
    ASSERT_TRUE(finish({task, 1}));
    EXPECT_EQ(output_of({task, 1}), "task-" + std::to_string(task) + "\n");
  }
  EXPECT_EQ(keepers().count(), 0U);
}

TEST_F(KeeperTest, AttemptsAreKeptApart) {
  Assignment assignment = shell("echo first try; exit 1");
  run(assignment);
  assignment = shell("echo second try");
  assignment.run.attempt = 2;
  run(assignment);
  EXPECT_EQ(output_of({1, 1}), "first try\n");
  EXPECT_EQ(output_of({1, 2}), "second try\n");
}

}  // namespace
}  // namespace duet::task
