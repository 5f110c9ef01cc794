#include "task/explanation.h"

#include <algorithm>
#include <utility>

#include "duet/base/utc_text.h"

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

WaitReason full_reason(Why why, std::string text, std::string change, std::size_t running, std::size_t limit) {
  WaitReason reason{.why = why, .text = std::move(text), .change = std::move(change)};
  reason.running = running;
  reason.limit = limit;
  return reason;
}

}  // namespace

std::string state_text(const Task& task) {
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

WaitReason held_reason(TaskId id) {
  return {.why = Why::held, .text = "it is held", .change = "release it: task release " + to_text(id)};
}

WaitReason after_reason(TaskId id, TaskId dependency, State state) {
  WaitReason reason{.why = Why::after, .task = dependency, .state = state};
  const std::string name = to_text(dependency);
  reason.text.append("it waits for ").append(name).append(" (").append(name_of(state)).append(")");
  if (state == State::running) {
    reason.change.append("wait until ").append(name).append(" has completed");
  } else {
    reason.change.append("see why ").append(name).append(" does not run: task explain ").append(name);
    reason.change.append("; or task edit ").append(to_text(id));
  }
  return reason;
}

WaitReason not_before_reason(TaskId id, std::optional<base::UtcTime> time, base::Duration left) {
  WaitReason reason{.why = Why::not_before,
                    .change = "wait, or take the delay away: task edit " + to_text(id) + " --delay 0"};
  reason.until = time;
  reason.left = left;
  reason.text =
      "it does not start before " + base::utc_text(time.value_or(base::UtcTime())) + ", in " + seconds_text(left);
  return reason;
}

WaitReason retry_reason(base::UtcTime now, base::Duration left) {
  WaitReason reason{.why = Why::retry, .change = "wait"};
  reason.left = left;
  reason.until = now + left;
  reason.text = "its next attempt is in " + seconds_text(left);
  return reason;
}

WaitReason group_paused_reason(const std::string& group) {
  WaitReason reason{.why = Why::group_paused, .change = "resume it: queue resume " + group};
  reason.text = "its group '" + group + "' is paused";
  reason.group = group;
  return reason;
}

WaitReason agent_held_reason(const std::string& agent, base::UtcTime until, base::UtcTime now, TaskId task) {
  WaitReason reason{.why = Why::agent_held, .change = "wait, or release it: agent release " + agent};
  reason.until = until;
  reason.left = until - now;
  reason.text = "its agent '" + agent + "' is held until " + base::utc_text(until);
  reason.agent = agent;
  reason.task = task;
  return reason;
}

WaitReason slot_reason(std::size_t running, std::size_t limit) {
  return full_reason(Why::slot, "all slots are taken: " + count_text(running, "run"),
                     "wait until one ends, or raise max_running", running, limit);
}

WaitReason group_slot_reason(const std::string& group, std::size_t running, std::size_t limit) {
  WaitReason reason =
      full_reason(Why::group_slot, "all slots of its group '" + group + "' are taken: " + count_text(running, "run"),
                  "wait until one ends, or raise groups." + group + ".max_running", running, limit);
  reason.group = group;
  return reason;
}

WaitReason agent_slot_reason(const std::string& agent, std::size_t running, std::size_t limit) {
  WaitReason reason =
      full_reason(Why::agent_slot, "all slots of its agent '" + agent + "' are taken: " + count_text(running, "run"),
                  "wait until one ends, or raise agents." + agent + ".max_running", running, limit);
  reason.agent = agent;
  return reason;
}

WaitReason turn_reason(TaskId id, std::size_t before) {
  if (before == 0) return {.why = Why::turn, .text = "it is about to start", .change = "wait a moment"};
  return {.why = Why::turn,
          .text = count_text(before, "come") + " before it, of its group and agent",
          .change = "wait, or give it a higher priority: task edit " + to_text(id) + " --priority N"};
}

std::string text_of(const std::vector<WaitReason>& reasons) {
  std::string text;
  for (const WaitReason& reason : reasons) text += (text.empty() ? "" : "; ") + reason.text;
  return text;
}

}  // namespace duet::task
