#include "task/task_queue.h"

#include <algorithm>
#include <deque>

namespace duet::task {

// Not -priority: the least number has no opposite.
TaskQueue::Rank TaskQueue::rank(TaskId id, const Entry& entry) { return {~entry.priority, id}; }

QueuedTask TaskQueue::task_of(const Entry& entry) {
  return {.priority = entry.priority,
          .retries = entry.retries,
          .attempts = entry.attempts,
          .spared = entry.spared,
          .agent = entry.lane->agent,
          .group = entry.lane->group};
}

std::optional<QueuedTask> TaskQueue::find(TaskId id) const {
  const auto found = tasks_.find(id);
  return found == tasks_.end() ? std::nullopt : std::optional(task_of(found->second));
}

TaskQueue::Blocks TaskQueue::blocks(TaskId id) const {
  Blocks blocks{};
  const auto found = tasks_.find(id);
  if (found == tasks_.end()) return blocks;
  const Entry& entry = found->second;
  for (std::size_t i = 0; i < block_kinds; ++i) blocks.at(i) = (entry.flags >> i) & 1U;
  blocks.at(static_cast<std::size_t>(Block::after)) = entry.after;
  blocks.at(static_cast<std::size_t>(Block::leftovers)) = entry.leftovers;
  return blocks;
}

TaskQueue::Lane& TaskQueue::lane_of(const std::string& group, const std::string& agent) {
  if (last_lane_ != nullptr && last_lane_->agent == agent && last_lane_->group == group) return *last_lane_;
  const auto in_group = groups_.try_emplace(group).first;
  const auto [place, is_new] = in_group->second.lanes.try_emplace(agent);
  if (is_new) place->second.reset(new Lane{in_group->first, place->first});
  last_lane_ = place->second.get();
  return *last_lane_;
}

void TaskQueue::add(TaskId id, const QueuedTask& task) {
  const auto [place, is_new] = tasks_.try_emplace(id);
  if (!is_new) return;
  Lane& lane = lane_of(task.group, task.agent);
  place->second = {&lane, task.priority, task.retries, task.attempts, task.spared, ++stays_};
  ++lane.queued;
  lane.ready.insert(rank(id, place->second));
}

void TaskQueue::remove(TaskId id) {
  const auto found = tasks_.find(id);
  if (found == tasks_.end()) return;
  Lane& lane = *found->second.lane;
  --lane.queued;
  lane.ready.erase(rank(id, found->second));
  tasks_.erase(found);
}

void TaskQueue::change(TaskId id, std::int64_t priority, const std::string& group) {
  const auto found = tasks_.find(id);
  if (found == tasks_.end()) return;
  Entry& entry = found->second;
  --entry.lane->queued;
  entry.lane->ready.erase(rank(id, entry));
  entry.lane = &lane_of(group, entry.lane->agent);
  entry.priority = priority;
  ++entry.lane->queued;
  if (entry.is_ready()) entry.lane->ready.insert(rank(id, entry));
}

void TaskQueue::set_block(TaskId id, Block why, bool more) {
  const auto found = tasks_.find(id);
  if (found == tasks_.end()) return;
  Entry& entry = found->second;
  const bool was_ready = entry.is_ready();
  if (why == Block::after || why == Block::leftovers) {
    std::uint16_t& count = why == Block::after ? entry.after : entry.leftovers;
    if (more) ++count;
    if (!more && count > 0) --count;
  } else {
    const auto flag = static_cast<std::uint8_t>(1U << static_cast<unsigned>(why));
    entry.flags = static_cast<std::uint8_t>(more ? entry.flags | flag : entry.flags & ~flag);
  }
  if (was_ready && !entry.is_ready()) entry.lane->ready.erase(rank(id, entry));
  if (!was_ready && entry.is_ready()) entry.lane->ready.insert(rank(id, entry));
}

void TaskQueue::block(TaskId id, Block why) { set_block(id, why, true); }

void TaskQueue::unblock(TaskId id, Block why) { set_block(id, why, false); }

void TaskQueue::wait_for(TaskId id, TaskId dependency) {
  const auto found = tasks_.find(id);
  if (found == tasks_.end()) return;
  block(id, Block::after);
  dependents_[dependency].emplace_back(id, found->second.stay);
}

void TaskQueue::stop_waiting_for(TaskId id, TaskId dependency) {
  const auto found = dependents_.find(dependency);
  if (found == dependents_.end()) return;
  const auto removed =
      std::erase_if(found->second, [&](const Waiting& waiting) { return waiting.first == id && is_waiting(waiting); });
  for (std::size_t i = 0; i < removed; ++i) unblock(id, Block::after);
  if (found->second.empty()) dependents_.erase(found);
}

bool TaskQueue::is_waiting(const Waiting& waiting) const {
  const auto found = tasks_.find(waiting.first);
  return found != tasks_.end() && found->second.stay == waiting.second;
}

std::vector<TaskId> TaskQueue::take_dependents(TaskId dependency) {
  const auto found = dependents_.find(dependency);
  if (found == dependents_.end()) return {};
  std::vector<TaskId> ids;
  for (const Waiting& waiting : found->second) {
    if (is_waiting(waiting)) ids.push_back(waiting.first);
  }
  dependents_.erase(found);
  return ids;
}

std::unordered_set<TaskId> TaskQueue::all_dependents(TaskId dependency) const {
  std::unordered_set<TaskId> all;
  std::deque<TaskId> looked_at{dependency};
  for (; !looked_at.empty(); looked_at.pop_front()) {
    const auto found = dependents_.find(looked_at.front());
    if (found == dependents_.end()) continue;
    for (const Waiting& waiting : found->second) {
      if (is_waiting(waiting) && all.insert(waiting.first).second) looked_at.push_back(waiting.first);
    }
  }
  return all;
}

// Of a group: the lane whose first task is next.
TaskQueue::Lane* TaskQueue::first_lane(const Group& group, const Doors& doors) {
  Lane* first = nullptr;
  for (const auto& [agent, lane] : group.lanes) {
    if (lane->ready.empty() || (first != nullptr && *first->ready.begin() < *lane->ready.begin())) continue;
    if (doors.agent(agent)) first = lane.get();
  }
  return first;
}

std::optional<std::pair<TaskId, QueuedTask>> TaskQueue::take_next(const Doors& doors) {
  Lane* next = nullptr;
  Group* next_group = nullptr;
  for (auto& [name, group] : groups_) {
    if (next_group != nullptr && next_group->last_turn < group.last_turn) continue;
    Lane* const lane = doors.group(name) ? first_lane(group, doors) : nullptr;
    if (lane == nullptr) continue;
    const bool is_a_draw = next != nullptr && next_group->last_turn == group.last_turn;
    if (is_a_draw && *next->ready.begin() < *lane->ready.begin()) continue;
    next = lane;
    next_group = &group;
  }
  if (next == nullptr) return std::nullopt;
  next_group->last_turn = ++turns_;
  const TaskId id = next->ready.begin()->second;
  const QueuedTask task = task_of(tasks_.at(id));
  remove(id);
  return std::pair(id, task);
}

std::size_t TaskQueue::count_before(TaskId id) const {
  const auto found = tasks_.find(id);
  if (found == tasks_.end()) return 0;
  const Lane& lane = *found->second.lane;
  const Rank own = rank(id, found->second);
  std::size_t before = 0;
  for (auto at = lane.ready.begin(); at != lane.ready.end() && *at < own && before < most_counted; ++at) ++before;
  return before;
}

std::size_t TaskQueue::queued_in_group(std::string_view group) const {
  const auto found = groups_.find(group);
  std::size_t queued = 0;
  if (found == groups_.end()) return queued;
  for (const auto& [agent, lane] : found->second.lanes) queued += lane->queued;
  return queued;
}

std::size_t TaskQueue::queued_for_agent(std::string_view agent) const {
  std::size_t queued = 0;
  for (const auto& [name, group] : groups_) {
    const auto lane = group.lanes.find(agent);
    if (lane != group.lanes.end()) queued += lane->second->queued;
  }
  return queued;
}

std::vector<std::string> TaskQueue::groups() const {
  std::vector<std::string> names;
  for (const auto& [name, group] : groups_) names.push_back(name);
  return names;
}

}  // namespace duet::task
