#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "duet/transport/loop.h"
#include "task/task.h"

namespace duet::task {

/// Those who wait for more output of a task. They look for themselves whether what has come is enough; whoever has
/// news of a task calls take(). For the loop's thread only.
class OutputWaiters {
 public:
  /// True: it is content, and is not called again. `is_last`: whatever there is, it will not be.
  using Look = std::function<bool(bool is_last)>;
  using Ticket = std::pair<TaskId, std::uint64_t>;

  explicit OutputWaiters(transport::Loop& loop) : loop_(loop) {}
  OutputWaiters(const OutputWaiters&) = delete;
  OutputWaiters& operator=(const OutputWaiters&) = delete;

  Ticket wait(TaskId id, base::Duration limit, Look look);
  void stop_waiting(const Ticket& ticket) { waiting_.erase(ticket); }
  bool is_waiting(const Ticket& ticket) const { return waiting_.contains(ticket); }
  bool is_awaited(TaskId id) const;
  bool is_empty() const { return waiting_.empty(); }
  /// Each once.
  std::vector<TaskId> awaited() const;
  /// There may be more of it, or there will not be any.
  void take(TaskId id);
  /// Nobody will learn of more.
  void end();

 private:
  struct Waiting {
    Look look;
    transport::Loop::Timer timer;
  };

  void look(const Ticket& ticket, bool is_last);

  transport::Loop& loop_;
  std::map<Ticket, Waiting> waiting_;
  std::uint64_t last_ticket_ = 0;
};

}  // namespace duet::task
