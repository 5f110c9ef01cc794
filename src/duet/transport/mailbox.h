#pragma once

#include <mutex>
#include <vector>

#include "duet/api.h"
#include "duet/base/fd.h"
#include "duet/base/unique_function.h"

namespace duet::transport {

/// Work for a loop.
using Task = base::UniqueFunction<void()>;

/// Where other threads leave work for a loop. It outlives the loop if they do; what they post then is dropped.
class DUET_API Mailbox {
 public:
  Mailbox();

  /// For any thread. False: the loop is gone, and the task is destroyed.
  bool post(Task task);

  /// Readable while there is something to take.
  int descriptor() const { return wake_.get(); }
  /// Puts what was posted, in order, into `tasks`, which is empty. For the loop's thread, as all that follows.
  void take(std::vector<Task>& tasks);
  /// Drops what is there and what will come.
  void close();

 private:
  base::Fd wake_;
  std::mutex mutex_;
  std::vector<Task> posted_;
  bool open_ = true;
};

}  // namespace duet::transport
