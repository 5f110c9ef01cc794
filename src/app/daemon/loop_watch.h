#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <utility>

#include "duet/base/log.h"
#include "duet/transport/loop.h"

namespace duet::app {

/// Watches over the daemon's loop: what a callback throws is a defect, which is logged and told in `daemon.status`, and
/// the daemon goes on; a turn that takes long is logged with what ran in it.
///
/// Memory that keeps running out is no matter of one callback: that leaves the loop. For the loop's thread.
class LoopWatch final : public transport::Loop::Overseer {
 public:
  struct Limits {
    base::Duration slow = std::chrono::seconds(1);
    int memory_refusals = 10;  // within ...
    base::Duration memory_patience = std::chrono::seconds(10);
  };
  struct Events {
    std::function<void(std::string)> on_problem;  ///< what is wrong, for people, whenever that changes
    std::function<void(base::TimePoint now, base::Duration took)> on_turn = {};  ///< each that did something
  };
  LoopWatch(transport::Loop& loop, base::Log& log, Events events) : LoopWatch(loop, log, std::move(events), Limits()) {}
  LoopWatch(transport::Loop& loop, base::Log& log, Events events, Limits limits);
  LoopWatch(const LoopWatch&) = delete;
  LoopWatch& operator=(const LoopWatch&) = delete;
  ~LoopWatch();

  /// Of the last minute, give or take ten seconds.
  std::chrono::milliseconds longest_turn() const;

 private:
  static constexpr std::chrono::seconds slice{10};
  struct Slice {
    std::int64_t number = std::numeric_limits<std::int64_t>::min() / 2;  // none
    base::Duration longest{};
  };

  void on_defect(const base::Activity& where) override;
  void on_turn(base::Duration took, const base::Activity& longest) override;
  void tell(const base::Activity& where);
  void count_refusal();
  void begin_slice(base::TimePoint now);
  static std::int64_t slice_at(base::TimePoint time) { return time.time_since_epoch() / slice; }

  transport::Loop& loop_;
  base::Log& log_;
  Events events_;
  Limits limits_;
  std::uint64_t defects_ = 0;
  int refusals_ = 0;
  base::TimePoint first_refusal_;
  std::array<Slice, 7> slices_;
  Slice* slice_ = nullptr;  // the one of now, until ...
  base::TimePoint slice_end_ = base::TimePoint::min();
};

}  // namespace duet::app
