#include <algorithm>
#include <utility>

#include "task/supervisor.h"

// Why a task does not run, and what would change that.

namespace duet::task {

tl::expected<Explanation, rpc::Error> Supervisor::explain(TaskId id) {
  const tl::expected<Task, rpc::Error> task = find(id);
  if (!task) return tl::unexpected(task.error());
  Explanation explanation{.id = id, .state = task->progress.state, .text = state_text(*task)};
  if (task->progress.state != State::queued) return explanation;
  const auto active = store_.read([id](StoreReader& tasks) { return tasks.find_active(id); });
  if (!active) return tl::unexpected(active.error());
  if (!*active) return explanation;
  std::vector<WaitReason>& reasons = explanation.reasons;
  if (!queue_.contains(id)) {
    reasons.push_back({.why = Why::starting, .text = "it is being started"});
  } else {
    explain_blocks(id, **active, reasons);
    explain_doors(**active, reasons);
    explain_turn(id, reasons);
  }
  explanation.text = text_of(reasons);
  return explanation;
}

// What it waits for by itself.
void Supervisor::explain_blocks(TaskId id, const ActiveTask& task, std::vector<WaitReason>& reasons) {
  const auto is_blocked = [this, id](Block block) { return queue_.is_blocked(id, block); };
  if (is_blocked(Block::cancel)) reasons.push_back({.why = Why::cancelling, .text = "it is being cancelled"});
  if (is_blocked(Block::held)) reasons.push_back(held_reason(id));
  if (is_blocked(Block::after)) explain_dependencies(id, task, reasons);
  if (is_blocked(Block::delay)) {
    reasons.push_back(not_before_reason(id, task.not_before, wakes_.left(id, Block::delay).value_or(base::Duration())));
  }
  explain_pause(id, reasons);
  if (is_blocked(Block::leftovers)) {
    reasons.push_back({.why = Why::leftovers,
                       .text = "processes of its last attempt are still there",
                       .change = "they are ended; wait some seconds"});
  }
  if (is_blocked(Block::reading)) {
    reasons.push_back({.why = Why::store, .text = "what it comes after cannot be read", .change = "look at the disk"});
  }
}

// One whose limits cannot be kept is tried again and again, but waiting does not help it.
void Supervisor::explain_pause(TaskId id, std::vector<WaitReason>& reasons) const {
  if (const Shortages::Shortage* const limits = shortages_.of_limits(id)) {
    return reasons.push_back({.why = Why::limits,
                              .text = "its limits cannot be kept: " + limits->what,
                              .change = "run the daemon where they can be kept, or cancel it"});
  }
  if (!queue_.is_blocked(id, Block::pause)) return;
  reasons.push_back(retry_reason(loop_.clock().utc(), wakes_.left(id, Block::pause).value_or(base::Duration())));
}

void Supervisor::explain_dependencies(TaskId id, const ActiveTask& task, std::vector<WaitReason>& reasons) {
  for (const TaskId dependency : task.after) {
    const auto standing = store_.read([=](StoreReader& tasks) { return tasks.standing(dependency); });
    if (!standing || !*standing || has_ended((*standing)->state)) continue;
    reasons.push_back(after_reason(id, dependency, (*standing)->state));
  }
}

// What is in the way of all tasks, or of those of its group.
void Supervisor::explain_doors(const ActiveTask& task, std::vector<WaitReason>& reasons) const {
  if (stopping_) {
    reasons.push_back({.why = Why::stopping,
                       .text = "the daemon is stopping",
                       .change = "start it again when it has stopped: daemon start"});
  }
  if (!store_.is_healthy()) {
    reasons.push_back({.why = Why::store,
                       .text = "the store cannot be written: " + store_.health().problem,
                       .change = "see daemon status"});
  }
  if (const auto& shortage = shortages_.of_machine()) {
    reasons.push_back({.why = Why::shortage,
                       .text = "tasks cannot be started now: " + shortage->what,
                       .change = "it is tried again and again; see daemon status"});
  }
  if (gate_.is_paused()) {
    reasons.push_back({.why = Why::paused, .text = "the queue is paused", .change = "resume it: queue resume"});
  }
  if (gate_.is_paused(task.group)) reasons.push_back(group_paused_reason(task.group));
  explain_agent(task, reasons);
  if (const std::size_t running = slots_in_use(); running >= settings_.max_running) {
    reasons.push_back(slot_reason(running, settings_.max_running));
  }
  const auto group = settings_.groups.find(task.group);
  const std::size_t running = running_in_group(task.group);
  if (group == settings_.groups.end() || !group->second.max_running || running < *group->second.max_running) return;
  reasons.push_back(group_slot_reason(task.group, running, *group->second.max_running));
}

void Supervisor::explain_agent(const ActiveTask& task, std::vector<WaitReason>& reasons) const {
  const Agent* const agent = agents_.find(task.agent);
  if (agent == nullptr) {
    WaitReason reason{.why = Why::no_agent, .change = "add [agents." + task.agent + "] to the settings, or cancel it"};
    reason.text = "the settings have no agent of the name '" + task.agent + "'";
    if (agents_.is_untrusted(task.agent)) {
      reason.text = "its agent '" + task.agent + "' is one of the project's settings, and " + agents_.distrust().why;
      reason.change = agents_.distrust().cure;
    }
    reason.agent = task.agent;
    return reasons.push_back(std::move(reason));
  }
  if (const auto held = gate_.holds().find(task.agent); held != gate_.holds().end()) {
    reasons.push_back(agent_held_reason(task.agent, held->second.until, loop_.clock().utc(), held->second.task));
  }
  const std::size_t running = running_for_agent(task.agent);
  if (!agent->max_running || running < *agent->max_running) return;
  reasons.push_back(agent_slot_reason(task.agent, running, *agent->max_running));
}

void Supervisor::explain_turn(TaskId id, std::vector<WaitReason>& reasons) const {
  const TaskQueue::Blocks blocks = queue_.blocks(id);
  const bool may_start = std::ranges::all_of(blocks, [](std::uint16_t block) { return block == 0; });
  const std::size_t before = may_start ? queue_.count_before(id) : 0;
  if (before > 0 || reasons.empty()) reasons.push_back(turn_reason(id, before));
}

}  // namespace duet::task
