#include "process/tree_usage.h"

#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <memory>

#include <gtest/gtest.h>

#include "duet/base/fd.h"
#include "duet/base/sanitizer_test.h"
#include "process/launch.h"

namespace duet::process {
namespace {

constexpr std::size_t mebibyte = std::size_t{1} << 20U;

std::size_t own_memory() {
  std::size_t all_pages = 0;
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> all_pages >> pages;
  return pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

// A child that has `bytes` of memory in use, and says so before it waits to be killed.
class Hog {
 public:
  explicit Hog(std::size_t bytes) {
    base::Pipe ready = base::make_pipe();
    pid_ = fork();
    if (pid_ == 0) {
      const std::unique_ptr<char[]> memory(new char[bytes]);
      std::memset(memory.get(), 1, bytes);
      [[maybe_unused]] const ssize_t told = write(ready.write_end.get(), memory.get(), 1);
      while (true) pause();
    }
    ready.write_end.reset();
    char byte = 0;
    is_ready_ = read(ready.read_end.get(), &byte, 1) == 1;
  }
  Hog(const Hog&) = delete;
  Hog& operator=(const Hog&) = delete;
  ~Hog() { end(); }

  bool is_ready() const { return is_ready_; }
  pid_t pid() const { return pid_; }
  rusage end() {
    rusage used{};
    if (pid_ <= 0 || std::exchange(has_ended_, true)) return used;
    kill(pid_, SIGKILL);
    wait4(pid_, nullptr, 0, &used);
    return used;
  }

 private:
  pid_t pid_ = 0;
  bool is_ready_ = false;
  bool has_ended_ = false;
};

TEST(TreeUsage, CountsTheMemoryOfProcessesTogether) {
  Hog first(60 * mebibyte);
  Hog second(60 * mebibyte);
  ASSERT_TRUE(first.is_ready() && second.is_ready());
  const std::vector<pid_t> found = children_below(getpid());
  EXPECT_NE(std::ranges::find(found, first.pid()), found.end());
  TreeUsage usage;
  usage.look();
  usage.reaped(first.pid(), first.end());
  usage.reaped(second.pid(), second.end());
  EXPECT_GE(usage.so_far(false).max_memory, 120 * mebibyte);
  // Each has all of this process as well; with a sanitizer that is much.
  EXPECT_LT(usage.so_far(false).max_memory, 200 * mebibyte + 2 * own_memory());
}

TEST(TreeUsage, OfOneProcessThePeakIsKnownWithoutALook) {
  Hog hog(80 * mebibyte);
  ASSERT_TRUE(hog.is_ready());
  TreeUsage usage;
  usage.reaped(hog.pid(), hog.end());
  EXPECT_GE(usage.so_far(false).max_memory, 80 * mebibyte);
}

TEST(TreeUsage, AChildThatWasStartedDoesNotCountWhatWasFreedBefore) {
  if (base::under_sanitizer) GTEST_SKIP() << "the sanitizer keeps what is freed";
  const std::size_t before = own_memory();
  {
    const std::unique_ptr<char[]> memory(new char[200 * mebibyte]);
    std::memset(memory.get(), 1, 200 * mebibyte);
    EXPECT_NE(memory[mebibyte], 0);
  }
  forget_peak_memory();
  const pid_t pid = spawn({.arguments = {"/bin/true"}});
  rusage used{};
  ASSERT_EQ(wait4(pid, nullptr, 0, &used), pid);
  TreeUsage usage;
  usage.reaped(pid, used);
  EXPECT_LT(usage.so_far(false).max_memory, before + 100 * mebibyte);
}

TEST(TreeUsage, WhoIsSparedDoesNotCount) {
  Hog own(mebibyte);
  Hog other(60 * mebibyte);
  ASSERT_TRUE(own.is_ready() && other.is_ready());
  TreeUsage usage([&](const ProcessEntry& process) { return process.pid == other.pid(); });
  usage.look();
  const std::uint64_t looked = usage.so_far(true).max_memory;
  usage.reaped(other.pid(), other.end());
  EXPECT_EQ(usage.so_far(false).max_memory, looked);
  EXPECT_EQ(usage.so_far(false).cpu.count(), 0);
  EXPECT_LT(looked, 60 * mebibyte);
}

TEST(TreeUsage, CountsTheTimeOfThoseThatLiveAndOfThoseThatWereReaped) {
  base::Pipe ready = base::make_pipe();
  const pid_t pid = fork();
  if (pid == 0) {
    timespec used{};
    do clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    while (used.tv_sec == 0 && used.tv_nsec < 300'000'000);
    [[maybe_unused]] const ssize_t told = write(ready.write_end.get(), "x", 1);
    while (true) pause();
  }
  ready.write_end.reset();
  char byte = 0;
  ASSERT_EQ(read(ready.read_end.get(), &byte, 1), 1);
  TreeUsage usage;
  constexpr std::chrono::milliseconds least{250};  // the kernel counts the living in ticks of up to 10 ms
  EXPECT_GE(usage.so_far(true).cpu, least);
  EXPECT_EQ(usage.so_far(false).cpu.count(), 0);
  kill(pid, SIGKILL);
  rusage used{};
  wait4(pid, nullptr, 0, &used);
  usage.reaped(pid, used);
  EXPECT_GE(usage.so_far(false).cpu, least);
}

}  // namespace
}  // namespace duet::process
