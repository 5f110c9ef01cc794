#pragma once

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <ctime>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

namespace load {

inline std::uint64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(now.tv_nsec);
}

inline void sleep_ms(long ms) {
  const timespec time{ms / 1000, ms % 1000 * 1'000'000};
  nanosleep(&time, nullptr);
}

[[noreturn]] inline void fail(const char* what) { throw std::system_error(errno, std::generic_category(), what); }

class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Fd() { reset(); }

  int get() const { return fd_; }
  void reset() {
    if (fd_ >= 0) close(std::exchange(fd_, -1));
  }

 private:
  int fd_ = -1;
};

/// The server under test: a process group of its own, with pipes for stdin and stdout if it talks there.
class Process {
 public:
  Process(std::vector<char*> command, bool on_stdio) {
    Fd child_in(open("/dev/null", O_RDONLY | O_CLOEXEC));
    Fd child_out(open("/dev/null", O_WRONLY | O_CLOEXEC));
    if (on_stdio) {
      std::tie(child_in, to_) = make_pipe();
      std::tie(from_, child_out) = make_pipe();
      fcntl(to_.get(), F_SETFL, O_NONBLOCK);
    }
    start(command, child_in.get(), child_out.get());
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  ~Process() { stop(); }

  pid_t pid() const { return pid_; }
  int to() const { return to_.get(); }
  int from() const { return from_.get(); }

  /// Ends the input of a server on stdio, asks others with SIGTERM; waits. Returns the milliseconds that took.
  double stop() {
    if (pid_ < 0) return 0;
    const std::uint64_t begin = now_ns();
    if (to_.get() >= 0) {
      to_.reset();
    } else {
      kill(-pid_, SIGTERM);
    }
    if (!exits_within(5000)) kill(-pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = -1;
    return static_cast<double>(now_ns() - begin) / 1e6;
  }

  /// Processor time of all its threads.
  std::uint64_t cpu_ns() const {
    clockid_t clock{};
    timespec time{};
    if (clock_getcpuclockid(pid_, &clock) != 0 || clock_gettime(clock, &time) != 0) return 0;
    return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(time.tv_nsec);
  }

  /// Pages that were new to it, or came back.
  long page_faults() const {
    std::ifstream file("/proc/" + std::to_string(pid_) + "/stat");
    std::string word;
    for (int field = 0; field < 10; ++field) file >> word;
    return file ? std::stol(word) : 0;
  }

  /// smaps_rollup counts pages; VmRSS is an estimate that may be some hundred KiB off.
  long rss_kib() const { return number_in("smaps_rollup", "Rss:"); }
  long peak_kib() const { return number_in("status", "VmHWM:"); }

 private:
  static std::pair<Fd, Fd> make_pipe() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) fail("pipe2");
    return {Fd(ends[0]), Fd(ends[1])};
  }

  void start(std::vector<char*>& command, int in, int out) {
    command.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    errno = posix_spawnp(&pid_, command[0], &actions, &attributes, command.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    if (errno != 0) fail(command[0]);
  }

  bool exits_within(int ms) const {
    const Fd handle(static_cast<int>(syscall(SYS_pidfd_open, pid_, 0)));
    pollfd exited{handle.get(), POLLIN, 0};
    return poll(&exited, 1, ms) > 0;
  }

  long number_in(const char* file, std::string_view name) const {
    std::ifstream lines("/proc/" + std::to_string(pid_) + "/" + file);
    for (std::string word; lines >> word;) {
      long number = 0;
      if (word == name && lines >> number) return number;
    }
    return -1;
  }

  pid_t pid_ = -1;
  Fd to_;
  Fd from_;
};

}  // namespace load
