#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/describe/class.hpp>

#include "app/metrics/metric_slot.h"

namespace duet::app {

/// What `daemon.metrics` answers of a time, a number a point. The names are those of the JSON members.
struct MetricSeries {
  using Whole = std::vector<std::optional<std::uint64_t>>;
  using Times = std::vector<std::optional<double>>;
  Whole submitted, completed, failed, cancelled;
  Whole queued, running, clients;  ///< the largest
  Times waitP50, waitP95, runP50, runP95;
  Whole requests;
  Times requestP50, requestP99;  ///< us
  Times lagP99;                  ///< ms
  Whole memory;                  ///< bytes, the largest
};
BOOST_DESCRIBE_STRUCT(MetricSeries, (),
                      (submitted, completed, failed, cancelled, queued, running, clients, waitP50, waitP95, runP50,
                       runP95, requests, requestP50, requestP99, lagP99, memory))

/// A day of slots: every second of the last 15 minutes, 10 seconds for 2 hours, minutes for the rest. A slot is there
/// if something happened in it. 2 MiB at most, and little where little happens. The slots that are over are packed:
/// their percentiles weigh them to a sixteenth. Pure.
class MetricHistory {
 public:
  static constexpr MetricTime longest = 24 * 3600;

  /// Slots come in the order of time. One that is earlier than the last ones replaces them: the clock was set back.
  void add(const MetricSlot& slot);
  /// Of the `seconds` before `now`, in so many points. Null where there was no daemon, and for times where there was
  /// nothing to be timed.
  MetricSeries series(double now, double seconds, std::size_t points) const;
  /// All of the last `seconds` as one.
  MetricSlot sum(MetricTime now, MetricTime seconds) const;

  /// For a file, with a checksum. from_bytes() takes nothing that to_bytes() of this form has not made, and leaves out
  /// what is later than `now`: the clock was ahead, and has been set right.
  std::string to_bytes() const;
  static std::optional<MetricHistory> from_bytes(std::string_view bytes, MetricTime now);

 private:
  struct Tier {
    MetricTime width;   // of a slot
    MetricTime length;  // of what is kept
    std::deque<PackedSlot> slots = {};
    MetricSlot newest = {};  // the last of the slots, while something may be added to it

    void add(const MetricSlot& slot);
    bool is_sound() const;
  };

  std::array<Tier, 3> tiers_{Tier{1, 900}, Tier{10, 7200}, Tier{60, longest}};
};

}  // namespace duet::app
