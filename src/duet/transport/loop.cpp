#include "duet/transport/loop.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <iterator>
#include <limits>
#include <stdexcept>
#include <typeinfo>

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
  }
  Loop& loop;
};

Loop::Loop(base::Clock& clock)
    : clock_(clock),
      epoll_(base::check_call(epoll_create1(EPOLL_CLOEXEC), "epoll_create1")),
      wake_(base::check_call(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "eventfd")),
      scratch_(scratch_bytes) {
  epoll_event event{.events = EPOLLIN, .data = {.ptr = nullptr}};
  base::check_call(epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, wake_.get(), &event), "epoll_ctl");
}

Loop::~Loop() = default;

void Loop::watch(int fd, std::uint32_t events, Watcher& watcher) {
  epoll_event event{.events = events, .data = {.ptr = &watcher}};
  base::check_call(epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event), "epoll_ctl");
}

void Loop::change(int fd, std::uint32_t events, Watcher& watcher) {
  epoll_event event{.events = events, .data = {.ptr = &watcher}};
  base::check_call(epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event), "epoll_ctl");
}

void Loop::unwatch(int fd, Watcher& watcher) {
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
  for (epoll_event* event = current_; event != current_end_; ++event) {
    if (event->data.ptr == &watcher) event->events = 0;
  }
}

Loop::Timer Loop::at(base::TimePoint when, Task task) {
  const Timer timer{when, ++last_timer_};
  timers_.emplace(timer, std::move(task));
  return timer;
}

Loop::Timer Loop::after(base::Duration wait, Task task) {
  const base::TimePoint from = now();
  const bool endless = wait > base::TimePoint::max() - from;
  return at(endless ? base::TimePoint::max() : from + wait, std::move(task));
}

void Loop::post(Task task) {
  {
    const std::lock_guard lock(posted_mutex_);
    posted_.push_back(std::move(task));
  }
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(wake_.get(), &one, sizeof one);  // full means: awake already
}

void Loop::run() {
  while (!stopping_.load(std::memory_order_relaxed)) turn();
  stopping_ = false;
}

void Loop::stop() {
  stopping_ = true;
  post([] {});
}

void Loop::turn(std::optional<base::TimePoint> deadline) {
  if (turning_) throw std::logic_error("a turn of the loop inside another one");
  const TurnGuard guard(*this);
  const int timeout_ms = timeout_until(deadline);
  if ((front_ >= 0 && front_wanted_) || back_ >= 0) {
    wait_with_front(timeout_ms);
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

void Loop::call(const Task& task) {
  if (overseer_ == nullptr) return task();
  oversee(task.target_type(), task);
}

template <typename Call>
[[gnu::noinline]] void Loop::oversee(const std::type_info& who, const Call& call) {
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
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(*deadline - now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, std::numeric_limits<int>::max()));
}

void Loop::wait_with_front(int timeout_ms) {
  if (timeout_ms < 0 && back_ < 0 && front_blocks_ && guarded_.load(std::memory_order_relaxed)) {
    count_turn();
    if (!attention_.load()) call(*front_watcher_, EPOLLIN);
    if (attention_.load()) {
      dispatch(0);
      attention_.store(false);
    }
    return;
  }
  std::array<pollfd, 3> ready{
      {{front_wanted_ ? front_ : -1, POLLIN, 0}, {back_, POLLOUT, 0}, {epoll_.get(), POLLIN, 0}}};
  waiting_.store(true, std::memory_order_relaxed);
  const int count = poll(ready.data(), ready.size(), timeout_ms);
  waiting_.store(false, std::memory_order_relaxed);
  count_turn();
  if (count <= 0) return;
  if (ready[2].revents != 0) dispatch(0);
  attention_.store(false);  // also when nothing is ready any more, or the front would never be read again
  if (ready[1].revents != 0 && back_watcher_ != nullptr) call(*back_watcher_, EPOLLOUT);
  if (ready[0].revents != 0 && front_watcher_ != nullptr && front_wanted_) call(*front_watcher_, EPOLLIN);
}

ssize_t Loop::read_front(std::span<char> into) {
  in_blocking_read_.store(true);  // before attention_ is looked at: one of the two threads sees the other
  ssize_t count = -1;
  errno = EINTR;
  if (!attention_.load()) count = read(front_, into.data(), into.size());
  in_blocking_read_.store(false, std::memory_order_release);
  if (count < 0 && errno == EAGAIN) front_blocks_ = false;
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
      take_posted();
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
    Task task = std::move(timers_.begin()->second);
    timers_.erase(timers_.begin());
    call(task);
  }
}

void Loop::run_deferred() {
  for (std::size_t left = deferred_.size(); left > 0; --left) {
    const Task task = std::move(deferred_.front());
    deferred_.pop_front();
    call(task);
  }
}

void Loop::take_posted() {
  std::uint64_t count = 0;
  [[maybe_unused]] const ssize_t got = read(wake_.get(), &count, sizeof count);
  const std::lock_guard lock(posted_mutex_);
  std::move(posted_.begin(), posted_.end(), std::back_inserter(deferred_));
  posted_.clear();
}

void Loop::set_front(int fd, Watcher& watcher) {
  front_ = fd;
  front_watcher_ = &watcher;
  front_wanted_ = true;
}

void Loop::want_back(int fd, Watcher& watcher) {
  back_ = fd;
  back_watcher_ = &watcher;
}

void Loop::clear_back() {
  back_ = -1;
  back_watcher_ = nullptr;
}

void Loop::clear_front() {
  front_ = -1;
  front_watcher_ = nullptr;
  front_wanted_ = false;
}

}  // namespace duet::transport
