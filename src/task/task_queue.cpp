#include "task/task_queue.h"

#include <algorithm>

namespace duet::task {

// Not -priority: the least number has no opposite.
TaskQueue::Rank TaskQueue::rank(TaskId id, const Entry& entry) { return {~entry.task.priority, id}; }

const QueuedTask* TaskQueue::find(TaskId id) const {
  const auto found = tasks_.find(id);
  return found == tasks_.end() ? nullptr : &found->second.task;
}

void TaskQueue::add(TaskId id, QueuedTask task) {
  const auto [place, is_new] = tasks_.try_emplace(id, Entry{std::move(task)});
  if (is_new) ready_.insert(rank(id, place->second));
}

void TaskQueue::remove(TaskId id) {
  const auto found = tasks_.find(id);
  if (found == tasks_.end()) return;
  ready_.erase(rank(id, found->second));
  tasks_.erase(found);
}

void TaskQueue::block(TaskId id) {
  const auto found = tasks_.find(id);
  if (found == tasks_.end()) return;
  if (found->second.blocks++ == 0) ready_.erase(rank(id, found->second));
}

void TaskQueue::unblock(TaskId id) {
  const auto found = tasks_.find(id);
  if (found == tasks_.end()) return;
  if (--found->second.blocks == 0) ready_.insert(rank(id, found->second));
}

void TaskQueue::wait_for(TaskId id, TaskId dependency) {
  block(id);
  dependents_[dependency].push_back(id);
}

std::vector<TaskId> TaskQueue::take_dependents(TaskId dependency) {
  const auto found = dependents_.find(dependency);
  if (found == dependents_.end()) return {};
  std::vector<TaskId> ids = std::move(found->second);
  dependents_.erase(found);
  std::erase_if(ids, [this](TaskId id) { return !contains(id); });
  return ids;
}

std::optional<std::pair<TaskId, QueuedTask>> TaskQueue::take_next() {
  if (ready_.empty()) return std::nullopt;
  const TaskId id = ready_.begin()->second;
  ready_.erase(ready_.begin());
  auto node = tasks_.extract(id);
  return std::pair(id, std::move(node.mapped().task));
}

}  // namespace duet::task
