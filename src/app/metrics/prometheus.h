#pragma once

#include <cstdint>
#include <string>

#include "app/metrics/metric_slot.h"

namespace duet::app {

/// Since the daemon began.
struct MetricTotals {
  std::uint64_t submitted = 0;
  std::uint64_t completed = 0;
  std::uint64_t failed = 0;
  std::uint64_t cancelled = 0;
  std::uint64_t requests = 0;
};

struct PrometheusSample {
  const MetricTotals& totals;
  const MetricCounts& now;   ///< the levels are taken from it, not its counts
  const MetricSlot& recent;  ///< the percentiles are taken from it
  std::uint64_t memory;      ///< bytes
  MetricTime began;
};

/// In the Prometheus text format 0.0.4: counters that begin with the daemon, and gauges. Labels have the values that
/// are written here and no others. A time is NaN if there was nothing to be timed.
std::string prometheus_text(const PrometheusSample& sample);

}  // namespace duet::app
