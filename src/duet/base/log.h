#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string_view>

#include "duet/api.h"
#include "duet/base/log_line.h"

namespace duet::base {

class Clock;
class LogSink;

struct LogLimits {
  std::size_t queue_bytes = std::size_t{1} << 20;
  std::chrono::milliseconds flush{500};
};

/// The program's log: one line an event, one write(2) a line. Only with more than 32 KiB to write, or if the sink says
/// so, are lines joined, to no more than PIPE_BUF bytes a write: so they stay whole where others write to as well.
///
/// Any thread may log at any time; it never blocks and never throws, whatever becomes of the sink. A thread of the
/// log's own, started with the first line, does the writing. When the queue is full, or the sink refuses, lines are
/// dropped, and a later line says how many (`dropped=N`). A sink that is stuck when the log ends is given up after
/// `LogLimits::flush`: its thread, with all it needs, is left behind. Without a sink nothing is logged.
class DUET_API Log {
 public:
  explicit Log(std::unique_ptr<LogSink> sink, Level level = Level::warn, LogLimits limits = {});
  Log(std::unique_ptr<LogSink> sink, Level level, LogLimits limits, Clock& clock);
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;
  ~Log();

  void debug(std::string_view message, Fields fields = {}) noexcept { write(Level::debug, message, fields); }
  void info(std::string_view message, Fields fields = {}) noexcept { write(Level::info, message, fields); }
  void warn(std::string_view message, Fields fields = {}) noexcept { write(Level::warn, message, fields); }
  void error(std::string_view message, Fields fields = {}) noexcept { write(Level::error, message, fields); }

  void write(Level level, std::string_view message, Fields fields = {}) noexcept {
    if (enabled(level)) enqueue(level, message, fields);
  }

  bool enabled(Level level) const noexcept { return level >= level_.load(std::memory_order_relaxed); }
  Level level() const noexcept { return level_.load(std::memory_order_relaxed); }
  void set_level(Level level) noexcept { level_.store(level, std::memory_order_relaxed); }

  /// Waits until the sink has had every line; false if that takes longer than `limit`.
  bool flush(std::chrono::milliseconds limit);
  bool flush() { return flush(limits_.flush); }

  /// Takes no more lines, flushes, and ends the writer or leaves it behind. The destructor does it if nobody has.
  bool close() noexcept;

 private:
  class Writer;

  void enqueue(Level level, std::string_view message, Fields fields) noexcept;

  std::atomic<Level> level_;
  LogLimits limits_;
  std::shared_ptr<Writer> writer_;
};

}  // namespace duet::base
