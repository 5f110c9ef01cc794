#include "automation/programs.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <exception>
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#include "duet/base/fd.h"
#include "process/launch.h"
#include "process/process_tree.h"
#include "task/leftovers.h"
#include "task/run_record.h"
#include "task/store_secrets.h"

namespace duet::automation {
namespace {

constexpr std::size_t kept_of_stderr = 1'024;
constexpr std::size_t held_by_a_pipe = 64 * 1'024;
constexpr std::chrono::seconds grace{2};
constexpr std::chrono::seconds patience{3};

[[noreturn]] void fail(const char* what) { throw std::system_error(errno, std::generic_category(), what); }

// What the program reads, from its beginning: no pipe, so that one that does not read holds nothing up.
base::Fd file_of(const std::string& text) {
  base::Fd fd(memfd_create("event", MFD_CLOEXEC));
  if (!fd) fail("memfd_create");
  for (std::size_t at = 0; at < text.size();) {
    const ssize_t written = write(fd.get(), text.data() + at, text.size() - at);
    if (written <= 0) fail("write");
    at += static_cast<std::size_t>(written);
  }
  if (lseek(fd.get(), 0, SEEK_SET) != 0) fail("lseek");
  return fd;
}

std::string path_of(int folder) {
  return std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(folder)).string();
}

std::string last_line(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

}  // namespace

class Programs::Running {
 public:
  Running(Programs& owner, const Program& program, Ended call) : owner_(owner), ended(std::move(call)) {
    const base::Fd input = file_of(program.input);
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) fail("pipe2");
    errors_ = base::Fd(ends[0]);
    const base::Fd theirs(ends[1]);
    fcntl(errors_.get(), F_SETFL, O_NONBLOCK);
    process::Environment environment = process::current_environment();
    if (owner_.hides_store_) environment = task::without_store_secrets(std::move(environment));
    environment["DUET_TASK_MARK"] = fingerprint_.mark;
    child_ = process::launch({.arguments = program.command,
                              .environment = std::move(environment),
                              .directory = path_of(owner_.folder_),
                              .standard = {input.get(), -1, theirs.get()}});
    fingerprint_.main = child_.pid;
    if (const auto started = process::read_process(child_.pid)) fingerprint_.main_ticks = started->start_ticks;
    timeout_ = program.timeout;
    timer_ = owner_.loop_.after(program.timeout, [this] { end(); });
    try {
      end_watch_ = owner_.loop_.watch(child_.pidfd.get(), EPOLLIN, ending_);
      error_watch_ = owner_.loop_.watch(errors_.get(), EPOLLIN, drain_);
    } catch (...) {  // nobody would hear of its end
      kill_all();
      process::reap(child_);
      throw;
    }
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;
  ~Running() {
    if (child_.pid == 0) return;
    kill_all();
    end_watch_.cancel();
    process::reap(child_);
  }

 private:
  struct Ending final : transport::Loop::Watcher {
    explicit Ending(Running& owner) : of(owner) {}
    void on_ready(std::uint32_t) override { of.has_ended(); }
    Running& of;
  };
  struct Drain final : transport::Loop::Watcher {
    explicit Drain(Running& owner) : of(owner) {}
    void on_ready(std::uint32_t) override { of.read_errors(); }
    Running& of;
  };

  void read_errors() {
    std::array<char, held_by_a_pipe> buffer;  // not initialised: what a pipe holds may be the last that there is
    const ssize_t count = read(errors_.get(), buffer.data(), buffer.size());
    if (count < 0 && errno == EAGAIN) return;
    if (count <= 0) return error_watch_.cancel();
    tail_.append(buffer.data(), static_cast<std::size_t>(count));
    if (tail_.size() > kept_of_stderr) tail_.erase(0, tail_.size() - kept_of_stderr);
  }

  void end() {
    late_ = true;
    leftovers_.emplace(owner_.loop_, fingerprint_, grace, [this] {
      leftovers_.reset();
      if (!end_watch_) conclude();
    });
    // What belongs to somebody else, or hangs in the kernel, must not keep its place for ever.
    timer_ = owner_.loop_.after(grace + patience, [this] {
      leftovers_.reset();
      if (!end_watch_) conclude();
    });
  }

  // Twice, for those that were forked while the first look lasted.
  void kill_all() const {
    for (int look = 0; look < 2; ++look) {
      for (const process::ProcessEntry& entry : task::find_leftovers(fingerprint_)) {
        process::signal_process(process::hold_process(entry), SIGKILL);
      }
      kill(-child_.pid, SIGKILL);
    }
  }

  void has_ended() {
    end_watch_.cancel();
    if (!leftovers_) conclude();
  }

  // What is left of its process group goes with it.
  void conclude() {
    kill(-child_.pid, SIGKILL);
    timer_.cancel();
    if (error_watch_) read_errors();
    const process::ExitStatus status = process::reap(child_);
    child_.pid = 0;
    owner_.has_ended(*this, failure_of(status));
  }

  std::string failure_of(const process::ExitStatus& status) const {
    if (!late_ && status.is_known && status.code == 0 && status.signal == 0) return {};
    std::string text = late_                ? "it took longer than " + std::to_string(timeout_.count()) + " ms"
                       : status.signal != 0 ? "it was ended by " + process::signal_name(status.signal)
                                            : "it ended with " + std::to_string(status.code);
    const std::string line = last_line(tail_);
    return line.empty() ? text : text + ": " + line;
  }

  Programs& owner_;
  base::Fd errors_;
  process::Child child_;
  task::Fingerprint fingerprint_{.mark = task::random_mark(), .boot = process::boot_id()};
  std::chrono::milliseconds timeout_{0};
  std::string tail_;
  bool late_ = false;
  Ending ending_{*this};
  Drain drain_{*this};
  transport::Loop::Timer timer_;
  transport::Loop::Watch end_watch_;
  transport::Loop::Watch error_watch_;
  std::optional<task::Leftovers> leftovers_;  // while one that took too long is ended

 public:
  Ended ended;
};

Programs::Programs(transport::Loop& loop, int folder, bool hides_store)
    : loop_(loop), folder_(folder), hides_store_(hides_store) {}

Programs::~Programs() = default;

void Programs::close() {
  waiting_.clear();
  next_.cancel();
  running_.clear();
}

void Programs::run(Program program, std::function<void()> started, Ended ended) {
  Waiting next{std::move(program), std::move(started), std::move(ended)};
  if (running_.size() < most_running && waiting_.empty()) return start(next);
  if (waiting_.size() >= most_waiting) return next.ended("too many programs of rules wait already");
  waiting_.push_back(std::move(next));
}

void Programs::start(const Waiting& next) {
  next.started();
  try {
    running_.emplace_back(*this, next.program, next.ended);
  } catch (const std::exception& error) {
    next.ended(error.what());
  }
}

// It is gone at the end of the turn: it is called from within itself.
void Programs::has_ended(const Running& running, const std::string& failure) {
  const auto found = std::ranges::find_if(running_, [&](const Running& one) { return &one == &running; });
  const Ended ended = found->ended;
  auto gone = std::make_shared<std::list<Running>>();
  gone->splice(gone->begin(), running_, found);
  next_ = loop_.deferred([this, gone]() mutable {
    gone.reset();
    while (running_.size() < most_running && !waiting_.empty()) {
      const Waiting next = std::move(waiting_.front());
      waiting_.pop_front();
      start(next);
    }
  });
  ended(failure);
}

}  // namespace duet::automation
