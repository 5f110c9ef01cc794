#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "duet/base/clock.h"
#include "task/task.h"

namespace duet::task {

/// Why a queued task does not run.
enum class Why : std::uint8_t {
  slot,          ///< as many run as may
  group_slot,    ///< of its group
  agent_slot,    ///< of its agent
  paused,        ///< the queue is
  group_paused,  ///< its group is
  held,          ///< somebody holds it
  after,         ///< another task comes first
  not_before,    ///< its time has not come
  retry,         ///< its next attempt has a pause before it
  agent_held,    ///< its agent has met a usage limit
  no_agent,      ///< the settings have no agent of that name
  leftovers,     ///< processes of its last attempt are still there
  cancelling,    ///< it is being cancelled
  turn,          ///< others are before it
  starting,      ///< it is being started
  store,         ///< the store cannot be written
  stopping,      ///< the daemon is
  shortage,      ///< the machine has no room for one more process now
  limits,        ///< its limits cannot be kept
  worker,        ///< no worker of the queue could do it
};

/// One reason, with what it is about.
struct WaitReason {
  Why why = Why::turn;
  std::string text = {};    ///< for people
  std::string change = {};  ///< what would change it, for people
  std::optional<TaskId> task = {};
  std::optional<State> state = {};  ///< of that task
  std::string group = {};
  std::string agent = {};
  std::optional<base::UtcTime> until = {};
  std::optional<base::Duration> left = {};
  std::optional<std::size_t> running = {};
  std::optional<std::size_t> limit = {};
};

/// What becomes of a task, and why it does not run if it is queued.
struct Explanation {
  TaskId id = 0;
  State state = State::queued;
  std::string text = {};
  std::vector<WaitReason> reasons = {};
};

// Each reason in words, for whoever finds it.

std::string state_text(const Task& task);
WaitReason held_reason(TaskId id);
/// Another one comes first, which is in this state.
WaitReason after_reason(TaskId id, TaskId dependency, State state);
WaitReason not_before_reason(TaskId id, std::optional<base::UtcTime> time, base::Duration left);
WaitReason retry_reason(base::UtcTime now, base::Duration left);
WaitReason group_paused_reason(const std::string& group);
WaitReason agent_held_reason(const std::string& agent, base::UtcTime until, base::UtcTime now, TaskId task);
WaitReason slot_reason(std::size_t running, std::size_t limit);
WaitReason group_slot_reason(const std::string& group, std::size_t running, std::size_t limit);
WaitReason agent_slot_reason(const std::string& agent, std::size_t running, std::size_t limit);
/// So many come before it; none: it is about to start.
WaitReason turn_reason(TaskId id, std::size_t before);
/// All of them in one sentence.
std::string text_of(const std::vector<WaitReason>& reasons);

}  // namespace duet::task
