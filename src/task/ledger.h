#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/json/object.hpp>
#include <tl/expected.hpp>

#include "duet/rpc/error.h"
#include "duet/transport/loop.h"
#include "task/store.h"
#include "task/task.h"

namespace duet::task {

/// A task goes from one state to another, or stays in it with something changed.
struct Transition {
  TaskId id = 0;
  std::string agent = {};
  State from = State::queued;
  Progress to = {};
  std::optional<std::string> result = {};
  bool is_awaited = false;  ///< by others than those who wait() for the task
};

/// Writes down what becomes of tasks and, when it is on disk and not before, tells the world: it counts, emits events,
/// and answers those who wait for a task's end. For the loop's thread only.
class Ledger {
 public:
  using Emit = std::function<void(std::string_view kind, boost::json::object params)>;
  using Waiter = std::function<void(const tl::expected<Task, rpc::Error>&)>;
  using Ticket = std::pair<TaskId, std::uint64_t>;

  Ledger(transport::Loop& loop, Store& store, Emit emit);
  Ledger(const Ledger&) = delete;
  Ledger& operator=(const Ledger&) = delete;
  ~Ledger();

  const StateCounts& counts() const { return counts_; }

  /// `done(false)`: it could not be written, and is as if it had never been asked for.
  void insert(Task task, const Submission& submission, std::string body, Store::Done done);
  void decide(Transition transition, Store::Done done);
  /// What has happened; it is on disk sooner or later.
  void note(Transition transition, std::function<void()> done);
  void erase(const std::vector<EndedTask>& tasks, Store::Done done);

  tl::expected<Task, rpc::Error> find(TaskId id);

  /// Calls once with the task when it has ended, or with what it is then when the time is up.
  Ticket wait(TaskId id, std::optional<base::Duration> limit, Waiter waiter);
  void stop_waiting(const Ticket& ticket);
  /// Nobody will learn any more how a task ends.
  void refuse_waiting(const rpc::Error& why);

 private:
  struct Waiting {
    Waiter waiter;
    std::optional<transport::Loop::Timer> timer;
  };

  void announce(const Transition& transition);
  bool is_awaited(TaskId id) const;
  void time_is_up(const Ticket& ticket);
  void wake(TaskId id);

  transport::Loop& loop_;
  Store& store_;
  Emit emit_;
  StateCounts counts_;
  std::map<Ticket, Waiting> waiting_;
  std::uint64_t last_ticket_ = 0;
};

}  // namespace duet::task
