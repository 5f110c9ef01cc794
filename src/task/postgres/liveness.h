#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "duet/base/clock.h"

namespace duet::task::postgres {

/// Judges whether the other workers of a queue are still heard of, by this machine's own clock that goes on while the
/// machine sleeps (CLOCK_BOOTTIME). No time of day and no clock of another machine counts.
///
/// A worker is silent when its beat was seen unmoved for its whole lease, with a look at least every third of that
/// lease; after a longer pause between two looks its time begins anew, so that an outage of the database makes nobody
/// silent. Likewise it is lost when that has gone on for its `lost_after`. One that is silent is found so once more if
/// a claim of its came behind. Pure.
class Liveness {
 public:
  /// A worker as the database tells of it.
  struct Seen {
    std::int64_t worker = 0;
    std::int64_t beat = 0;
    base::Duration lease = {};
    base::Duration lost_after = {};
    bool silent = false;     ///< somebody has found that already
    bool to_repeat = false;  ///< and it has a claim that was on its way then, which another may have
  };
  struct Verdict {
    std::int64_t worker = 0;
    std::int64_t beat = 0;
    bool lost = false;  ///< else silent
  };

  /// What was asked for at one time and answered at another tells of all others. What is due is told again with each
  /// look until somebody has acted on it.
  std::vector<Verdict> look(base::Duration asked, base::Duration answered, std::span<const Seen> others);
  /// What was seen proves nothing any more: beats are not synced, and after a crash of the server one has the number of
  /// another that was seen before.
  void begin_anew() { known_.clear(); }

 private:
  struct Known {
    std::int64_t beat = 0;
    base::Duration since = {};  // it was seen unmoved
    base::Duration looked = {};
  };

  std::map<std::int64_t, Known> known_;
};

}  // namespace duet::task::postgres
