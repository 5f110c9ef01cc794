#pragma once

#include <chrono>
#include <cstddef>

#include "duet/base/clock.h"
#include "duet/transport/loop.h"

namespace duet::app {

/// Sees to it that strangers cannot fill the log: ten lines a second and door. For the loop's thread only.
class RefusalLog {
 public:
  explicit RefusalLog(const transport::Loop& loop) : loop_(loop) {}

  bool may_log() {
    constexpr std::size_t most_lines = 10;
    const base::TimePoint now = loop_.now();
    if (now - second_ >= std::chrono::seconds(1)) {
      second_ = now;
      lines_ = 0;
    }
    return ++lines_ <= most_lines;
  }

 private:
  const transport::Loop& loop_;
  base::TimePoint second_;  // when the lines were last counted from
  std::size_t lines_ = 0;
};

}  // namespace duet::app
