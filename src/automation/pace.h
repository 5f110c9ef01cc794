#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <deque>
#include <optional>
#include <string_view>

#include "duet/base/clock.h"

namespace duet::automation {

/// How often a rule may fire: not within its cooldown, and ten times a minute at most. Goes by the clock on the wall,
/// since it is kept across restarts; what is in the future then, after that was set back, does not count.
class Pace {
 public:
  static constexpr std::size_t firings_a_minute = 10;
  static constexpr std::string_view cooling = "cooldown";

  /// Why it may not now; empty if it may.
  std::string_view refusal(base::UtcTime now, std::chrono::milliseconds cooldown) const {
    if (firings_.empty()) return {};
    if (is_within(cooldown, firings_.back(), now)) return cooling;
    const bool full = firings_.size() == firings_a_minute;
    return full && is_within(std::chrono::minutes(1), firings_.front(), now) ? "rate limit: 10 firings a minute" : "";
  }

  /// When the cooldown of the last firing is over; none if it never fired.
  std::optional<base::UtcTime> cool_at(std::chrono::milliseconds cooldown) const {
    return firings_.empty() ? std::nullopt : std::optional(firings_.back() + cooldown);
  }

  void fired(base::UtcTime at) {
    if (firings_.size() == firings_a_minute) firings_.pop_front();
    firings_.push_back(at);
  }

  /// It did not fire then, after all.
  void take_back(base::UtcTime at) {
    const auto found = std::find(firings_.begin(), firings_.end(), at);
    if (found != firings_.end()) firings_.erase(found);
  }

  /// The last ones, oldest first.
  const std::deque<base::UtcTime>& firings() const { return firings_; }

 private:
  static bool is_within(base::UtcTime::duration time, base::UtcTime from, base::UtcTime now) {
    return from <= now && now - from < time;
  }

  std::deque<base::UtcTime> firings_;
};

}  // namespace duet::automation
