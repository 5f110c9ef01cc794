#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <utility>

#include "app/stdio/client_process.h"
#include "duet/base/clock.h"
#include "duet/transport/loop.h"

namespace duet::app {

/// Tells when a client is gone that has left its pipe to somebody who never writes: its process has ended, and nothing
/// was heard for `silence`. It tells once. For the loop's thread only.
class OrphanWatch {
 public:
  static constexpr std::chrono::seconds silence{60};

  /// `heard_at`: when something was read last.
  OrphanWatch(transport::Loop& loop, std::int64_t parent, std::function<base::TimePoint()> heard_at,
              std::function<void()> on_orphan)
      : loop_(loop),
        heard_at_(std::move(heard_at)),
        on_orphan_(std::move(on_orphan)),
        parent_(loop, [this] { look(); }) {
    parent_.watch(parent);
  }
  OrphanWatch(const OrphanWatch&) = delete;
  OrphanWatch& operator=(const OrphanWatch&) = delete;

 private:
  void look() {
    const base::TimePoint until = heard_at_() + silence;
    if (loop_.now() >= until) return on_orphan_();
    timer_ = loop_.at(until, [this] { look(); });
  }

  transport::Loop& loop_;
  std::function<base::TimePoint()> heard_at_;
  std::function<void()> on_orphan_;
  transport::Loop::Timer timer_;
  ClientProcess parent_;
};

}  // namespace duet::app
