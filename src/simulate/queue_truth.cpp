#include "simulate/queue_truth.h"

#include <algorithm>
#include <utility>

namespace duet::simulate {

using task::TaskId;

void QueueTruth::queued(TaskId id, std::int64_t priority, std::vector<TaskId> after, const std::string& group,
                        const std::string& agent) {
  waiting_[id] = {priority, std::move(after), turn_, group, agent};
}

std::set<std::string> QueueTruth::ready_groups(const std::set<std::string>& agents) const {
  std::set<std::string> groups;
  for (const auto& [id, task] : waiting_) {
    if (agents.contains(task.agent) && may_start(task)) groups.insert(task.group);
  }
  return groups;
}

bool QueueTruth::may_start(const Waiting& task) const {
  const auto has_completed = [&](TaskId id) {
    const auto found = completed_.find(id);
    return found != completed_.end() && found->second < turn_;
  };
  return task.since < turn_ && std::ranges::all_of(task.after, has_completed);
}

std::optional<TaskId> QueueTruth::passed_over(TaskId id, std::int64_t priority, const std::string& group,
                                              const std::string& agent) const {
  for (const auto& [other, task] : waiting_) {
    const bool is_before = task.priority > priority || (task.priority == priority && other < id);
    const bool is_comparable = task.group == group && task.agent == agent;
    if (other != id && is_before && is_comparable && may_start(task)) return other;
  }
  return std::nullopt;
}

}  // namespace duet::simulate
