#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "task/task.h"

namespace duet::simulate {

/// Which tasks may start, and so which one is next in its group and for its agent: the highest priority, and of those
/// the oldest.
///
/// Only tasks of which that is certain count: that nobody has tried to start yet, nobody has asked to cancel, to hold
/// or to edit, which have no delay, and whose dependencies have succeeded. What was told in a turn of the daemon counts
/// from the next one on.
class QueueTruth {
 public:
  void next_turn() { ++turn_; }
  void queued(task::TaskId id, std::int64_t priority, std::vector<task::TaskId> after,
              const std::string& group = task::default_group, const std::string& agent = {});
  void completed(task::TaskId id) { completed_[id] = turn_; }
  /// It was queued again: who comes after it may have to wait once more.
  void queued_again(task::TaskId id) { completed_.erase(id); }
  /// It has ended, somebody asked for its end, or it was tried to start.
  void left(task::TaskId id) { waiting_.erase(id); }
  /// A start of a task of this priority: one that should have started before it.
  std::optional<task::TaskId> passed_over(task::TaskId id, std::int64_t priority,
                                          const std::string& group = task::default_group,
                                          const std::string& agent = {}) const;
  /// Those with a task that may start, for one of these agents.
  std::set<std::string> ready_groups(const std::set<std::string>& agents) const;

 private:
  struct Waiting {
    std::int64_t priority = 0;
    std::vector<task::TaskId> after = {};
    std::uint64_t since = 0;
    std::string group = {};
    std::string agent = {};
  };
  bool may_start(const Waiting& task) const;

  std::uint64_t turn_ = 0;
  std::map<task::TaskId, Waiting> waiting_;
  std::map<task::TaskId, std::uint64_t> completed_;  // in which turn
};

}  // namespace duet::simulate
