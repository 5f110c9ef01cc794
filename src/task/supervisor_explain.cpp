#include <algorithm>
#include <utility>

#include "duet/base/utc_text.h"
#include "task/supervisor.h"

// Why a task does not run, and what would change that.

namespace duet::task {
namespace {

// `1 task runs`, `2 tasks run`.
std::string count_text(std::size_t count, const std::string& verb) {
  return std::to_string(count) + (count == 1 ? " task " + verb + "s" : " tasks " + verb);
}

std::string seconds_text(base::Duration time) {
  const auto whole = std::chrono::ceil<std::chrono::seconds>(std::max(time, base::Duration::zero())).count();
  if (whole < 120) return std::to_string(whole) + " s";
  if (whole < 7200) return std::to_string((whole + 59) / 60) + " min";
  return std::to_string((whole + 3599) / 3600) + " h";
}

std::string ended_text(const Task& task) {
  switch (task.progress.state) {
    case State::running:
      return "it runs";
    case State::completed:
      return "it has completed";
    case State::cancelled:
      return "it was cancelled";
    case State::failed:
      return "it has failed: " + (task.progress.error ? task.progress.error->message : std::string("nobody knows why"));
    case State::queued:
      break;
  }
  return "it is queued";
}

WaitReason slot_reason(Why why, std::string text, std::string change, std::size_t running, std::size_t limit) {
  WaitReason reason{.why = why, .text = std::move(text), .change = std::move(change)};
  reason.running = running;
  reason.limit = limit;
  return reason;
}

}  // namespace

tl::expected<Explanation, rpc::Error> Supervisor::explain(TaskId id) {
  const tl::expected<Task, rpc::Error> task = find(id);
  if (!task) return tl::unexpected(task.error());
  Explanation explanation{.id = id, .state = task->progress.state, .text = ended_text(*task)};
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
  explanation.text.clear();
  for (const WaitReason& reason : reasons) explanation.text += (explanation.text.empty() ? "" : "; ") + reason.text;
  return explanation;
}

// What it waits for by itself.
void Supervisor::explain_blocks(TaskId id, const ActiveTask& task, std::vector<WaitReason>& reasons) {
  const auto is_blocked = [this, id](Block block) { return queue_.is_blocked(id, block); };
  if (is_blocked(Block::cancel)) reasons.push_back({.why = Why::cancelling, .text = "it is being cancelled"});
  if (is_blocked(Block::held)) {
    reasons.push_back({.why = Why::held, .text = "it is held", .change = "release it: task release " + to_text(id)});
  }
  if (is_blocked(Block::after)) explain_dependencies(id, task, reasons);
  if (is_blocked(Block::delay)) {
    WaitReason reason{.why = Why::not_before,
                      .change = "wait, or take the delay away: task edit " + to_text(id) + " --delay 0"};
    reason.until = task.not_before;
    reason.left = wakes_.left(id, Block::delay);
    reason.text = "it does not start before " + base::utc_text(task.not_before.value_or(base::UtcTime())) + ", in " +
                  seconds_text(reason.left.value_or(base::Duration()));
    reasons.push_back(std::move(reason));
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
  WaitReason reason{.why = Why::retry, .change = "wait"};
  reason.left = wakes_.left(id, Block::pause);
  reason.until = loop_.clock().utc() + reason.left.value_or(base::Duration());
  reason.text = "its next attempt is in " + seconds_text(reason.left.value_or(base::Duration()));
  reasons.push_back(std::move(reason));
}

void Supervisor::explain_dependencies(TaskId id, const ActiveTask& task, std::vector<WaitReason>& reasons) {
  for (const TaskId dependency : task.after) {
    const auto standing = store_.read([=](StoreReader& tasks) { return tasks.standing(dependency); });
    if (!standing || !*standing || has_ended((*standing)->state)) continue;
    WaitReason reason{.why = Why::after, .task = dependency, .state = (*standing)->state};
    const std::string name = to_text(dependency);
    reason.text.append("it waits for ").append(name).append(" (").append(name_of(*reason.state)).append(")");
    if (*reason.state == State::running) {
      reason.change.append("wait until ").append(name).append(" has completed");
    } else {
      reason.change.append("see why ").append(name).append(" does not run: task explain ").append(name);
      reason.change.append("; or task edit ").append(to_text(id));
    }
    reasons.push_back(std::move(reason));
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
  if (gate_.is_paused(task.group)) {
    WaitReason reason{.why = Why::group_paused, .change = "resume it: queue resume " + task.group};
    reason.text = "its group '" + task.group + "' is paused";
    reason.group = task.group;
    reasons.push_back(std::move(reason));
  }
  explain_agent(task, reasons);
  if (const std::size_t running = slots_in_use(); running >= settings_.max_running) {
    reasons.push_back(slot_reason(Why::slot, "all slots are taken: " + count_text(running, "run"),
                                  "wait until one ends, or raise max_running", running, settings_.max_running));
  }
  const auto group = settings_.groups.find(task.group);
  const std::size_t running = running_in_group(task.group);
  if (group == settings_.groups.end() || !group->second.max_running || running < *group->second.max_running) return;
  reasons.push_back(slot_reason(
      Why::group_slot, "all slots of its group '" + task.group + "' are taken: " + count_text(running, "run"),
      "wait until one ends, or raise groups." + task.group + ".max_running", running, *group->second.max_running));
  reasons.back().group = task.group;
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
    WaitReason reason{.why = Why::agent_held, .change = "wait, or release it: agent release " + task.agent};
    reason.until = held->second.until;
    reason.left = held->second.until - loop_.clock().utc();
    reason.text = "its agent '" + task.agent + "' is held until " + base::utc_text(held->second.until);
    reason.agent = task.agent;
    reason.task = held->second.task;
    reasons.push_back(std::move(reason));
  }
  const std::size_t running = running_for_agent(task.agent);
  if (!agent->max_running || running < *agent->max_running) return;
  reasons.push_back(slot_reason(
      Why::agent_slot, "all slots of its agent '" + task.agent + "' are taken: " + count_text(running, "run"),
      "wait until one ends, or raise agents." + task.agent + ".max_running", running, *agent->max_running));
  reasons.back().agent = task.agent;
}

void Supervisor::explain_turn(TaskId id, std::vector<WaitReason>& reasons) const {
  const TaskQueue::Blocks blocks = queue_.blocks(id);
  const bool may_start = std::ranges::all_of(blocks, [](std::uint16_t block) { return block == 0; });
  const std::size_t before = may_start ? queue_.count_before(id) : 0;
  if (before > 0) {
    reasons.push_back({.why = Why::turn,
                       .text = count_text(before, "come") + " before it, of its group and agent",
                       .change = "wait, or give it a higher priority: task edit " + to_text(id) + " --priority N"});
  } else if (reasons.empty()) {
    reasons.push_back({.why = Why::turn, .text = "it is about to start", .change = "wait a moment"});
  }
}

}  // namespace duet::task
