#include "duet/base/log.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <fstream>
#include <future>
#include <mutex>
#include <numeric>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "duet/base/clock.h"
#include "duet/base/fd.h"
#include "duet/base/log_sink.h"

namespace duet::base {
namespace {

using namespace std::chrono_literals;
using Strings = std::vector<std::string>;

constexpr auto kPatience = 60s;
constexpr LogLimits kPatient{.flush = kPatience};

/// The test's end of a sink: what was written, and what shall become of the next write.
class Tape {
 public:
  enum class Mode { take, hold, refuse, fail };

  std::unique_ptr<LogSink> sink(bool joins_lines = false);

  void set(Mode mode) {
    const std::lock_guard guard(mutex_);
    mode_ = mode;
    changed_.notify_all();
  }

  Strings writes() const {
    const std::lock_guard guard(mutex_);
    return writes_;
  }

  /// The lines without time and level.
  Strings messages() const {
    Strings found;
    const Strings all = writes();
    std::istringstream stream(std::accumulate(all.begin(), all.end(), std::string()));
    for (std::string line; std::getline(stream, line);)
      found.push_back(line.substr(std::min<std::size_t>(31, line.size())));
    return found;
  }

  bool await_held_write() {
    return await([this] { return held_; });
  }
  bool await_end_of_sink() {
    return await([this] { return sink_is_gone_; });
  }

 private:
  class TapeSink;

  template <typename Ready>
  bool await(Ready ready) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kPatience, ready);
  }

  std::size_t take(std::string_view text) {
    std::unique_lock lock(mutex_);
    held_ = mode_ == Mode::hold;
    changed_.notify_all();
    changed_.wait(lock, [this] { return mode_ != Mode::hold; });
    held_ = false;
    if (mode_ == Mode::fail) throw std::runtime_error("sink");
    if (mode_ == Mode::refuse) return 0;
    writes_.emplace_back(text);
    return text.size();
  }

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Mode mode_ = Mode::take;
  Strings writes_;
  bool held_ = false;
  bool sink_is_gone_ = false;
};

class Tape::TapeSink final : public LogSink {
 public:
  TapeSink(Tape& tape, bool joins_lines) : tape_(tape), joins_lines_(joins_lines) {}
  ~TapeSink() override {
    const std::lock_guard guard(tape_.mutex_);
    tape_.sink_is_gone_ = true;
    tape_.changed_.notify_all();
  }
  std::size_t write(std::string_view text) override { return tape_.take(text); }
  bool joins_lines() const override { return joins_lines_; }

 private:
  Tape& tape_;
  bool joins_lines_;
};

std::unique_ptr<LogSink> Tape::sink(bool joins_lines) { return std::make_unique<TapeSink>(*this, joins_lines); }

Strings numbered(int from, int to) {
  Strings all;
  for (int i = from; i < to; ++i) all.push_back("line n=" + std::to_string(i));
  return all;
}

void log_numbered(Log& log, int from, int to) {
  for (int i = from; i < to; ++i) log.warn("line", {{"n", i}});
}

/// All but the first wait while that one is being written.
void log_behind_a_held_write(Tape& tape, Log& log, int count) {
  tape.set(Tape::Mode::hold);
  log_numbered(log, 0, 1);
  ASSERT_TRUE(tape.await_held_write());
  log_numbered(log, 1, count);
  tape.set(Tape::Mode::take);
  EXPECT_TRUE(log.flush());
}

TEST(Log, WritesALineForEachEvent) {
  Tape tape;
  VirtualClock clock(std::chrono::sys_days{std::chrono::November / 15 / 2026} + 9h + 30min + 123ms);
  Log log(tape.sink(), Level::warn, {}, clock);
  log.warn("Method not found", {{"method", "frobnicate"}, {"id", JsonText{"7"}}});
  EXPECT_TRUE(log.flush());
  EXPECT_EQ(tape.writes(), Strings{"2026-11-15T09:30:00.123Z warn  Method not found method=\"frobnicate\" id=7\n"});
}

TEST(Log, LeavesOutWhatIsBelowItsLevel) {
  Tape tape;
  Log log(tape.sink(), Level::warn, kPatient);
  log.debug("a");
  log.info("b");
  log.warn("c");
  log.error("d");
  EXPECT_TRUE(log.flush());
  EXPECT_EQ(tape.messages(), (Strings{"c", "d"}));
  EXPECT_FALSE(log.enabled(Level::info));
}

TEST(Log, ChangesItsLevelWhileItRuns) {
  Tape tape;
  Log log(tape.sink(), Level::error, kPatient);
  log.warn("a");
  log.set_level(Level::debug);
  EXPECT_EQ(log.level(), Level::debug);
  log.debug("b");
  log.set_level(Level::error);
  log.warn("c");
  EXPECT_TRUE(log.close());
  EXPECT_EQ(tape.messages(), Strings{"b"});
}

int writer_threads() {
  int count = 0;
  DIR* tasks = ::opendir("/proc/self/task");
  while (const dirent* task = ::readdir(tasks)) {
    std::ifstream comm(std::string("/proc/self/task/") + task->d_name + "/comm");
    std::string name;
    if (std::getline(comm, name) && name == "duet-log") ++count;
  }
  ::closedir(tasks);
  return count;
}

TEST(Log, StartsNoThreadBeforeTheFirstLine) {
  Tape tape;
  const int before = writer_threads();
  Log log(tape.sink(), Level::warn, kPatient);
  log.info("not written");
  EXPECT_TRUE(log.flush());
  EXPECT_LE(writer_threads(), before);
  log.warn("written");
  EXPECT_TRUE(log.flush());
  EXPECT_GE(writer_threads(), 1);
}

TEST(Log, WithoutASinkIsSilent) {
  Log log(nullptr, Level::debug);
  log.error("a");
  EXPECT_TRUE(log.flush());
  EXPECT_TRUE(log.close());
}

TEST(Log, TakesNothingAfterItWasClosed) {
  Tape tape;
  Log log(tape.sink(), Level::warn, kPatient);
  log.warn("a");
  EXPECT_TRUE(log.close());
  log.warn("b");
  EXPECT_TRUE(log.close());
  EXPECT_EQ(tape.messages(), Strings{"a"});
}

TEST(Log, WritesWhatIsQueuedBeforeItEnds) {
  Tape tape;
  {
    Log log(tape.sink(), Level::warn, kPatient);
    log_numbered(log, 0, 1000);
  }
  EXPECT_EQ(tape.messages(), numbered(0, 1000));
}

TEST(Log, KeepsTheOrderOfEachThread) {
  Tape tape;
  {
    Log log(tape.sink(), Level::warn, kPatient);
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&log, t] {
        for (int i = 0; i < 1000; ++i) log.warn("line", {{"thread", t}, {"n", i}});
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  const Strings messages = tape.messages();
  EXPECT_EQ(messages.size(), 4000u);
  for (int t = 0; t < 4; ++t) {
    const std::string start = "line thread=" + std::to_string(t) + " n=";
    int next = 0;
    for (const std::string& message : messages) {
      if (!message.starts_with(start)) continue;
      EXPECT_EQ(message, start + std::to_string(next++));
    }
    EXPECT_EQ(next, 1000);
  }
}

TEST(Log, WritesOneLineAtATime) {
  Tape tape;
  Log log(tape.sink(), Level::warn, kPatient);
  log_behind_a_held_write(tape, log, 100);
  EXPECT_EQ(tape.writes().size(), 100u);
  EXPECT_EQ(tape.messages(), numbered(0, 100));
}

TEST(Log, JoinsLinesThatWaitWhereTheSinkSaysSo) {
  Tape tape;
  Log log(tape.sink(true), Level::warn, kPatient);
  log_behind_a_held_write(tape, log, 100);
  EXPECT_LE(tape.writes().size(), 3u);
  EXPECT_EQ(tape.messages(), numbered(0, 100));
}

TEST(Log, JoinsWholeLinesUpToPipeBufWhenItIsFarBehind) {
  Tape tape;
  Log log(tape.sink(), Level::warn, kPatient);
  log_behind_a_held_write(tape, log, 5000);
  for (const std::string& write : tape.writes()) {
    EXPECT_EQ(write.back(), '\n');
    EXPECT_LE(write.size(), 4096u);
  }
  EXPECT_LT(tape.writes().size(), 100u);
  EXPECT_EQ(tape.messages(), numbered(0, 5000));
}

TEST(Log, DropsLinesWhenTheQueueIsFullAndSaysHowMany) {
  Tape tape;
  Log log(tape.sink(), Level::warn, {.queue_bytes = 1024, .flush = kPatience});
  tape.set(Tape::Mode::hold);
  log_numbered(log, 0, 1);
  ASSERT_TRUE(tape.await_held_write());
  log_numbered(log, 1, 1000);
  tape.set(Tape::Mode::take);
  EXPECT_TRUE(log.flush());
  log.warn("room again");
  EXPECT_TRUE(log.flush());

  const Strings messages = tape.messages();
  const int kept = static_cast<int>(messages.size()) - 2;
  ASSERT_GT(kept, 10);
  EXPECT_LT(kept, 30) << "about 40 bytes a line";
  Strings expected = numbered(0, kept);
  expected.push_back("Log lines were dropped dropped=" + std::to_string(1000 - kept));
  expected.emplace_back("room again");
  EXPECT_EQ(messages, expected);
}

TEST(Log, PutsTheNumberOfDroppedLinesWhereTheyAreMissing) {
  Tape tape;
  Log log(tape.sink(), Level::warn, {.queue_bytes = 300, .flush = kPatience});
  log.error(std::string(500, 'x'));
  log.warn("fits");
  EXPECT_TRUE(log.flush());
  EXPECT_EQ(tape.messages(), (Strings{"Log lines were dropped dropped=1", "fits"}));
}

TEST(Log, CountsWhatTheSinkRefusesAndGoesOnWhenItCan) {
  for (const auto broken : {Tape::Mode::refuse, Tape::Mode::fail}) {
    Tape tape;
    Log log(tape.sink(), Level::warn, kPatient);
    log_numbered(log, 0, 1);
    EXPECT_TRUE(log.flush());
    tape.set(broken);
    log_numbered(log, 1, 3);
    EXPECT_TRUE(log.flush());
    log_numbered(log, 3, 4);
    EXPECT_TRUE(log.flush());
    tape.set(Tape::Mode::take);
    log_numbered(log, 4, 5);
    EXPECT_TRUE(log.flush());
    EXPECT_EQ(tape.messages(), (Strings{"line n=0", "Log lines were dropped dropped=3", "line n=4"}));
  }
}

TEST(Log, GivesAStuckSinkHalfASecondAtItsEnd) {
  Tape tape;
  VirtualClock clock;
  const TimePoint start = clock.now();
  {
    Log log(tape.sink(), Level::warn, {}, clock);
    tape.set(Tape::Mode::hold);
    log_numbered(log, 0, 3);
    ASSERT_TRUE(tape.await_held_write());
    auto closed = std::async(std::launch::async, [&log] { return log.close(); });
    ASSERT_TRUE(clock.await_waiters(1));
    EXPECT_EQ(clock.next_deadline(), start + 500ms);
    clock.advance(500ms);
    EXPECT_FALSE(closed.get());
  }
  // The thread that was left behind ends with its write, and takes nothing else up.
  tape.set(Tape::Mode::take);
  ASSERT_TRUE(tape.await_end_of_sink());
  EXPECT_EQ(tape.messages(), numbered(0, 1));
}

TEST(Log, AFlushThatTookTooLongLosesNothing) {
  Tape tape;
  VirtualClock clock;
  Log log(tape.sink(), Level::warn, {}, clock);
  tape.set(Tape::Mode::hold);
  log_numbered(log, 0, 3);
  ASSERT_TRUE(tape.await_held_write());
  auto flushed = std::async(std::launch::async, [&log] { return log.flush(100ms); });
  ASSERT_TRUE(clock.await_waiters(1));
  EXPECT_EQ(clock.next_deadline(), clock.now() + 100ms);
  clock.advance(100ms);
  EXPECT_FALSE(flushed.get());
  tape.set(Tape::Mode::take);
  EXPECT_TRUE(log.flush());
  EXPECT_EQ(tape.messages(), numbered(0, 3));
}

TEST(Log, MayBeClosedWhileOthersWrite) {
  Tape tape;
  Log log(tape.sink(), Level::warn, kPatient);
  std::atomic<bool> stop = false;
  std::thread other([&] {
    while (!stop) log.warn("line");
  });
  while (tape.writes().empty()) std::this_thread::yield();
  log.close();
  const std::size_t written = tape.writes().size();
  log.warn("line");
  EXPECT_EQ(tape.writes().size(), written);
  stop = true;
  other.join();
}

void fill(const Fd& write_end) {
  set_nonblocking(write_end.get(), true);
  const std::string block(4096, '.');
  while (::write(write_end.get(), block.data(), block.size()) > 0) {
  }
}

std::string read_all(const Fd& read_end) {
  std::string all;
  std::vector<char> block(65536);
  for (ssize_t n = 0; (n = ::read(read_end.get(), block.data(), block.size())) > 0;) {
    all.append(block.data(), static_cast<std::size_t>(n));
  }
  return all;
}

/// With a field list that makes a line longer than a pipe takes in one piece.
std::string log_long_lines(Log& log, int count) {
  const std::string message(1000, 'm');
  const std::string text(200, 't');
  std::string expected;
  for (int i = 0; i < count; ++i) {
    const Field f("f", text);
    log.warn(message, {f, f, f, f, f, f, f, f, f, f, f, f, f, f, f, f, f, f, {"n", i}});
    expected += message;
    for (int k = 0; k < 18; ++k) expected += " f=\"" + text + '"';
    expected += " n=" + std::to_string(i) + '\n';
  }
  return expected;
}

std::string without_stamps(const std::string& text) {
  std::istringstream stream(text);
  std::string rest;
  for (std::string line; std::getline(stream, line);)
    rest += line.substr(std::min<std::size_t>(31, line.size())) + '\n';
  return rest;
}

TEST(Log, CompletesEveryLineOnAPipeThatIsFullNowAndThen) {
  for (const bool nonblocking : {false, true}) {
    Pipe pipe = make_pipe();
    set_nonblocking(pipe.write_end.get(), nonblocking);
    auto reader = std::async(std::launch::async, [&pipe] { return read_all(pipe.read_end); });
    std::string expected;
    {
      Log log(stream_sink(std::move(pipe.write_end), false), Level::warn, kPatient);
      expected = log_long_lines(log, 150);
      EXPECT_TRUE(log.close());
    }
    EXPECT_EQ(without_stamps(reader.get()), expected) << "nonblocking: " << nonblocking;
  }
}

TEST(Log, NeverHoldsItsCallersUpForAFullPipe) {
  for (const bool nonblocking : {false, true}) {
    Pipe pipe = make_pipe();
    fill(pipe.write_end);
    set_nonblocking(pipe.write_end.get(), nonblocking);
    VirtualClock clock;
    {
      Log log(stream_sink(std::move(pipe.write_end), false), Level::warn, {.queue_bytes = 4096}, clock);
      log_numbered(log, 0, 10'000);
      auto closed = std::async(std::launch::async, [&log] { return log.close(); });
      ASSERT_TRUE(clock.await_waiters(1));
      clock.advance(500ms);
      EXPECT_FALSE(closed.get());
    }
    // What was left behind finishes the line it may have begun, and lets go of the pipe.
    const std::string read = read_all(pipe.read_end);
    const std::string line = read.substr(std::min(read.find_first_not_of('.'), read.size()));
    EXPECT_TRUE(line.empty() || line.find(" line n=0\n") == line.size() - 10) << line;
  }
}

TEST(Log, SurvivesAReaderThatWentAway) {
  Pipe pipe = make_pipe();
  pipe.read_end.reset();
  Log log(stream_sink(std::move(pipe.write_end), false), Level::warn, kPatient);
  log_numbered(log, 0, 10);
  EXPECT_TRUE(log.flush()) << "and SIGPIPE has not ended the program";
}

TEST(Log, ColoursTheLevelOnlyWhenItsSinkDoes) {
  for (const bool coloured : {false, true}) {
    Pipe pipe = make_pipe();
    Log(stream_sink(std::move(pipe.write_end), coloured), Level::warn, kPatient).error("m");
    EXPECT_EQ(read_all(pipe.read_end).find("\x1b[31merror\x1b[0m m\n") != std::string::npos, coloured);
  }
}

}  // namespace
}  // namespace duet::base
