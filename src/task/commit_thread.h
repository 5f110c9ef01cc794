#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace duet::task {

/// A thread that does one piece of work at a time, and takes no signals. Whoever gives it work waits to hear of its end
/// before giving more. Destruction waits for the work that was given.
class CommitThread {
 public:
  CommitThread();
  CommitThread(const CommitThread&) = delete;
  CommitThread& operator=(const CommitThread&) = delete;
  ~CommitThread();

  void give(std::function<void()> work);

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::function<void()> work_;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace duet::task
