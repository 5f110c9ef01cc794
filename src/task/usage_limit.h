#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "duet/base/clock.h"
#include "pattern/regex.h"
#include "task/agent.h"
#include "task/run.h"

namespace duet::task {

/// Knows whether an agent ended because it may not work for a while, and until when. Pure.
class UsageLimit {
 public:
  static constexpr std::size_t most_output = std::size_t{64} << 10U;  ///< of its end that is looked at
  /// A time that is further away is not believed.
  static constexpr std::chrono::hours furthest{31 * 24};

  /// The pattern of `hold` was checked when the settings were read; one that is none matches nothing.
  explicit UsageLimit(UsageHold hold);

  /// Whether the output matters for one that ended so.
  bool wants_output(const Outcome& outcome) const { return could_be(outcome) && pattern_.has_value(); }
  /// Until when the agent is to be held; none: it ended for another reason. `output` is the end of what it wrote.
  std::optional<base::UtcTime> until(const Outcome& outcome, std::string_view output, base::UtcTime now) const;

 private:
  bool could_be(const Outcome& outcome) const;

  UsageHold hold_;
  std::optional<pattern::Regex> pattern_;
};

/// A time as agents tell it: seconds or milliseconds since 1970; a time of ISO 8601, which is local if it has no zone;
/// a time of day, `15:30`, `3pm` or `3:30 pm`, which is the next such one where the daemon is. None for anything else.
std::optional<base::UtcTime> told_time(std::string_view text, base::UtcTime now);

}  // namespace duet::task
