#pragma once

#include <cstdint>
#include <optional>

#include "duet/base/clock.h"

namespace duet::app {

/// How long a daemon's start waits until its shared queue is joined, and how that ends.
///
/// One that has been a worker of the queue waits shorter and goes on without it: it may have runs to look after. Of
/// several hosts one may be a copy of the queue and another one the queue itself: a refusal counts after a while. Pure.
class JoinWait {
 public:
  struct Options {
    bool was_joined = false;         ///< a daemon before was this worker
    bool has_several_hosts = false;  ///< in the address
  };
  struct Seen {
    bool joined = false;
    bool refused = false;
    bool unwritten = false;  ///< who this worker is cannot be written down
  };
  enum class End : std::uint8_t { joined, unwritten, refused, goes_on_without, no_answer };

  JoinWait(base::TimePoint now, Options options);

  /// None: it goes on, until() at the longest.
  std::optional<End> look(base::TimePoint now, Seen seen);
  base::TimePoint until() const;

 private:
  Options options_;
  base::TimePoint deadline_;
  std::optional<base::TimePoint> refused_until_;  // so long others are looked for
};

}  // namespace duet::app
