#include "app/methods/queue_methods.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/doors/roles.h"
#include "app/methods/queue_results.h"
#include "app/methods/task_params.h"
#include "app/methods/task_results.h"
#include "duet/base/utc_text.h"
#include "duet/rpc/error.h"
#include "duet/rpc/json.h"
#include "task/refusal.h"

namespace duet::app {
namespace {

using peer::Methods;
using rpc::JsonOf;

using MaybeChanged = tl::expected<bool, rpc::Error>;

constexpr std::size_t most_removed = 10'000;

struct QueuePart {
  std::optional<std::string> group;
};
BOOST_DESCRIBE_STRUCT(QueuePart, (), (group))

struct EditTask : TaskName {
  std::optional<std::string> prompt;
  std::optional<std::int64_t> priority;
  std::optional<std::string> group;
  std::optional<double> delaySeconds;
  std::optional<std::string> notBefore;
  std::optional<std::vector<std::string>> after;
  std::optional<std::map<std::string, std::string, std::less<>>> labels;
};
BOOST_DESCRIBE_STRUCT(EditTask, (TaskName), (prompt, priority, group, delaySeconds, notBefore, after, labels))

struct RestartTask : TaskName {
  bool inPlace = false;
  std::string by = {};  // no param
};
BOOST_DESCRIBE_STRUCT(RestartTask, (TaskName), (inPlace))

struct TaskNames {
  std::vector<std::string> taskIds;
};
BOOST_DESCRIBE_STRUCT(TaskNames, (), (taskIds))

struct Clean {
  std::optional<task::State> state;
  std::optional<double> olderSeconds;
};
BOOST_DESCRIBE_STRUCT(Clean, (), (state, olderSeconds))

struct AgentName {
  std::string name;
};
BOOST_DESCRIBE_STRUCT(AgentName, (), (name))

double seconds_in(base::Duration time) { return std::chrono::duration<double>(time).count(); }

std::optional<std::string> text_or_none(std::string text) {
  return text.empty() ? std::nullopt : std::optional(std::move(text));
}

// ---- the queue ----

void set_paused(TaskContext& context, const QueuePart& part, bool paused, const SharedReply<QueuePaused>& reply) {
  context.queue.set_paused(part.group, paused,
                           [paused, reply](const tl::expected<task::Queue::Pause, rpc::Error>& pause) {
                             if (!pause) return reply->fail(pause.error());
                             reply->ok({paused, pause->changed, pause->groups});
                           });
}

void pause(TaskContext& context, const QueuePart& part, const SharedReply<QueuePaused>& reply) {
  set_paused(context, part, true, reply);
}

void resume(TaskContext& context, const QueuePart& part, const SharedReply<QueuePaused>& reply) {
  set_paused(context, part, false, reply);
}

using Standing = task::Queue::Standing;
using MaybeStanding = tl::expected<Standing, rpc::Error>;

GroupStatus group_status(const task::Queue& queue, const std::string& name, const Standing::Group& group) {
  GroupStatus status{.name = name, .paused = group.paused, .running = group.running, .queued = group.queued};
  const auto& groups = queue.settings().groups;
  if (const auto found = groups.find(name); found != groups.end()) status.maxRunning = found->second.max_running;
  return status;
}

QueueStatus queue_status(const task::Queue& queue, const Standing& standing) {
  const auto count = [&](task::State state) { return standing.counts.at(static_cast<std::size_t>(state)); };
  QueueStatus status{.paused = standing.paused,
                     .stopping = queue.is_stopping_now(),
                     .running = count(task::State::running),
                     .queued = count(task::State::queued),
                     .maxRunning = queue.slots()};
  for (const auto& [name, group] : standing.groups) status.groups.push_back(group_status(queue, name, group));
  for (const auto& [agent, hold] : standing.holds) status.heldAgents.push_back({agent, base::utc_text(hold.until)});
  return status;
}

void status(TaskContext& context, const Nothing& /*params*/, const SharedReply<QueueStatus>& reply) {
  context.queue.look([&queue = context.queue, reply](const MaybeStanding& standing) {
    standing ? reply->ok(queue_status(queue, *standing)) : reply->fail(standing.error());
  });
}

// ---- agents ----

AgentStatus agent_status(const task::Queue& queue, const Standing& standing, const std::string& name,
                         const task::Agent& agent) {
  const auto load = standing.agents.find(name);
  const bool is_known = load != standing.agents.end();
  AgentStatus status{.name = name,
                     .available = queue.agents().is_available(agent),
                     .isDefault = false,
                     .group = agent.group.empty() ? task::default_group : agent.group,
                     .priority = agent.priority.value_or(0),
                     .retries = agent.retries.value_or(0),
                     .running = is_known ? load->second.running : 0,
                     .queued = is_known ? load->second.queued : 0,
                     .maxRunning = agent.max_running};
  if (agent.time_limit) status.timeLimitSeconds = seconds_in(*agent.time_limit);
  const auto held = standing.holds.find(name);
  if (held == standing.holds.end()) return status;
  status.heldUntil = base::utc_text(held->second.until);
  status.heldBy = task::to_text(held->second.task);
  status.heldText = held->second.text;
  return status;
}

struct AgentsAsked {
  bool is_owner = false;
};
BOOST_DESCRIBE_STRUCT(AgentsAsked, (), ())

AgentsListed listed_agents(const task::Queue& queue, const Standing& standing, bool is_owner) {
  const task::Agents& known = queue.agents();
  AgentsListed listed{.default_ = known.usual(), .agents = {}};
  for (const auto& [name, agent] : known.all()) {
    AgentStatus& status = listed.agents.emplace_back(agent_status(queue, standing, name, agent));
    if (is_owner) status.program = agent.command.front();
    status.isDefault = listed.default_ == std::optional(name);
  }
  return listed;
}

void list_agents(TaskContext& context, const AgentsAsked& asked, const SharedReply<AgentsListed>& reply) {
  context.queue.look([&queue = context.queue, is_owner = asked.is_owner, reply](const MaybeStanding& standing) {
    standing ? reply->ok(listed_agents(queue, *standing, is_owner)) : reply->fail(standing.error());
  });
}

void release_agent(TaskContext& context, const AgentName& agent, const SharedReply<AgentReleased>& reply) {
  context.queue.release_agent(agent.name, [reply](const MaybeChanged& released) {
    released ? reply->ok({*released}) : reply->fail(released.error());
  });
}

// ---- queued tasks ----

void set_held(TaskContext& context, const TaskName& task, bool held, const SharedReply<TaskHeld>& reply) {
  context.queue.set_held(task_id_of(task.taskId), held, [held, reply](const MaybeChanged& changed) {
    changed ? reply->ok({held, *changed}) : reply->fail(changed.error());
  });
}

void hold(TaskContext& context, const TaskName& task, const SharedReply<TaskHeld>& reply) {
  set_held(context, task, true, reply);
}

void release(TaskContext& context, const TaskName& task, const SharedReply<TaskHeld>& reply) {
  set_held(context, task, false, reply);
}

WaitReasonShown shown(const task::WaitReason& reason) {
  WaitReasonShown out{.reason = reason.why, .text = reason.text, .state = reason.state};
  out.change = text_or_none(reason.change);
  if (reason.task) out.taskId = task::to_text(*reason.task);
  out.group = text_or_none(reason.group);
  out.agent = text_or_none(reason.agent);
  if (reason.until) out.until = base::utc_text(*reason.until);
  if (reason.left) out.seconds = std::max(seconds_in(*reason.left), 0.0);
  out.running = reason.running;
  out.limit = reason.limit;
  return out;
}

void explain(TaskContext& context, const TaskName& task, const SharedReply<TaskExplanation>& reply) {
  context.queue.explain(task_id_of(task.taskId), [reply](const tl::expected<task::Explanation, rpc::Error>& found) {
    if (!found) return reply->fail(found.error());
    TaskExplanation explanation{.taskId = task::to_text(found->id), .state = found->state, .text = found->text};
    for (const task::WaitReason& reason : found->reasons) explanation.reasons.push_back(shown(reason));
    reply->ok(explanation);
  });
}

task::Queue::Edit edit_of(const EditTask& wanted) {
  task::Queue::Edit edit{.priority = wanted.priority, .group = wanted.group};
  const bool is_empty = !wanted.prompt && !wanted.priority && !wanted.group && !wanted.delaySeconds &&
                        !wanted.notBefore && !wanted.after && !wanted.labels;
  if (is_empty) throw rpc::invalid_params("prompt", "something to change", "nothing");
  check_one_delay(wanted.delaySeconds.has_value(), wanted.notBefore.has_value());
  if (wanted.prompt) edit.prompt = prompt_of("prompt", *wanted.prompt);
  if (wanted.delaySeconds) edit.delay = delay_of("delaySeconds", *wanted.delaySeconds);
  if (wanted.notBefore) edit.not_before = time_of("notBefore", *wanted.notBefore);
  if (wanted.labels) edit.labels = labels_of(*wanted.labels);
  if (wanted.after) {
    edit.after.emplace();
    for (const std::string& text : *wanted.after) edit.after->push_back(task_id_of(text));
  }
  return edit;
}

void edit(TaskContext& context, const EditTask& wanted, const SharedReply<TaskRecord>& reply) {
  context.queue.edit(task_id_of(wanted.taskId), edit_of(wanted),
                     [reply](const tl::expected<task::Task, rpc::Error>& task) {
                       if (!task) return reply->fail(task.error());
                       reply->ok(JsonOf<TaskRecord>(task::record_of(*task)));
                     });
}

void restart(TaskContext& context, const RestartTask& wanted, const SharedReply<Submitted>& reply) {
  const auto submitted = [reply](const tl::expected<task::Accepted, rpc::Error>& accepted) {
    if (!accepted) return reply->fail(accepted.error());
    reply->ok({task::to_text(accepted->id), accepted->state});
  };
  const task::TaskId id = task_id_of(wanted.taskId);
  if (wanted.inPlace) return context.queue.restart_in_place(id, submitted);
  context.queue.restart(id, submitted, wanted.by);
}

// ---- ended tasks ----

void remove(TaskContext& context, const TaskNames& wanted, const SharedReply<TasksRemoved>& reply) {
  if (wanted.taskIds.empty() || wanted.taskIds.size() > most_removed) {
    throw rpc::invalid_params("taskIds", "array of 1 to " + std::to_string(most_removed) + " ids", "array");
  }
  std::vector<task::TaskId> ids;
  for (const std::string& text : wanted.taskIds) ids.push_back(task_id_of(text));
  context.queue.remove(std::move(ids), [reply](const tl::expected<task::Queue::Removal, rpc::Error>& removal) {
    if (!removal) return reply->fail(removal.error());
    TasksRemoved out;
    for (const task::TaskId id : removal->removed) out.removed.push_back(task::to_text(id));
    for (const auto& kept : removal->kept) {
      out.kept.push_back({task::to_text(kept.id), kept.reason, kept.text});
      if (kept.by) out.kept.back().by = task::to_text(*kept.by);
    }
    reply->ok(out);
  });
}

void clean(TaskContext& context, const Clean& wanted, const SharedReply<TasksCleaned>& reply) {
  if (wanted.state && !task::has_ended(*wanted.state)) {
    throw rpc::invalid_params("state", "completed, failed or cancelled", std::string(task::name_of(*wanted.state)));
  }
  std::optional<std::chrono::milliseconds> older;
  if (wanted.olderSeconds) older = delay_of("olderSeconds", *wanted.olderSeconds);
  context.queue.clean(wanted.state, older, [reply](const tl::expected<task::Queue::Removal, rpc::Error>& removal) {
    if (!removal) return reply->fail(removal.error());
    reply->ok({removal->removed.size(), removal->kept.size()});
  });
}

void add_task_changes(Methods& methods, const SharedTaskContext& context) {
  add_in_order(methods, context, "task.hold", "Keeps a queued task from starting until it is released", hold)
      .needs(role::operate)
      .describe(&TaskName::taskId, task_id_summary);
  add_in_order(methods, context, "task.release", "Lets a task go that was held", release)
      .needs(role::operate)
      .describe(&TaskName::taskId, task_id_summary);
  add_in_order(methods, context, "task.explain", "Tells why a task does not run, and what would change that", explain)
      .read_only()
      .describe(&TaskName::taskId, task_id_summary);
  add_in_order(methods, context, "task.edit", "Changes a queued task; what is not given stays as it is", edit)
      .describe(&TaskName::taskId, task_id_summary)
      .describe(&EditTask::prompt, "What the agent is to do")
      .describe(&EditTask::priority, "Higher runs first, within its group")
      .describe(&EditTask::group, "The group it runs in")
      .describe(&EditTask::delaySeconds, "It does not start before so much time has passed; 0 takes a delay away")
      .describe(&EditTask::notBefore, "It does not start before this time, of ISO 8601 with its zone")
      .describe(&EditTask::after, "Ids of tasks that have to succeed before, in place of those there were")
      .describe(&EditTask::labels, "In place of those there were");
  add_in_order(methods, context, "task.restart",
               "Queues a new task with the same parameters, but for key and delay; or the same one again", restart)
      .needs(role::operate)
      .describe(&TaskName::taskId, task_id_summary)
      .describe(&RestartTask::inPlace, "The same id, of a task that has ended; its attempts go on counting");
  add_in_order(methods, context, "task.remove",
               "Removes ended tasks with their output; tells which stay, and why: others come after them, say", remove)
      .describe(&TaskNames::taskIds, "Ids of tasks, up to 10000");
  add_in_order(methods, context, "task.clean", "Removes all ended tasks, or those of a state or age", clean)
      .describe(&Clean::state, "completed, failed or cancelled; else all of them")
      .describe(&Clean::olderSeconds, "Only those that ended so long ago");
}

}  // namespace

void add_queue_methods(Methods& methods, const SharedTaskContext& context) {
  add_in_order(methods, context, "queue.pause",
               "Nothing new starts, in a group or at all; what runs goes on. It outlives the daemon", pause)
      .needs(role::operate)
      .describe(&QueuePart::group, "The name of a group; else the whole queue");
  add_in_order(methods, context, "queue.resume", "Ends a pause. Of groups that are paused themselves it tells", resume)
      .needs(role::operate)
      .describe(&QueuePart::group, "The name of a group; else the whole queue");
  add_in_order(methods, context, "queue.status", "Tells what runs and waits in each group, and what is paused or held",
               status)
      .read_only();
  add_in_order(methods, context, "agent.list", "Lists the agents, with what runs, waits and is held", list_agents)
      .needs(role::observe);
  add_in_order(methods, context, "agent.release", "Ends the hold of an agent that has met a usage limit", release_agent)
      .describe(&AgentName::name, "The name of the agent");
  add_task_changes(methods, context);
}

}  // namespace duet::app
