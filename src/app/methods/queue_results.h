#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <boost/describe/class.hpp>

#include "duet/rpc/types.h"
#include "task/explanation.h"
#include "task/task.h"

namespace duet::app {

// What `queue.*`, `agent.*` and the methods that change queued tasks answer. The names are those of the JSON members.

struct QueuePaused {
  bool paused;
  bool changed;
  std::vector<std::string> pausedGroups;
};
BOOST_DESCRIBE_STRUCT(QueuePaused, (), (paused, changed, pausedGroups))

struct GroupStatus {
  std::string name;
  bool paused;
  std::size_t running;
  std::size_t queued;
  std::optional<std::size_t> maxRunning = {};
};
BOOST_DESCRIBE_STRUCT(GroupStatus, (), (name, paused, running, queued, maxRunning))

struct HeldAgent {
  std::string agent;
  std::string until;
};
BOOST_DESCRIBE_STRUCT(HeldAgent, (), (agent, until))

struct QueueStatus {
  bool paused;
  bool stopping;
  std::int64_t running;
  std::int64_t queued;
  std::size_t maxRunning;
  std::vector<GroupStatus> groups = {};
  std::vector<HeldAgent> heldAgents = {};
};
BOOST_DESCRIBE_STRUCT(QueueStatus, (), (paused, stopping, running, queued, maxRunning, groups, heldAgents))

struct TaskHeld {
  bool held;
  bool changed;
};
BOOST_DESCRIBE_STRUCT(TaskHeld, (), (held, changed))

struct WaitReasonShown {
  task::Why reason;
  std::string text;
  std::optional<std::string> change = {};
  std::optional<std::string> taskId = {};
  std::optional<task::State> state = {};
  std::optional<std::string> group = {};
  std::optional<std::string> agent = {};
  std::optional<std::string> until = {};
  std::optional<double> seconds = {};
  std::optional<std::size_t> running = {};
  std::optional<std::size_t> limit = {};
};
BOOST_DESCRIBE_STRUCT(WaitReasonShown, (),
                      (reason, text, change, taskId, state, group, agent, until, seconds, running, limit))

struct TaskExplanation {
  std::string taskId;
  task::State state;
  std::string text;
  std::vector<WaitReasonShown> reasons = {};
};
BOOST_DESCRIBE_STRUCT(TaskExplanation, (), (taskId, state, text, reasons))

struct KeptTask {
  std::string taskId;
  std::string reason;
  std::string text;
  std::optional<std::string> by = {};
};
BOOST_DESCRIBE_STRUCT(KeptTask, (), (taskId, reason, text, by))

struct TasksRemoved {
  std::vector<std::string> removed = {};
  std::vector<KeptTask> kept = {};
};
BOOST_DESCRIBE_STRUCT(TasksRemoved, (), (removed, kept))

struct TasksCleaned {
  std::size_t removed;
  std::size_t kept;
};
BOOST_DESCRIBE_STRUCT(TasksCleaned, (), (removed, kept))

struct AgentStatus {
  std::string name;
  bool available;                           ///< its program is there
  std::optional<std::string> program = {};  ///< for owners
  bool isDefault;
  std::string group;
  std::int64_t priority;
  std::uint32_t retries;
  std::size_t running;
  std::size_t queued;
  std::optional<double> timeLimitSeconds = {};
  std::optional<std::size_t> maxRunning = {};
  std::optional<std::string> heldUntil = {};
  std::optional<std::string> heldBy = {};
  std::optional<std::string> heldText = {};
};
BOOST_DESCRIBE_STRUCT(AgentStatus, (),
                      (name, available, program, isDefault, group, priority, retries, running, queued, timeLimitSeconds,
                       maxRunning, heldUntil, heldBy, heldText))

struct AgentsListed {
  std::optional<std::optional<std::string>> default_;  ///< null: there is none
  std::vector<AgentStatus> agents;
};
BOOST_DESCRIBE_STRUCT(AgentsListed, (), (default_, agents))

struct AgentReleased {
  bool released;
};
BOOST_DESCRIBE_STRUCT(AgentReleased, (), (released))

}  // namespace duet::app

template <>
struct duet::rpc::EnumWords<duet::task::Why> {
  using Why = task::Why;
  static constexpr std::array<EnumWord<Why>, 20> list{{{Why::slot, "slot"},
                                                       {Why::group_slot, "group-slot"},
                                                       {Why::agent_slot, "agent-slot"},
                                                       {Why::paused, "paused"},
                                                       {Why::group_paused, "group-paused"},
                                                       {Why::held, "held"},
                                                       {Why::after, "after"},
                                                       {Why::not_before, "not-before"},
                                                       {Why::retry, "retry"},
                                                       {Why::agent_held, "agent-held"},
                                                       {Why::no_agent, "no-agent"},
                                                       {Why::leftovers, "leftovers"},
                                                       {Why::cancelling, "cancelling"},
                                                       {Why::turn, "turn"},
                                                       {Why::starting, "starting"},
                                                       {Why::store, "store"},
                                                       {Why::stopping, "stopping"},
                                                       {Why::shortage, "shortage"},
                                                       {Why::limits, "limits"},
                                                       {Why::worker, "worker"}}};
};
