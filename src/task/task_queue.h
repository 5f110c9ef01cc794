#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "task/task.h"

namespace duet::task {

/// A task in the queue, with no more than is needed there: there may be a hundred thousand.
struct QueuedTask {
  std::int64_t priority = 0;
  std::uint32_t retries = 0;
  std::uint32_t attempts = 0;  ///< that have begun
  std::string agent = {};
};

/// The queued tasks: which one is next, by priority and then by age, and what the others wait for. A task waits as long
/// as anything blocks it: other tasks, a pause before the next attempt, a decision. Pure: no clock, no store.
class TaskQueue {
 public:
  bool contains(TaskId id) const { return tasks_.contains(id); }
  const QueuedTask* find(TaskId id) const;
  std::size_t size() const { return tasks_.size(); }

  void add(TaskId id, QueuedTask task);
  void remove(TaskId id);
  /// It waits for one thing more, or for one less. Nothing happens if it is not in the queue.
  void block(TaskId id);
  void unblock(TaskId id);

  /// Lets `id` wait for `dependency`, which must not have ended.
  void wait_for(TaskId id, TaskId dependency);
  bool has_dependents(TaskId dependency) const { return dependents_.contains(dependency); }
  /// Those that waited for it, whether it succeeded or not; they are still blocked, and still in the queue.
  std::vector<TaskId> take_dependents(TaskId dependency);

  /// The one to start next, which leaves the queue.
  std::optional<std::pair<TaskId, QueuedTask>> take_next();

 private:
  struct Entry {
    QueuedTask task;
    std::uint32_t blocks = 0;
  };
  using Rank = std::pair<std::int64_t, TaskId>;  // smaller starts sooner
  static Rank rank(TaskId id, const Entry& entry);

  std::unordered_map<TaskId, Entry> tasks_;
  std::set<Rank> ready_;
  std::unordered_map<TaskId, std::vector<TaskId>> dependents_;
};

}  // namespace duet::task
