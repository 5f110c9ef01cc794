#include "duet/transport/workers.h"

#include <cerrno>
#include <system_error>
#include <utility>

#include "duet/base/blocked_signals.h"

namespace duet::transport {

Workers::~Workers() {
  std::deque<Task> dropped;  // without the lock
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    dropped.swap(waiting_);
  }
  changed_.notify_all();
  dropped.clear();
  for (std::thread& thread : threads_) thread.join();
}

void Workers::give(Task work) {
  bool are_busy = false;
  {
    const std::lock_guard lock(mutex_);
    if (waiting_.size() >= limits_.waiting) {
      throw std::system_error(EAGAIN, std::generic_category(), "too much waits for the threads of the loop");
    }
    are_busy = idle_ <= waiting_.size();
  }
  if (are_busy && threads_.size() < limits_.threads) start_thread();
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(work));
  }
  changed_.notify_one();
}

// Without memory for a further thread, those that are there have to do.
void Workers::start_thread() {
  const base::BlockedSignals blocked;
  try {
    threads_.emplace_back([this] { run(); });
  } catch (const std::system_error&) {
    if (threads_.empty()) throw;
  }
}

void Workers::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    ++idle_;
    changed_.wait(lock, [this] { return ending_ || !waiting_.empty(); });
    --idle_;
    if (waiting_.empty()) return;
    Task work = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    work();
    work = nullptr;
    lock.lock();
  }
}

}  // namespace duet::transport
