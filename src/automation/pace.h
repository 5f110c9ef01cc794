#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <deque>
#include <optional>
#include <string_view>

#include "duet/base/clock.h"

namespace duet::automation {

/// How often a rule may fire: not within its cooldown, and ten times a minute at most. What is refused may happen
/// later, once. Goes by the clock on the wall, since it is kept across restarts; what is in the future then, after that
/// was set back, does not count.
class Pace {
 public:
  static constexpr std::size_t firings_a_minute = 10;

  /// Why it may not now; empty if it may.
  std::string_view refusal(base::UtcTime now, std::chrono::milliseconds cooldown) const {
    if (firings_.empty()) return {};
    if (is_within(cooldown, firings_.back(), now)) return "cooldown";
    return is_full() && is_within(minute, firings_.front(), now) ? "rate limit: 10 firings a minute" : "";
  }

  /// From when on neither refuses; none if it never fired.
  std::optional<base::UtcTime> free_at(std::chrono::milliseconds cooldown) const {
    if (firings_.empty()) return std::nullopt;
    const base::UtcTime cool = firings_.back() + cooldown;
    return is_full() ? std::max<base::UtcTime>(cool, firings_.front() + minute) : cool;
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
  static constexpr std::chrono::minutes minute{1};

  bool is_full() const { return firings_.size() == firings_a_minute; }
  static bool is_within(base::UtcTime::duration time, base::UtcTime from, base::UtcTime now) {
    return from <= now && now - from < time;
  }

  std::deque<base::UtcTime> firings_;
};

}  // namespace duet::automation
