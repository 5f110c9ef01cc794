#pragma once

#include <signal.h>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "duet/api.h"
#include "duet/base/clock.h"
#include "duet/base/fd.h"
#include "duet/transport/loop.h"

namespace duet::transport {

/// A thread beside a loop that acts when the loop cannot: it takes the process's signals, interrupts
/// the loop's blocking read when another descriptor is ready, and says so when the loop has not
/// ended in time.
///
/// Make it before any other thread: it blocks the signals for those that follow. It uses SIGURG. What it does to the
/// signals of its thread ends with it; end it in that thread.
class DUET_API Sentinel {
 public:
  struct Duties {
    std::vector<int> signals;            ///< taken from the process
    std::function<void(int)> on_signal;  ///< on the loop's thread
    std::function<void(int)> note_signal =
        {};                            ///< the same on the sentinel's thread, at once: a handler may block the loop
    base::Duration patience;           ///< from expect_end() or a signal
    std::function<void()> on_overdue;  ///< on the sentinel's thread, when patience is over
    int input = -1;  ///< the loop's blocking input, if any; patience runs too when its other end is gone and a turn
                     ///< does not end, or nothing moves while that is not wanted
  };

  Sentinel(Loop& loop, Duties duties);
  Sentinel(const Sentinel&) = delete;
  Sentinel& operator=(const Sentinel&) = delete;
  ~Sentinel();

  /// The loop is about to end; any thread may say so, more than once.
  void expect_end();
  /// The input has ended: from now on patience runs whenever nothing moves, and only then.
  void expect_progress();

 private:
  /// How the calling thread has its signals, and what SIGURG does. Both are put back at the end.
  class SignalsBefore {
   public:
    SignalsBefore();
    SignalsBefore(const SignalsBefore&) = delete;
    SignalsBefore& operator=(const SignalsBefore&) = delete;
    ~SignalsBefore();

   private:
    sigset_t mask_{};
    struct sigaction urgent_ {};
  };

  void run();
  void wake();
  void handle_signal();
  void knock();
  void look_whether_stuck();
  int timeout_ms() const;
  bool loop_is_handling() const;

  const SignalsBefore before_;
  Loop& loop_;
  Duties duties_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // for the loop's thread
  pthread_t loop_thread_;
  base::Fd signals_;
  base::Fd wake_;
  std::atomic<bool> done_ = false;
  std::atomic<bool> end_expected_ = false;
  std::atomic<bool> progress_expected_ = false;

  // The sentinel's thread only.
  std::optional<base::TimePoint> deadline_;
  bool input_gone_ = false;  // no more will come
  bool hung_up_ = false;     // because its other end was closed
  std::uint64_t turn_seen_ = 0;
  base::TimePoint turn_seen_at_;

  std::thread thread_;
};

}  // namespace duet::transport
