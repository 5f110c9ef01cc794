#pragma once

#include <memory>
#include <mutex>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "duet/base/log.h"
#include "duet/base/log_sink.h"

namespace duet::peer {

using Strings = std::vector<std::string>;

/// Keeps what a log writes, without the times.
class LogTape {
 public:
  explicit LogTape(base::Level level = base::Level::warn) : log_(std::make_unique<Sink>(*this), level) {}

  base::Log& log() { return log_; }

  Strings lines() {
    log_.flush(std::chrono::seconds(20));
    const std::lock_guard guard(mutex_);
    std::istringstream stream(text_);
    Strings found;
    constexpr std::size_t time_size = 25;
    for (std::string line; std::getline(stream, line);) found.push_back(line.substr(time_size));
    return found;
  }

 private:
  struct Sink final : base::LogSink {
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
  base::Log log_;
};

}  // namespace duet::peer
