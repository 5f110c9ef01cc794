#pragma once

#include "duet/base/fd.h"
#include "task/keeper_core.h"
#include "task/lease_file.h"

namespace duet::task {

/// What the keeper of a leased run knows of its worker's lease: the file, and a timer.
///
/// Nobody wakes a keeper when a beat was answered. It wakes at the end that it knows, looks again, and goes on if that
/// has moved. The timer is one of CLOCK_BOOTTIME, since poll() counts no time in which the machine was suspended: who
/// slept through the end of the lease is woken as the machine wakes. Where there is no descriptor for it the keeper
/// sees that at its next look at what the tree uses, within 4 s.
class LeaseWatch {
 public:
  explicit LeaseWatch(int tasks);

  /// By now. It may set the timer.
  LeaseLeft left();
  /// Readable when it is time to ask left(), which makes it wait for the next time. -1: there is none.
  int timer() const { return timer_.get(); }

 private:
  void wake_at(BootTime next);

  LeaseView view_;
  base::Fd timer_;
  BootTime set_to_ = {};
};

}  // namespace duet::task
