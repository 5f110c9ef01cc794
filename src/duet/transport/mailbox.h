#pragma once

#include <mutex>
#include <vector>

#include "duet/base/fd.h"
#include "duet/base/unique_function.h"

namespace duet::transport {

/// Work for a loop.
using Task = base::UniqueFunction<void()>;

/// Where other threads leave work for a loop. It outlives the loop if they do; what they post then is dropped.
class Mailbox {
 public:
  Mailbox();

  /// For any thread. False: the loop is gone, and the task is destroyed.
  bool post(Task task);

  /// Readable while there is something to take.
  int descriptor() const { return wake_.get(); }
  /// What was posted, in order. For the loop's thread, as all that follows.
  std::vector<Task> take();
  /// Drops what is there and what will come.
  void close();

 private:
  base::Fd wake_;
  std::mutex mutex_;
  std::vector<Task> posted_;
  bool open_ = true;
};

}  // namespace duet::transport
