#pragma once

#include <memory>
#include <mutex>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "duet/base/log.h"
#include "duet/base/log_sink.h"

namespace duet::base {

/// Keeps what a log writes, without the times.
class LogTape {
 public:
  explicit LogTape(Level level = Level::warn) : log_(std::make_unique<Sink>(*this), level) {}

  Log& log() { return log_; }

  std::vector<std::string> lines() {
    log_.flush(std::chrono::seconds(20));
    const std::lock_guard guard(mutex_);
    std::istringstream stream(text_);
    std::vector<std::string> found;
    constexpr std::size_t time_size = 25;
    for (std::string line; std::getline(stream, line);) found.push_back(line.substr(time_size));
    return found;
  }

 private:
  struct Sink final : LogSink {
    explicit Sink(LogTape& owner) : tape(owner) {}
    std::size_t write(std::string_view lines) override {
      const std::lock_guard guard(tape.mutex_);
      tape.text_ += lines;
      return lines.size();
    }
    LogTape& tape;
  };

  std::mutex mutex_;
  std::string text_;
  Log log_;
};

}  // namespace duet::base
