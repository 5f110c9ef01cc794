#pragma once

#include <sys/epoll.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "duet/api.h"
#include "duet/base/activity.h"
#include "duet/base/clock.h"
#include "duet/base/fd.h"
#include "duet/base/result.h"
#include "duet/transport/mailbox.h"

namespace duet::transport {

class Workers;

/// Waits for descriptors and timers and calls whoever waits for them, all on one thread.
///
/// Everything but post(), stop() and a Remote is for the thread that runs it. What at(), after(), deferred() and
/// watch() return owns the call: when the value goes, the call does not come any more, not even in the same turn. What
/// a task or a watcher throws is told to the Overseer, and the turn goes on; without one it leaves turn(), and the next
/// turn goes on with what was still to come. When a loop ends, tasks that it still has are destroyed without being
/// called.
///
/// Another event loop can drive it: wait until descriptor() is readable, then call turn(0s).
///
/// One descriptor may be the *blocking input*: while no timer runs, its watcher is called without asking whether it is
/// ready, and reads through read_blocking_input(), which blocks; a Sentinel interrupts that read when another
/// descriptor needs attention. It saves a system call a message on stdio, and works where epoll does not (files).
class DUET_API Loop {
 public:
  class Timer;
  class Deferred;
  using Task = transport::Task;

 private:
  // A task and the value that owns it, if any: the two know each other wherever the value is moved.
  struct TimerTask {
    TimerTask(Task&& called, Timer& owned) : task(std::move(called)), owner(&owned) {}
    Task task;
    Timer* owner;
  };
  struct DeferredTask {
    explicit DeferredTask(Task&& called) : task(std::move(called)) {}
    Task task;
    Deferred* owner = nullptr;
  };
  using TimerKey = std::pair<base::TimePoint, std::uint64_t>;
  using Timers = std::map<TimerKey, TimerTask>;

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

  /// A task that waits for its time. It may outlive the loop.
  class [[nodiscard]] Timer {
   public:
    Timer() = default;
    Timer(Timer&& other) noexcept { move_from(other); }
    Timer& operator=(Timer&& other) noexcept;
    ~Timer() { cancel(); }

    /// Whether its time is still to come.
    explicit operator bool() const { return loop_ != nullptr; }
    void cancel() noexcept;
    /// Lets it run without an owner.
    void detach() noexcept;

   private:
    friend class Loop;
    void move_from(Timer& other) noexcept;

    Loop* loop_ = nullptr;
    Timers::iterator place_;
  };

  /// A task that waits for the end of the turn. It may outlive the loop.
  class [[nodiscard]] Deferred {
   public:
    Deferred() = default;
    Deferred(Deferred&& other) noexcept { move_from(other); }
    Deferred& operator=(Deferred&& other) noexcept;
    ~Deferred() { cancel(); }

    /// Whether it is still to run.
    explicit operator bool() const { return place_ != nullptr; }
    void cancel() noexcept;

   private:
    friend class Loop;
    void move_from(Deferred& other) noexcept;

    DeferredTask* place_ = nullptr;
  };

  /// A descriptor for which a watcher is called. It must end before the descriptor is closed (that alone ends no watch
  /// while a child still holds it), before its watcher, and before the loop.
  class [[nodiscard]] Watch {
   public:
    Watch() = default;
    Watch(Watch&& other) noexcept { swap(other); }
    Watch& operator=(Watch&& other) noexcept {
      Watch(std::move(other)).swap(*this);
      return *this;
    }
    ~Watch() { cancel(); }

    explicit operator bool() const { return loop_ != nullptr; }
    /// Throws std::system_error.
    void change(std::uint32_t events);
    void cancel() noexcept;

   private:
    friend class Loop;
    Watch(Loop& loop, int fd, Watcher& watcher) : loop_(&loop), fd_(fd), watcher_(&watcher) {}
    void swap(Watch& other) noexcept;

    Loop* loop_ = nullptr;
    int fd_ = -1;
    Watcher* watcher_ = nullptr;
  };

  /// A way to the loop for other threads. It may outlive the loop.
  class Remote {
   public:
    /// Runs the task on the loop's thread. False: the loop is gone, and the task was destroyed here.
    bool post(Task task) const { return mailbox_->post(std::move(task)); }

   private:
    friend class Loop;
    explicit Remote(std::shared_ptr<Mailbox> mailbox) : mailbox_(std::move(mailbox)) {}
    std::shared_ptr<Mailbox> mailbox_;
  };

  explicit Loop(base::Clock& clock = base::system_clock());
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;
  ~Loop();

  base::Clock& clock() const { return clock_; }
  base::TimePoint now() const { return clock_.now(); }

  /// Calls the watcher whenever the descriptor is ready; `events` as for epoll(7). Throws std::system_error: ENOSPC,
  /// the user watches too many descriptors (fs.epoll.max_user_watches); EPERM, a file, which is always ready.
  Watch watch(int fd, std::uint32_t events, Watcher& watcher);

  Timer at(base::TimePoint when, Task task);
  /// The same from now; a wait too long to be counted has no end.
  Timer after(base::Duration wait, Task task);

  /// When a turn will have something to do, as far as timers and tasks tell: a time that may have passed, or none.
  std::optional<base::TimePoint> next() const {
    if (!deferred_.empty()) return now();
    return timers_.empty() ? std::nullopt : std::optional(timers_.begin()->first.first);
  }

  /// Runs the task at the end of this turn, or of the next one if none is running.
  void defer(Task task);
  /// The same for as long as the value lives.
  Deferred deferred(Task task);
  /// The same, whichever thread asks. A thread that may outlive the loop keeps a remote() instead.
  void post(Task task) { mailbox_->post(std::move(task)); }
  Remote remote() const { return Remote(mailbox_); }

  /// Calls work() on another thread, and then `then` on this one with the base::Result of it: what work() returned or
  /// threw. A few threads share such work; they are started when they are needed and joined when the loop ends. Then
  /// work that has begun is waited for, and no `then` is called any more. Throws std::system_error: EAGAIN, too much
  /// waits already.
  template <typename Work, typename Then>
  void run_elsewhere(Work work, Then then);

  /// Not together with a blocking input, whose watcher waits by itself.
  void set_overseer(Overseer* overseer) { overseer_ = overseer; }

  void run();
  /// Ends run() after the current turn; any thread may ask.
  void stop();
  /// One turn: waits for something to do, at most until `deadline`, and does it. Throws std::logic_error inside
  /// another turn: who is called by the loop cannot wait for it.
  void turn(std::optional<base::TimePoint> deadline = std::nullopt);
  /// The same for at most this time; turn(0s) does what there is to do now, and does not wait.
  void turn(base::Duration most) { turn(from_now(most)); }
  bool is_turning() const { return turning_; }

  /// Becomes readable, for poll() and the like, when a turn has something to do. Timers and deferred tasks count from
  /// the first call on. Not together with a blocking input, which the loop must wait for itself: std::logic_error.
  int descriptor();

  /// Bytes that are read are put here first: one place for all connections of this thread.
  std::vector<char>& scratch() { return scratch_; }

  void set_blocking_input(int fd, Watcher& watcher);
  void want_blocking_input(bool reading) { input_wanted_ = reading; }
  void clear_blocking_input();
  /// What the owner of the blocking input writes to, while that is full: waited for together with it.
  void want_blocked_output(int fd, Watcher& watcher);
  void clear_blocked_output();
  /// read(2) of the blocking input; EINTR when something else needs attention.
  ssize_t read_blocking_input(std::span<char> into);

 private:
  friend class Sentinel;
  struct TurnGuard;

  base::TimePoint from_now(base::Duration wait) const;
  void control(int operation, int fd, std::uint32_t events, void* called) const;
  void unwatch(int fd, const Watcher& watcher) noexcept;
  void start_elsewhere(Task work);
  void set_alarm() noexcept;
  void silence_alarm();

  void call(Watcher& watcher, std::uint32_t events);
  void call(Task& task);
  template <typename Call>
  void oversee(const std::type_info& who, Call&& call);
  void begin_measuring();
  void end_measuring();

  void wait_with_blocking_input(int timeout_ms);
  void count_turn() { turns_.store(turns_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed); }
  void dispatch(int timeout_ms);
  int timeout_until(std::optional<base::TimePoint> deadline) const;
  void run_timers();
  void run_deferred();
  Task next_deferred();
  void collect_posted();

  base::Clock& clock_;
  base::Fd epoll_;
  base::Fd alarm_;  // a timer of the kernel, for who waits for descriptor()
  std::optional<base::TimePoint> alarm_time_;
  std::shared_ptr<Mailbox> mailbox_ = std::make_shared<Mailbox>();
  std::unique_ptr<Workers> workers_;
  Timers timers_;
  std::uint64_t last_timer_ = 0;
  std::deque<DeferredTask> deferred_;
  std::vector<Task> posted_;  // empty but for an instant; it keeps its memory
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

  int blocking_input_ = -1;
  Watcher* input_watcher_ = nullptr;
  int blocked_output_ = -1;
  Watcher* output_watcher_ = nullptr;
  bool input_blocks_ = true;  // false once a read has shown that somebody set it non-blocking

  std::atomic<bool> stopping_ = false;

  // Shared with the Sentinel.
  std::atomic<bool> guarded_ = false;           // a Sentinel is there to interrupt a blocking read
  std::atomic<bool> attention_ = false;         // the Sentinel saw a ready descriptor
  std::atomic<bool> waiting_ = false;           // in epoll_wait or poll
  std::atomic<bool> in_blocking_read_ = false;  // in read_blocking_input
  std::atomic<bool> input_wanted_ = false;
  std::atomic<std::uint64_t> turns_ = 0;
};

template <typename Work, typename Then>
void Loop::run_elsewhere(Work work, Then then) {
  using Result = base::Result<std::invoke_result_t<Work&>>;
  start_elsewhere([work = std::move(work), then = std::move(then), loop = remote()]() mutable {
    loop.post([then = std::move(then), result = Result::of(work)]() mutable { then(std::move(result)); });
  });
}

}  // namespace duet::transport
