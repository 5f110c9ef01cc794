#include "task/commit_thread.h"

#include <utility>

#include "duet/base/blocked_signals.h"

namespace duet::task {

CommitThread::CommitThread() {
  const base::BlockedSignals blocked;
  thread_ = std::thread([this] { run(); });
}

CommitThread::~CommitThread() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void CommitThread::give(std::function<void()> work) {
  {
    const std::lock_guard lock(mutex_);
    work_ = std::move(work);
  }
  changed_.notify_one();
}

void CommitThread::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return work_ || ending_; });
    if (!work_) return;
    const std::function<void()> work = std::exchange(work_, nullptr);
    lock.unlock();
    work();
    lock.lock();
  }
}

}  // namespace duet::task
