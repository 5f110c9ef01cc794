#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "duet/transport/mailbox.h"

namespace duet::transport {

/// A few threads for work that would hold a loop up. They are started as they are needed.
///
/// Work must not throw. Of what has not begun when this ends, nothing is done; what has begun is waited for.
class Workers {
 public:
  struct Limits {
    std::size_t threads = 4;
    std::size_t waiting = 1000;  ///< works that no thread has begun
  };

  explicit Workers(Limits limits) : limits_(limits) {}
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;
  ~Workers();

  /// Throws std::system_error: EAGAIN, too much waits already, or there is not even one thread.
  void give(Task work);

 private:
  void start_thread();
  void run();

  Limits limits_;
  std::vector<std::thread> threads_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Task> waiting_;
  std::size_t idle_ = 0;
  bool ending_ = false;
};

}  // namespace duet::transport
