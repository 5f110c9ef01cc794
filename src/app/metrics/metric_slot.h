#pragma once

#include <algorithm>
#include <cstdint>

#include "app/metrics/histogram.h"

namespace duet::app {

/// Seconds since 1970, UTC.
using MetricTime = std::uint32_t;

/// Something that is there in a number: the largest in a time, and the last.
struct MetricLevel {
  std::uint32_t most = 0;
  std::uint32_t last = 0;

  void set(std::uint64_t now) {
    last = static_cast<std::uint32_t>(std::min<std::uint64_t>(now, UINT32_MAX));
    most = std::max(most, last);
  }
};

/// Of turns of the loop, in units of 1024 ns, up to 34 s: a shift is cheaper than a division.
using TurnTimes = Histogram<96>;
inline constexpr int turn_time_shift = 10;
inline constexpr double turn_time_unit = 1.024;  ///< us

/// How long tasks waited or ran, in ms, up to 6 days.
using TaskDurations = Histogram<112>;

/// What was counted in a time, from one second to some later one.
struct MetricCounts {
  MetricTime start = 0;
  MetricTime life = 0;  ///< when the daemon began that saw this
  std::uint32_t submitted = 0;
  std::uint32_t completed = 0;
  std::uint32_t failed = 0;
  std::uint32_t cancelled = 0;
  std::uint32_t requests = 0;
  MetricLevel queued = {};
  MetricLevel running = {};
  MetricLevel clients = {};
  MetricLevel memory = {};  ///< KiB

  /// With what happened later in the same time.
  void add(const MetricCounts& later);
};

/// All of what happened in such a time, while it is gathered or summed up.
struct MetricSlot {
  MetricCounts counts = {};
  TurnTimes request_times = {};  ///< of the turns that requests were handled in, each request for itself
  TurnTimes turn_times = {};
  TaskDurations waits = {};
  TaskDurations runs = {};

  void add(const MetricSlot& later);
};

/// The same in a fifth of the room, for the many that are kept. Trivially copyable and without gaps, since it goes into
/// a file as it is.
struct PackedSlot {
  MetricCounts counts = {};
  PackedHistogram<std::uint16_t, TurnTimes::size> request_times = {};
  PackedHistogram<std::uint16_t, TurnTimes::size> turn_times = {};
  PackedHistogram<std::uint8_t, TaskDurations::size> waits = {};
  PackedHistogram<std::uint8_t, TaskDurations::size> runs = {};

  PackedSlot() = default;
  explicit PackedSlot(const MetricSlot& slot);
  void add_to(MetricSlot& sum) const;
};

}  // namespace duet::app
