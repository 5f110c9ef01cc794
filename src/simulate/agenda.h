#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "duet/base/clock.h"

namespace duet::simulate {

/// What is to happen in the world outside the daemon, and when. Things of one instant happen in the order in which they
/// were put down.
class Agenda {
 public:
  using Deed = std::function<void()>;

  explicit Agenda(const base::Clock& clock) : clock_(clock) {}

  void after(base::Duration wait, Deed deed) {
    deeds_.emplace(std::pair(clock_.now() + wait, ++last_), std::move(deed));
  }
  std::optional<base::TimePoint> next() const {
    return deeds_.empty() ? std::nullopt : std::optional(deeds_.begin()->first.first);
  }
  bool has_due() const { return !deeds_.empty() && deeds_.begin()->first.first <= clock_.now(); }
  /// The first of what is due.
  void do_next() {
    const Deed deed = std::move(deeds_.begin()->second);
    deeds_.erase(deeds_.begin());
    deed();
  }
  base::TimePoint now() const { return clock_.now(); }
  std::size_t size() const { return deeds_.size(); }
  void clear() { deeds_.clear(); }

 private:
  const base::Clock& clock_;
  std::uint64_t last_ = 0;
  std::map<std::pair<base::TimePoint, std::uint64_t>, Deed> deeds_;
};

}  // namespace duet::simulate
