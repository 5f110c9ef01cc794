#pragma once

#include <algorithm>
#include <chrono>
#include <map>
#include <vector>

#include "bridge/session.h"
#include "duet/base/clock.h"

namespace duet::bridge {

/// What is remembered of a server's failures: how long to wait before the next start, and which requests it never
/// survives. Pure.
class CrashRecord {
 public:
  static constexpr int most_crashes = 3;  ///< a request in flight in so many in a row is refused
  static constexpr base::Duration longest_wait = std::chrono::seconds(30);

  explicit CrashRecord(base::Duration first_wait = Patience().restart) : first_wait_(first_wait) {}

  /// `served`: how long it had been ready. One that lasted longer than the longest wait starts the count anew.
  /// Returns how long to wait before the next start.
  base::Duration note_failure(base::Duration served, const std::vector<RequestMark>& in_flight) {
    if (served >= longest_wait) failures_ = 0;
    ++failures_;
    std::map<RequestMark, int> seen;
    for (const RequestMark mark : in_flight) {
      const auto before = crashes_.find(mark);
      seen[mark] = before == crashes_.end() ? 1 : before->second + 1;
    }
    // Those that are refused stay so: they cannot be in flight again.
    for (const auto& [mark, count] : crashes_) {
      if (count >= most_crashes) seen[mark] = count;
    }
    crashes_ = std::move(seen);
    base::Duration wait = first_wait_;
    for (int i = 1; i < failures_ && wait < longest_wait; ++i) wait *= 2;
    return std::min(wait, std::max(first_wait_, longest_wait));
  }

  void note_answer(RequestMark mark) {
    if (!crashes_.empty()) crashes_.erase(mark);
  }
  bool refuses(RequestMark mark) const {
    const auto found = crashes_.find(mark);
    return found != crashes_.end() && found->second >= most_crashes;
  }
  int failures() const { return failures_; }
  /// Somebody has stopped the server by hand: a new beginning.
  void forget() { *this = CrashRecord(first_wait_); }

 private:
  base::Duration first_wait_;
  int failures_ = 0;
  std::map<RequestMark, int> crashes_;
};

}  // namespace duet::bridge
