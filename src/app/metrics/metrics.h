#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "app/metrics/metric_history.h"
#include "app/metrics/prometheus.h"
#include "app/metrics/task_times.h"
#include "duet/base/clock.h"
#include "task/store_tables.h"

namespace duet::app {

/// What there is of something now.
struct MetricLevels {
  std::uint64_t queued = 0;
  std::uint64_t running = 0;
  std::uint64_t clients = 0;
};

/// Counts and times what the daemon does, and remembers a day of it.
///
/// It has no timer: what it knows it is told, and a time in which nothing is told costs nothing. A request took as long
/// as the turn of the loop that it was handled in, from the waking to the end of it; that is also how long others had
/// to wait. For the loop's thread only.
class Metrics {
 public:
  struct Sources {
    std::function<MetricLevels()> levels;
    std::function<std::uint64_t()> memory;   ///< bytes; asked every 10 seconds at most
    std::function<void()> each_second = {};  ///< in which something happens
  };

  Metrics(const base::Clock& clock, Sources sources);

  /// What an earlier daemon remembered, as bytes() gave it; false if it makes no sense. Before anything else is told.
  bool restore(std::string_view bytes);
  std::string bytes();

  /// After each turn of the loop that did something; `requests` that were ever handled. Every request pays for this
  /// call, so a turn with one request is only counted here, and the rest is done when a second is over.
  void take_turn(base::TimePoint now, base::Duration took, std::uint64_t requests) {
    if (now >= next_) begin_slot(now);
    const std::size_t cell = TurnTimes::cell_of(static_cast<std::uint64_t>(took.count()) >> turn_time_shift);
    const std::uint64_t handled = requests - std::exchange(requests_, requests);
    if (handled == 1) [[likely]] {
      ++of_one_request_[cell];
    } else {
      count_turn(cell, handled);
    }
  }
  void take(const task::Event& event);
  /// Something there is more or less of.
  void levels_changed();

  MetricSeries series(base::UtcTime now, double seconds, std::size_t points);
  /// In the Prometheus text format 0.0.4.
  std::string prometheus_text();

 private:
  void begin_slot(base::TimePoint now);
  void count_turn(std::size_t cell, std::uint64_t handled, std::uint64_t turns = 1);

  const base::Clock& clock_;
  Sources sources_;
  MetricTime life_;
  MetricHistory history_;
  TaskTimes task_times_;
  MetricTotals totals_;
  MetricSlot slot_;                                              // what is not in the history yet
  std::array<std::uint32_t, TurnTimes::size> of_one_request_{};  // turns that are not in the slot yet
  std::uint64_t requests_ = 0;
  std::uint64_t memory_ = 0;
  base::TimePoint next_ = base::TimePoint::min();  // when the slot ends
  base::TimePoint memory_due_ = base::TimePoint::min();
};

}  // namespace duet::app
