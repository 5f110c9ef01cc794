#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include <tl/expected.hpp>

#include "duet/rpc/error.h"
#include "duet/transport/loop.h"
#include "task/store.h"
#include "task/task.h"

namespace duet::task {

/// Those who wait for the end of a task. The journal tells when it comes. For the loop's thread only.
class EndWaiters {
 public:
  using Waiter = std::function<void(const tl::expected<Task, rpc::Error>&)>;
  using Ticket = std::pair<TaskId, std::uint64_t>;

  EndWaiters(transport::Loop& loop, Store& store) : loop_(loop), store_(store) {}
  EndWaiters(const EndWaiters&) = delete;
  EndWaiters& operator=(const EndWaiters&) = delete;

  /// Calls once with the task when it has ended, or with what it is then when the time is up.
  Ticket wait(TaskId id, std::optional<base::Duration> limit, Waiter waiter);
  void stop_waiting(const Ticket& ticket);
  bool is_awaited(TaskId id) const;
  /// A task has ended.
  void take(TaskId id);
  /// Nobody will learn any more how a task ends.
  void refuse_all(const rpc::Error& why);

 private:
  struct Waiting {
    Waiter waiter;
    transport::Loop::Timer timer;
  };

  void time_is_up(const Ticket& ticket);

  transport::Loop& loop_;
  Store& store_;
  std::map<Ticket, Waiting> waiting_;
  std::uint64_t last_ticket_ = 0;
};

/// As it is on disk.
tl::expected<Task, rpc::Error> find_task(Store& store, TaskId id);

}  // namespace duet::task
