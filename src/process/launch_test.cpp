#include "process/launch.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "duet/base/sanitizer_test.h"

namespace duet::process {
namespace {

namespace fs = std::filesystem;

base::Fd cgroup_of_test;
bool dies_with_test = false;

enum class Way : std::uint8_t { as_it_is, in_a_cgroup, to_die_with_us };

/// Each is started in three ways; for the cgroup a plain file stands.
class ProcessTest : public testing::TestWithParam<Way> {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "duet-XXXXXX";
    folder_ = mkdtemp(name.data());
    dies_with_test = GetParam() == Way::to_die_with_us;
    if (GetParam() != Way::in_a_cgroup) return;
    cgroup_of_test.reset(open(entrance().c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  }
  void TearDown() override {
    fs::remove_all(folder_);
    cgroup_of_test.reset();
    dies_with_test = false;
  }

  fs::path entrance() const { return folder_ / "cgroup.procs"; }

  fs::path make_script(const fs::path& path, const std::string& text, fs::perms mode = fs::perms::owner_all) {
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text;
    fs::permissions(path, mode);
    return path;
  }

  fs::path folder_;
};

std::string read_all(int fd) {
  std::string text;
  char buffer[4096];
  ssize_t count = 0;
  while ((count = read(fd, buffer, sizeof buffer)) > 0) text.append(buffer, static_cast<std::size_t>(count));
  return text;
}

struct Ran {
  std::string output;
  ExitStatus status;
};

Child start(Launch what) {
  what.cgroup = cgroup_of_test.get();
  what.dies_with_us = dies_with_test;
  return launch(what);
}

Ran run(Launch what) {
  base::Pipe pipe = base::make_pipe();
  what.standard[1] = pipe.write_end.get();
  const Child child = start(what);
  pipe.write_end.reset();
  std::string output = read_all(pipe.read_end.get());
  return {std::move(output), reap(child)};
}

Launch shell(const std::string& script) {
  return {.arguments = {"/bin/sh", "-c", script}, .environment = current_environment()};
}

int run_as_it_is(const Launch& what) { return reap(launch(what)).code; }

LaunchError::Cause cause_of(const Launch& what) {
  try {
    reap(start(what));
  } catch (const LaunchError& error) {
    return error.cause();
  }
  throw std::logic_error("it was started");
}

TEST_P(ProcessTest, AProgramTellsItsCodeOrItsSignal) {
  EXPECT_EQ(run(shell("exit 7")).status.code, 7);
  const ExitStatus killed = run(shell("kill -KILL $$")).status;
  EXPECT_EQ(killed.signal, SIGKILL);
  EXPECT_EQ(killed.code, 0);
}

TEST_P(ProcessTest, TheDescriptorIsReadableOnceItHasEnded) {
  base::Pipe pipe = base::make_pipe();
  Launch what = shell("read line");
  what.standard[0] = pipe.read_end.get();
  const Child child = start(what);
  pollfd ready{.fd = child.pidfd.get(), .events = POLLIN, .revents = 0};
  EXPECT_EQ(poll(&ready, 1, 0), 0);
  pipe.write_end.reset();
  EXPECT_EQ(poll(&ready, 1, 60'000), 1);
  EXPECT_EQ(reap(child).code, 1);
}

// A program that runs must not be called one that was never started, for want of a descriptor.
TEST_P(ProcessTest, WithoutADescriptorForItAProgramCanStillBeStarted) {
  if (base::under_sanitizer) GTEST_SKIP() << "the sanitizer needs descriptors itself to look at an object's type";
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  const Launch what = shell("exit 3");
  const base::Pipe some = base::make_pipe();  // with fewer the program's own numbers would be out of range
  const base::Fd next(open("/dev/null", O_RDONLY | O_CLOEXEC));
  const rlimit none{.rlim_cur = static_cast<rlim_t>(next.get()), .rlim_max = before.rlim_max};
  setrlimit(RLIMIT_NOFILE, &none);
  pid_t pid = 0;
  EXPECT_NO_THROW(pid = spawn(what));
  EXPECT_THROW(launch(what), LaunchError);
  setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_EQ(reap({.pid = pid, .pidfd = {}}).code, 3);
}

TEST_P(ProcessTest, ArgumentsArriveAsTheyAre) {
  const std::string hard = "a \"b\" $(c) `d`\n'e' \\ \xff";
  Launch what{.arguments = {"printf", "%s|", hard, ""}, .environment = current_environment()};
  EXPECT_EQ(run(what).output, hard + "||");
}

TEST_P(ProcessTest, OnlyTheGivenEnvironmentIsSeen) {
  setenv("DUET_PROCESS_TEST", "leaked", 1);
  Launch what{.arguments = {"/usr/bin/env"}, .environment = {{"ONE", "1"}, {"EMPTY", ""}}};
  const std::string output = run(what).output;
  unsetenv("DUET_PROCESS_TEST");
  EXPECT_EQ(output, "EMPTY=\nONE=1\n");
}

TEST_P(ProcessTest, TheProgramIsLookedUpInThePathOfItsEnvironment) {
  make_script(folder_ / "bin/greet", "#!/bin/sh\necho from the path\n");
  make_script(folder_ / "first/greet", "not a program", fs::perms::owner_read);
  fs::create_directories(folder_ / "second/greet");
  const std::string path = (folder_ / "none").string() + ":" + (folder_ / "first").string() + ":" +
                           (folder_ / "second").string() + ":" + (folder_ / "bin").string();
  EXPECT_EQ(run({.arguments = {"greet"}, .environment = {{"PATH", path}}}).output, "from the path\n");
  EXPECT_EQ(find_program("greet", path), folder_ / "bin/greet");
  EXPECT_EQ(find_program("greet", "/nowhere"), "");
  EXPECT_EQ(find_program("", path), "");
  EXPECT_EQ(find_program((folder_ / "bin/greet").string(), ""), folder_ / "bin/greet");
  EXPECT_EQ(find_program((folder_ / "first/greet").string(), path), "");
}

TEST_P(ProcessTest, RelativeNamesAreMeantFromWhereTheProgramStarts) {
  make_script(folder_ / "tools/greet", "#!/bin/sh\necho relative\n");
  const std::string folder = folder_.string();
  EXPECT_EQ(run({.arguments = {"tools/greet"}, .directory = folder}).output, "relative\n");
  EXPECT_EQ(run({.arguments = {"greet"}, .environment = {{"PATH", "tools"}}, .directory = folder}).output,
            "relative\n");
  EXPECT_EQ(run({.arguments = {"greet"}, .environment = {{"PATH", ""}}, .directory = folder + "/tools"}).output,
            "relative\n");
}

TEST_P(ProcessTest, ALongDirectoryWorks) {
  std::string folder = folder_.string();
  while (folder.size() < 3000) folder += "/" + std::string(100, 'd');
  fs::create_directories(folder);
  Launch what = shell("pwd -P");
  what.directory = folder;
  EXPECT_EQ(run(what).output, fs::canonical(folder).string() + "\n");
}

TEST_P(ProcessTest, SaysWhyItCannotStart) {
  using Cause = LaunchError::Cause;
  const fs::path plain = make_script(folder_ / "plain", "text", fs::perms::owner_read);
  const fs::path orphan = make_script(folder_ / "orphan", "#!/no/such/interpreter\n");
  EXPECT_EQ(cause_of({.arguments = {"no-such-program"}, .environment = {{"PATH", "/usr/bin:/bin"}}}), Cause::not_found);
  EXPECT_EQ(cause_of({.arguments = {"/no/such/program"}}), Cause::not_found);
  EXPECT_EQ(cause_of({.arguments = {plain.string()}}), Cause::exec_failed);
  EXPECT_EQ(cause_of({.arguments = {orphan.string()}}), Cause::exec_failed);
  EXPECT_EQ(cause_of({.arguments = {"/bin/true", std::string(200'000, 'x')}}), Cause::exec_failed);
  EXPECT_EQ(cause_of({.arguments = {"/bin/true"}, .directory = "/no/such/folder"}), Cause::directory_missing);
  EXPECT_EQ(cause_of({.arguments = {"/bin/true"}, .directory = plain.string()}), Cause::directory_missing);
}

TEST_P(ProcessTest, NothingOfOursIsInherited) {
  const base::Fd leak(open("/dev/null", O_RDONLY));  // not close-on-exec
  ASSERT_GE(leak.get(), 3);
  struct sigaction before {};
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGHUP, &ignore, &before);
  sigset_t blocked;
  sigset_t old_mask;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &blocked, &old_mask);
  const Launch what = shell("ls /proc/$$/fd; readlink /proc/$$/fd/0; exec grep -E 'Sig(Blk|Ign)' /proc/self/status");
  const Ran ran = run(what);
  pthread_sigmask(SIG_SETMASK, &old_mask, nullptr);
  sigaction(SIGHUP, &before, nullptr);
  EXPECT_EQ(ran.output, "0\n1\n2\n/dev/null\nSigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
}

TEST_P(ProcessTest, FurtherDescriptorsGetTheirNumbersWhereverTheyAre) {
  base::Pipe first = base::make_pipe();
  base::Pipe second = base::make_pipe();
  // Each stands where the other is to go, one number between them is not given out.
  const int low = std::min(first.write_end.get(), second.write_end.get());
  const int high = std::max(first.write_end.get(), second.write_end.get());
  ASSERT_LT(high, 100);
  Launch what{.arguments = {"/bin/bash", "-c",
                            "echo at low >&" + std::to_string(low) + "; echo at high >&" + std::to_string(high) +
                                "; ls /proc/$$/fd; true"},
              .environment = {{"PATH", "/usr/bin:/bin"}}};
  what.further = {{low, high}, {high, low}};
  const Ran ran = run(what);
  EXPECT_EQ(ran.status.code, 0);
  EXPECT_EQ(std::count(ran.output.begin(), ran.output.end(), '\n'), 5) << ran.output;
  const bool first_is_low = first.write_end.get() == low;
  first.write_end.reset();
  second.write_end.reset();
  EXPECT_EQ(read_all(first.read_end.get()), first_is_low ? "at high\n" : "at low\n");
  EXPECT_EQ(read_all(second.read_end.get()), first_is_low ? "at low\n" : "at high\n");
}

TEST_P(ProcessTest, StandardStreamsMayBeCrossed) {
  base::Pipe pipe = base::make_pipe();
  Launch what = shell("echo out; echo err >&2");
  what.standard = {-1, -1, pipe.write_end.get()};
  const Child child = start(what);
  pipe.write_end.reset();
  EXPECT_EQ(read_all(pipe.read_end.get()), "err\n");
  reap(child);
}

TEST_P(ProcessTest, ItHasASessionOrAGroupOfItsOwn) {
  const std::string script = "cut -d' ' -f1,5,6 /proc/$$/stat; echo $$";
  Launch what = shell(script);
  const auto numbers = [](const std::string& text) {
    std::vector<long> found;
    std::istringstream words(text);
    for (long number = 0; words >> number;) found.push_back(number);
    return found;
  };
  const auto session = numbers(run(what).output);
  ASSERT_EQ(session.size(), 4U);
  EXPECT_EQ(session[1], session[3]);
  EXPECT_EQ(session[2], session[3]);
  what.new_session = false;
  const auto group = numbers(run(what).output);
  ASSERT_EQ(group.size(), 4U);
  EXPECT_EQ(group[1], group[3]);
  EXPECT_EQ(group[2], getsid(0));
}

TEST_P(ProcessTest, AnOpenedProgramRunsAfterItsFileIsGone) {
  const fs::path copy = folder_ / "copy";
  fs::copy_file("/bin/echo", copy);
  const base::Fd opened(open(copy.c_str(), O_RDONLY | O_CLOEXEC));
  fs::remove(copy);
  EXPECT_EQ(run({.arguments = {"any name", "still", "here"}, .executable = opened.get()}).output, "still here\n");
}

INSTANTIATE_TEST_SUITE_P(Anywhere, ProcessTest, testing::Values(Way::as_it_is));
INSTANTIATE_TEST_SUITE_P(InACgroup, ProcessTest, testing::Values(Way::in_a_cgroup));
INSTANTIATE_TEST_SUITE_P(DyingWithUs, ProcessTest, testing::Values(Way::to_die_with_us));

// A process that starts `what` and is killed then; whether the program has ended by that, within the given time.
bool dies_with_killed_parent(const Launch& what, int patience_ms) {
  base::Pipe told = base::make_pipe();
  const pid_t parent = fork();
  if (parent == 0) {
    const pid_t pid = spawn(what);
    [[maybe_unused]] const ssize_t count = write(told.write_end.get(), &pid, sizeof pid);
    while (true) pause();
  }
  pid_t pid = 0;
  EXPECT_EQ(read(told.read_end.get(), &pid, sizeof pid), static_cast<ssize_t>(sizeof pid));
  const base::Fd program(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  kill(parent, SIGKILL);
  waitpid(parent, nullptr, 0);
  pollfd ended{.fd = program.get(), .events = POLLIN, .revents = 0};
  const bool has_ended = poll(&ended, 1, patience_ms) == 1;
  syscall(SYS_pidfd_send_signal, program.get(), SIGKILL, nullptr, 0);
  return has_ended;
}

TEST(Process, DiesWithUsOnlyIfItIsTo) {
  Launch what = shell("trap '' HUP TERM; exec sleep 1000");
  EXPECT_FALSE(dies_with_killed_parent(what, 100));
  what.dies_with_us = true;
  EXPECT_TRUE(dies_with_killed_parent(what, 60'000));
}

TEST(Process, BeginsInTheCgroup) {
  base::Pipe entrance = base::make_pipe();
  Launch what = shell("exit 3");
  what.cgroup = entrance.write_end.get();
  EXPECT_EQ(run_as_it_is(what), 3);
  entrance.write_end.reset();
  EXPECT_EQ(read_all(entrance.read_end.get()), "0") << "whoever writes that enters";
}

TEST(Process, IsNotStartedOutsideOfTheCgroup) {
  const base::Fd closed(open("/dev/null", O_RDONLY | O_CLOEXEC));
  Launch what = shell("exit 3");
  what.cgroup = closed.get();
  try {
    run_as_it_is(what);
    FAIL();
  } catch (const LaunchError& error) {
    EXPECT_EQ(error.error(), EBADF);
    EXPECT_NE(std::string(error.what()).find("cgroup"), std::string::npos);
  }
}

TEST(Process, SignalsHaveNames) {
  EXPECT_EQ(signal_name(SIGKILL), "SIGKILL");
  EXPECT_EQ(signal_name(SIGTERM), "SIGTERM");
  EXPECT_EQ(signal_name(64), "SIG64");
}

}  // namespace
}  // namespace duet::process
