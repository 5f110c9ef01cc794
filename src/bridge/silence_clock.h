#pragma once

#include <optional>

#include "duet/base/clock.h"

namespace duet::bridge {

/// How long somebody who has work to do has given no sign of life.
///
/// Time without work does not count, nor does it end a silence: whoever hangs, and whose work is taken back each time
/// before it lasts too long, is found out all the same. Pure; who uses it says when the last sign of life was.
class SilenceClock {
 public:
  void note_work(bool has_work, base::TimePoint now, base::TimePoint sign_at) {
    if (has_work == is_running()) return;
    if (has_work) {
      since_ = now;
    } else {
      before_ = silence(now, sign_at);
      until_ = now;
      since_.reset();
    }
  }
  bool is_running() const { return since_.has_value(); }

  /// While it runs.
  base::Duration silence(base::TimePoint now, base::TimePoint sign_at) const {
    if (sign_at >= *since_) return now - sign_at;
    return now - *since_ + (sign_at >= until_ ? base::Duration::zero() : before_);
  }

 private:
  std::optional<base::TimePoint> since_;            // there is work
  base::Duration before_ = base::Duration::zero();  // the silence of earlier work
  base::TimePoint until_ = base::TimePoint();       // when that ended
};

}  // namespace duet::bridge
