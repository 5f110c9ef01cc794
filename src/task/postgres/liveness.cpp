#include "task/postgres/liveness.h"

#include <utility>

namespace duet::task::postgres {

std::vector<Liveness::Verdict> Liveness::look(base::Duration asked, base::Duration answered,
                                              std::span<const Seen> others) {
  std::vector<Verdict> verdicts;
  std::map<std::int64_t, Known> still;
  for (const Seen& seen : others) {
    const auto found = known_.find(seen.worker);
    const bool is_known =
        found != known_.end() && found->second.beat == seen.beat && answered - found->second.looked <= seen.lease / 3;
    Known known = is_known ? found->second : Known{.beat = seen.beat, .since = answered};
    known.looked = answered;
    still[seen.worker] = known;
    const base::Duration unmoved = asked - known.since;  // an answer that took long proves no more
    if (seen.silent && unmoved >= seen.lost_after) {
      verdicts.push_back({seen.worker, seen.beat, true});
    } else if (unmoved >= seen.lease && (!seen.silent || seen.to_repeat)) {
      verdicts.push_back({seen.worker, seen.beat, false});
    }
  }
  known_ = std::move(still);
  return verdicts;
}

}  // namespace duet::task::postgres
