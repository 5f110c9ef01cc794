#include "duet/transport/mailbox.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>
#include <utility>

namespace duet::transport {

Mailbox::Mailbox() : wake_(base::check_call(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "eventfd")) {}

bool Mailbox::post(Task task) {
  {
    const std::lock_guard lock(mutex_);
    if (!open_) return false;
    posted_.push_back(std::move(task));
    if (posted_.size() > 1) return true;  // the loop has been woken for the first one
  }
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(wake_.get(), &one, sizeof one);
  return true;
}

void Mailbox::take(std::vector<Task>& tasks) {
  std::uint64_t count = 0;
  [[maybe_unused]] const ssize_t got = read(wake_.get(), &count, sizeof count);
  const std::lock_guard lock(mutex_);
  tasks.swap(posted_);
}

void Mailbox::close() {
  std::vector<Task> dropped;  // without the lock: their ends may post
  const std::lock_guard lock(mutex_);
  open_ = false;
  dropped.swap(posted_);
}

}  // namespace duet::transport
