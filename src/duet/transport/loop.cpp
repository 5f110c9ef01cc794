#include "duet/transport/loop.h"

#include <poll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>
#include <stdexcept>
#include <system_error>
#include <typeinfo>

#include "duet/transport/workers.h"

namespace duet::transport {
namespace {

constexpr std::size_t scratch_bytes = 64 * 1024;

}  // namespace

struct Loop::TurnGuard {
  explicit TurnGuard(Loop& turning) : loop(turning) { loop.turning_ = true; }
  TurnGuard(const TurnGuard&) = delete;
  TurnGuard& operator=(const TurnGuard&) = delete;
  ~TurnGuard() {
    loop.turning_ = false;
    loop.current_ = loop.current_end_ = nullptr;
    if (loop.alarm_) loop.set_alarm();
  }
  Loop& loop;
};

Loop::Timer& Loop::Timer::operator=(Timer&& other) noexcept {
  if (this == &other) return *this;
  const Timer old(std::move(*this));  // goes last: the end of its task may be the end of this value
  move_from(other);
  return *this;
}

void Loop::Timer::move_from(Timer& other) noexcept {
  loop_ = std::exchange(other.loop_, nullptr);
  place_ = other.place_;
  if (loop_ != nullptr) place_->second.owner = this;
}

void Loop::Timer::cancel() noexcept {
  if (Loop* const loop = std::exchange(loop_, nullptr)) loop->timers_.extract(place_);
}

void Loop::Timer::detach() noexcept {
  if (std::exchange(loop_, nullptr) != nullptr) place_->second.owner = nullptr;
}

Loop::Deferred& Loop::Deferred::operator=(Deferred&& other) noexcept {
  if (this == &other) return *this;
  const Deferred old(std::move(*this));
  move_from(other);
  return *this;
}

void Loop::Deferred::move_from(Deferred& other) noexcept {
  place_ = std::exchange(other.place_, nullptr);
  if (place_ != nullptr) place_->owner = this;
}

// The place stays in the queue, without a task.
void Loop::Deferred::cancel() noexcept {
  DeferredTask* const place = std::exchange(place_, nullptr);
  if (place == nullptr) return;
  place->owner = nullptr;
  const Task dropped = std::move(place->task);
}

void Loop::Watch::change(std::uint32_t events) { loop_->control(EPOLL_CTL_MOD, fd_, events, watcher_); }

void Loop::Watch::cancel() noexcept {
  if (Loop* const loop = std::exchange(loop_, nullptr)) loop->unwatch(fd_, *watcher_);
}

void Loop::Watch::swap(Watch& other) noexcept {
  std::swap(loop_, other.loop_);
  std::swap(fd_, other.fd_);
  std::swap(watcher_, other.watcher_);
}

Loop::Loop(base::Clock& clock)
    : clock_(clock), epoll_(base::check_call(epoll_create1(EPOLL_CLOEXEC), "epoll_create1")), scratch_(scratch_bytes) {
  control(EPOLL_CTL_ADD, mailbox_->descriptor(), EPOLLIN, nullptr);
}

// One task at a time, since the end of each may come back to this loop.
Loop::~Loop() {
  workers_.reset();
  mailbox_->close();
  while (!deferred_.empty() || !timers_.empty()) {
    if (!deferred_.empty()) {
      next_deferred();
    } else {
      const auto first = timers_.extract(timers_.begin());
      if (Timer* const owner = first.mapped().owner) owner->loop_ = nullptr;
    }
  }
}

void Loop::control(int operation, int fd, std::uint32_t events, void* called) const {
  epoll_event event{.events = events, .data = {.ptr = called}};
  if (epoll_ctl(epoll_.get(), operation, fd, &event) == 0) return;
  throw std::system_error(
      errno, std::generic_category(),
      errno == ENOSPC ? "fs.epoll.max_user_watches is too low to watch one more descriptor" : "epoll_ctl");
}

Loop::Watch Loop::watch(int fd, std::uint32_t events, Watcher& watcher) {
  control(EPOLL_CTL_ADD, fd, events, &watcher);
  return {*this, fd, watcher};
}

void Loop::unwatch(int fd, const Watcher& watcher) noexcept {
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
  for (epoll_event* event = current_; event != current_end_; ++event) {
    if (event->data.ptr == &watcher) event->events = 0;
  }
}

Loop::Timer Loop::at(base::TimePoint when, Task task) {
  Timer timer;
  timer.place_ = timers_.try_emplace(TimerKey{when, ++last_timer_}, std::move(task), timer).first;
  timer.loop_ = this;
  if (alarm_) set_alarm();
  return timer;
}

Loop::Timer Loop::after(base::Duration wait, Task task) { return at(from_now(wait), std::move(task)); }

base::TimePoint Loop::from_now(base::Duration wait) const {
  const base::TimePoint from = now();
  const bool endless = wait > base::TimePoint::max() - from;
  return endless ? base::TimePoint::max() : from + wait;
}

void Loop::defer(Task task) {
  deferred_.emplace_back(std::move(task));
  if (alarm_) set_alarm();
}

Loop::Deferred Loop::deferred(Task task) {
  defer(std::move(task));
  Deferred owner;
  owner.place_ = &deferred_.back();
  owner.place_->owner = &owner;
  return owner;
}

void Loop::start_elsewhere(Task work) {
  if (!workers_) workers_ = std::make_unique<Workers>(Workers::Limits{});
  workers_->give(std::move(work));
}

int Loop::descriptor() {
  if (blocking_input_ >= 0) throw std::logic_error("a loop with a blocking input must wait by itself");
  if (!alarm_) {
    base::Fd alarm(base::check_call(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK), "timerfd_create"));
    control(EPOLL_CTL_ADD, alarm.get(), EPOLLIN, nullptr);
    alarm_ = std::move(alarm);
    set_alarm();
  }
  return epoll_.get();
}

// The turn's end does it once for all that was asked for in the turn.
void Loop::set_alarm() noexcept {
  if (turning_) return;
  std::optional<base::TimePoint> first;
  if (!timers_.empty()) first = timers_.begin()->first.first;
  if (!deferred_.empty()) first = base::TimePoint::min();
  if (first == alarm_time_) return;
  alarm_time_ = first;
  itimerspec spec{};
  if (first) {
    const base::TimePoint now = this->now();
    const auto left = std::chrono::nanoseconds(*first <= now ? base::Duration(1) : *first - now).count();
    spec.it_value = {.tv_sec = left / 1'000'000'000, .tv_nsec = left % 1'000'000'000};
  }
  timerfd_settime(alarm_.get(), 0, &spec, nullptr);
}

void Loop::run() {
  while (!stopping_.load(std::memory_order_relaxed)) turn();
  stopping_ = false;
}

void Loop::stop() {
  stopping_ = true;
  post([] {});  // to wake it
}

void Loop::turn(std::optional<base::TimePoint> deadline) {
  if (turning_) throw std::logic_error("a turn of the loop inside another one");
  const TurnGuard guard(*this);
  const int timeout_ms = timeout_until(deadline);
  if ((blocking_input_ >= 0 && input_wanted_) || blocked_output_ >= 0) {
    wait_with_blocking_input(timeout_ms);
  } else {
    dispatch(timeout_ms);
  }
  run_timers();
  run_deferred();
  if (overseer_ != nullptr) end_measuring();
}

// What only an overseer costs stands apart: inlined, it would cost every call the saving of registers.
[[gnu::noinline]] void Loop::begin_measuring() {
  turn_began_ = call_ended_ = now();
  longest_call_ = {};
  longest_ = {};
}

[[gnu::noinline]] void Loop::end_measuring() {
  if (longest_.callback != nullptr) overseer_->on_turn(call_ended_ - turn_began_, longest_);
}

void Loop::call(Watcher& watcher, std::uint32_t events) {
  if (overseer_ == nullptr) return watcher.on_ready(events);
  oversee(typeid(watcher), [&] { watcher.on_ready(events); });
}

void Loop::call(Task& task) {
  if (overseer_ == nullptr) return task();
  oversee(task.target_type(), task);
}

template <typename Call>
[[gnu::noinline]] void Loop::oversee(const std::type_info& who, Call&& call) {
  base::activity = {.callback = &who};
  try {
    call();
  } catch (...) {
    overseer_->on_defect(base::activity);
  }
  const base::TimePoint ended = now();
  const base::Duration took = ended - call_ended_;
  call_ended_ = ended;
  if (took < longest_call_) return;
  longest_call_ = took;
  longest_ = base::activity;
}

int Loop::timeout_until(std::optional<base::TimePoint> deadline) const {
  if (!deferred_.empty()) return 0;
  if (!timers_.empty()) {
    const base::TimePoint first = timers_.begin()->first.first;
    deadline = deadline ? std::min(*deadline, first) : first;
  }
  if (!deadline) return -1;
  const base::TimePoint now = this->now();
  if (*deadline <= now) return 0;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(*deadline - now).count();
  return static_cast<int>(std::min<std::int64_t>(left, std::numeric_limits<int>::max()));
}

void Loop::wait_with_blocking_input(int timeout_ms) {
  if (timeout_ms < 0 && blocked_output_ < 0 && input_blocks_ && guarded_.load(std::memory_order_relaxed)) {
    count_turn();
    if (!attention_.load()) call(*input_watcher_, EPOLLIN);
    if (attention_.load()) {
      dispatch(0);
      attention_.store(false);
    }
    return;
  }
  std::array<pollfd, 3> ready{
      {{input_wanted_ ? blocking_input_ : -1, POLLIN, 0}, {blocked_output_, POLLOUT, 0}, {epoll_.get(), POLLIN, 0}}};
  waiting_.store(true, std::memory_order_relaxed);
  const int count = poll(ready.data(), ready.size(), timeout_ms);
  waiting_.store(false, std::memory_order_relaxed);
  count_turn();
  if (count <= 0) return;
  if (ready[2].revents != 0) dispatch(0);
  attention_.store(false);  // also when nothing is ready any more, or the blocking input would never be read again
  if (ready[1].revents != 0 && output_watcher_ != nullptr) call(*output_watcher_, EPOLLOUT);
  if (ready[0].revents != 0 && input_watcher_ != nullptr && input_wanted_) call(*input_watcher_, EPOLLIN);
}

ssize_t Loop::read_blocking_input(std::span<char> into) {
  in_blocking_read_.store(true);  // before attention_ is looked at: one of the two threads sees the other
  ssize_t count = -1;
  errno = EINTR;
  if (!attention_.load()) count = read(blocking_input_, into.data(), into.size());
  in_blocking_read_.store(false, std::memory_order_release);
  if (count < 0 && errno == EAGAIN) input_blocks_ = false;
  return count;
}

void Loop::dispatch(int timeout_ms) {
  std::array<epoll_event, 64> events;  // not initialised: the kernel fills in what is used
  waiting_.store(true, std::memory_order_relaxed);
  const int count = epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), timeout_ms);
  waiting_.store(false, std::memory_order_relaxed);
  count_turn();
  if (count < 0 && errno != EINTR) base::check_call(count, "epoll_wait");
  if (overseer_ != nullptr) begin_measuring();
  if (count <= 0) return;
  current_end_ = events.data() + count;
  for (current_ = events.data(); current_ != current_end_;) {
    const epoll_event event = *current_++;
    if (event.events == 0) continue;
    if (event.data.ptr == nullptr) {
      collect_posted();
      if (alarm_) silence_alarm();
    } else {
      call(*static_cast<Watcher*>(event.data.ptr), event.events);
    }
  }
}

void Loop::run_timers() {
  if (timers_.empty()) return;
  const base::TimePoint due = now();
  const std::uint64_t newest = last_timer_;  // those that are made meanwhile wait for a turn of their own
  while (!timers_.empty() && timers_.begin()->first.first <= due && timers_.begin()->first.second <= newest) {
    auto first = timers_.extract(timers_.begin());
    if (Timer* const owner = first.mapped().owner) owner->loop_ = nullptr;
    call(first.mapped().task);
  }
}

void Loop::run_deferred() {
  for (std::size_t left = deferred_.size(); left > 0; --left) {
    Task task = next_deferred();
    if (task) call(task);
  }
}

// The first one; empty if it was cancelled.
Loop::Task Loop::next_deferred() {
  DeferredTask& first = deferred_.front();
  if (first.owner != nullptr) first.owner->place_ = nullptr;
  Task task = std::move(first.task);
  deferred_.pop_front();
  return task;
}

void Loop::collect_posted() {
  mailbox_->take(posted_);
  for (Task& task : posted_) deferred_.emplace_back(std::move(task));
  posted_.clear();
}

void Loop::silence_alarm() {
  std::uint64_t count = 0;
  if (read(alarm_.get(), &count, sizeof count) > 0) alarm_time_.reset();
}

void Loop::set_blocking_input(int fd, Watcher& watcher) {
  if (alarm_) throw std::logic_error("a loop that is waited for elsewhere has no blocking input");
  blocking_input_ = fd;
  input_watcher_ = &watcher;
  input_wanted_ = true;
}

void Loop::want_blocked_output(int fd, Watcher& watcher) {
  blocked_output_ = fd;
  output_watcher_ = &watcher;
}

void Loop::clear_blocked_output() {
  blocked_output_ = -1;
  output_watcher_ = nullptr;
}

void Loop::clear_blocking_input() {
  blocking_input_ = -1;
  input_watcher_ = nullptr;
  input_wanted_ = false;
}

}  // namespace duet::transport
