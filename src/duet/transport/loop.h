#pragma once

#include <sys/epoll.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "duet/base/activity.h"
#include "duet/base/clock.h"
#include "duet/base/fd.h"

namespace duet::transport {

/// Waits for descriptors and timers and calls whoever waits for them, all on one thread.
///
/// Everything but post() and stop() is for the thread that runs it. A watcher may be removed at any
/// time, also by another one's call in the same turn. What a task or a watcher throws is told to the Overseer, and the
/// turn goes on; without one it leaves turn(), and the next turn goes on with what was still to come. One descriptor
/// may be the *front*: while no timer runs, its watcher is called without asking whether it is ready, and reads through
/// read_front(), which blocks; a Sentinel interrupts that read when another descriptor needs
/// attention. It saves a system call a message on stdio, and works where epoll does not (files).
class Loop {
 public:
  class Watcher {
   public:
    virtual void on_ready(std::uint32_t events) = 0;

   protected:
    ~Watcher() = default;
  };
  /// Who answers for a loop. What it throws leaves turn().
  class Overseer {
   public:
    /// A task or a watcher threw, which none should. Called where it is caught: std::current_exception() has it.
    virtual void on_defect(const base::Activity& where) = 0;
    /// After each turn that called somebody: how long that took, without waiting, and who took longest.
    virtual void on_turn(base::Duration took, const base::Activity& longest) = 0;

   protected:
    ~Overseer() = default;
  };
  using Task = std::function<void()>;
  using Timer = std::pair<base::TimePoint, std::uint64_t>;

  explicit Loop(base::Clock& clock = base::system_clock());
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;
  ~Loop();

  base::Clock& clock() const { return clock_; }
  base::TimePoint now() const { return clock_.now(); }

  void watch(int fd, std::uint32_t events, Watcher& watcher);
  void change(int fd, std::uint32_t events, Watcher& watcher);
  /// Before the descriptor is closed: that alone ends no watch while a child still holds it.
  void unwatch(int fd, Watcher& watcher);

  Timer at(base::TimePoint when, Task task);
  /// The same from now; a wait too long to be counted has no end.
  Timer after(base::Duration wait, Task task);
  void cancel(const Timer& timer) { timers_.erase(timer); }

  /// When a turn will have something to do, as far as timers and tasks tell: a time that may have passed, or none.
  std::optional<base::TimePoint> next() const {
    if (!deferred_.empty()) return now();
    return timers_.empty() ? std::nullopt : std::optional(timers_.begin()->first.first);
  }

  /// Runs the task at the end of this turn, or of the next one if none is running.
  void defer(Task task) { deferred_.push_back(std::move(task)); }
  /// The same, whichever thread asks.
  void post(Task task);

  /// Not together with a front, whose watcher waits by itself.
  void set_overseer(Overseer* overseer) { overseer_ = overseer; }

  void run();
  /// Ends run() after the current turn; any thread may ask.
  void stop();
  /// One turn: waits for something to do, at most until `deadline`, and does it. Throws std::logic_error inside
  /// another turn: who is called by the loop cannot wait for it.
  void turn(std::optional<base::TimePoint> deadline = std::nullopt);
  bool is_turning() const { return turning_; }

  /// Bytes that are read are put here first: one place for all connections of this thread.
  std::vector<char>& scratch() { return scratch_; }

  void set_front(int fd, Watcher& watcher);
  void want_front(bool reading) { front_wanted_ = reading; }
  void clear_front();
  /// What the front's owner writes to, while that is full: waited for together with the front.
  void want_back(int fd, Watcher& watcher);
  void clear_back();
  /// read(2) of the front; EINTR when something else needs attention.
  ssize_t read_front(std::span<char> into);

 private:
  friend class Sentinel;
  struct TurnGuard;

  void call(Watcher& watcher, std::uint32_t events);
  void call(const Task& task);
  template <typename Call>
  void oversee(const std::type_info& who, const Call& call);
  void begin_measuring();
  void end_measuring();

  void wait_with_front(int timeout_ms);
  void count_turn() { turns_.store(turns_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed); }
  void dispatch(int timeout_ms);
  int timeout_until(std::optional<base::TimePoint> deadline) const;
  void run_timers();
  void run_deferred();
  void take_posted();

  base::Clock& clock_;
  base::Fd epoll_;
  base::Fd wake_;
  std::map<Timer, Task> timers_;
  std::uint64_t last_timer_ = 0;
  std::deque<Task> deferred_;
  std::vector<char> scratch_;

  // What the overseer is told of this turn.
  Overseer* overseer_ = nullptr;
  base::TimePoint turn_began_;
  base::TimePoint call_ended_;
  base::Duration longest_call_{};
  base::Activity longest_;

  bool turning_ = false;
  epoll_event* current_ = nullptr;  // the events of this turn that are still to be dispatched
  epoll_event* current_end_ = nullptr;

  int front_ = -1;
  Watcher* front_watcher_ = nullptr;
  int back_ = -1;
  Watcher* back_watcher_ = nullptr;
  bool front_blocks_ = true;  // false once a read has shown that somebody set it non-blocking

  std::mutex posted_mutex_;
  std::vector<Task> posted_;
  std::atomic<bool> stopping_ = false;

  // Shared with the Sentinel.
  std::atomic<bool> guarded_ = false;           // a Sentinel is there to interrupt a blocking read
  std::atomic<bool> attention_ = false;         // the Sentinel saw a ready descriptor
  std::atomic<bool> waiting_ = false;           // in epoll_wait or poll
  std::atomic<bool> in_blocking_read_ = false;  // in read_front
  std::atomic<bool> front_wanted_ = false;
  std::atomic<std::uint64_t> turns_ = 0;
};

}  // namespace duet::transport
