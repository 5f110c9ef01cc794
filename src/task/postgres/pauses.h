#pragma once

#include <algorithm>
#include <chrono>

#include "duet/base/clock.h"

namespace duet::task::postgres {

/// How long to wait before the next attempt to connect: the first comes at once, the next ones later and later, up to
/// `most`, and each at a random time of its span, so that many who lost a server together come back one by one.
///
/// Pure: `random` is from 0 up to 1.
class Pauses {
 public:
  static constexpr base::Duration first = std::chrono::milliseconds(250);
  static constexpr base::Duration most = std::chrono::milliseconds(4500);

  base::Duration next(double random) {
    const base::Duration span = span_;
    span_ = std::min(most, std::max(first, 2 * span_));
    return std::chrono::duration_cast<base::Duration>(span * random);
  }
  void begin_anew() { span_ = base::Duration::zero(); }

 private:
  base::Duration span_{};
};

}  // namespace duet::task::postgres
