#include "simulate/model.h"

#include <sys/wait.h>

#include <algorithm>

#include <boost/json/object.hpp>

#include "duet/rpc/value.h"

namespace duet::simulate {

using task::State;
using task::TaskId;

namespace {

std::optional<State> state_of(std::string_view kind) {
  if (kind == "taskQueued") return State::queued;
  if (kind == "taskStarted") return State::running;
  if (kind == "taskCompleted") return State::completed;
  if (kind == "taskFailed") return State::failed;
  if (kind == "taskCancelled") return State::cancelled;
  return std::nullopt;
}

std::string text(State state) { return std::string(task::name_of(state)); }

constexpr std::chrono::seconds settings_take_effect{30};

}  // namespace

void Model::submitted(const task::Submission& submission) { fates_.try_emplace(submission.prompt, "asked"); }

void Model::accepted(const task::Submission& submission, TaskId id) {
  Known& known = tasks_[id];
  if (known.acknowledged && known.submission->prompt != submission.prompt) {
    return fail(name(id) + " was answered to two different submissions");
  }
  known.acknowledged = true;
  known.submission = submission;
  fates_[submission.prompt] = "accepted";
}

void Model::refused(const task::Submission& submission) {
  std::string& fate = fates_[submission.prompt];
  if (fate == "asked") fate = "refused";
}

void Model::cancelled(TaskId id) {
  Known& known = tasks_[id];
  if (known.told && task::has_ended(*known.told) && *known.told != State::cancelled) {
    return fail("a cancel of " + name(id) + " was acknowledged, but it is " + text(*known.told));
  }
  if (!known.cancelled) known.cancelled = clock_.now();
}

void Model::waited(TaskId id, State state) {
  const Known& known = tasks_[id];
  if (task::has_ended(state) && known.told != state) {
    fail("task.wait told that " + name(id) + " is " + text(state) + ", but no event has");
  }
}

void Model::output_done(TaskId id) {
  const Known& known = tasks_[id];
  if (known.told && !task::has_ended(*known.told)) fail("output of " + name(id) + " is done, but it has not ended");
  for (const auto& tree : living_) {
    if (tree->run.task == id && tree->alive()) fail("output of " + name(id) + " is done, but processes of it run");
  }
}

void Model::epoch(const std::string& epoch) {
  if (!epoch_.empty() && epoch != epoch_) fail("the epoch has changed, though the store is the same");
  epoch_ = epoch;
}

void Model::approving(const std::string& firing) { approvals_.try_emplace(firing, 1); }

void Model::approved(const std::string& firing) {
  int& state = approvals_[firing];
  state = std::max(state, 2);
}

// A task of a rule: each event has one, and what waits for approval has none before it.
void Model::take_new(TaskId id, const task::Task& task) {
  const boost::json::value* origin = task.metadata.if_contains("automation");
  if (origin == nullptr) return;
  fates_[task.prompt] = "accepted";
  if (++fired_[task.prompt] > 1) fail("the rule's task `" + task.prompt + "` was submitted twice: " + name(id));
  if (origin->at("ruleId").as_string() != asking_rule) return;
  const auto approval = approvals_.find(std::string(origin->at("firingId").as_string()));
  if (approval == approvals_.end()) return fail(name(id) + " was submitted by a rule that awaits approval");
  approval->second = 3;
}

void Model::compare_firings(const std::string& rule, std::uint64_t listed) {
  if (listed != due_[rule]) {
    fail("rule " + rule + " has " + std::to_string(listed) + " firings for " + std::to_string(due_[rule]) + " events");
  }
  for (const auto& [firing, state] : approvals_) {
    if (state == 2) fail("the approval of " + firing + " was acknowledged, and nothing came of it");
  }
}

void Model::told(const task::Event& event, const std::optional<task::Task>& task) {
  if (event.seq != last_seq_ + 1) {
    return fail("event " + std::to_string(event.seq) + " was told after " + std::to_string(last_seq_));
  }
  last_seq_ = event.seq;
  const std::optional<State> state = state_of(event.kind);
  if (!state) return;
  if (*state == State::completed) ++due_[echo_rule];
  if (*state == State::failed) ++due_[asking_rule];
  Known& known = tasks_[event.task];
  if (!known.told && task) {
    known.prompt = task->prompt;
    take_new(event.task, *task);
  }
  check_step(event.task, known, *state);
  const boost::json::object params = rpc::parse_value(event.params).as_object();
  known.attempts = params.at("attempts").to_number<std::uint32_t>();
  if (*state == State::running) known.runs[known.attempts].told_started = true;
  if (task::has_ended(*state)) check_end(event.task, known, *state, event.params);
  known.told = *state;
}

// Along the picture of docs/tasks.md. A start of which nobody lived to tell is told together with the end.
void Model::check_step(TaskId id, const Known& known, State to) {
  if (!known.told) {
    if (to != State::queued) fail(name(id) + " was first told of as " + text(to));
    return;
  }
  const State from = *known.told;
  if (task::has_ended(from)) return fail(name(id) + " went from " + text(from) + " to " + text(to));
  if (from == State::running && to == State::running) fail(name(id) + " started while it was running");
}

void Model::check_end(TaskId id, const Known& known, State state, const std::string& params) {
  const boost::json::object event = rpc::parse_value(params).as_object();
  if (known.cancelled && state != State::cancelled) {
    fail("a cancel of " + name(id) + " was acknowledged, but it ended as " + text(state));
  }
  if (state == State::cancelled) {
    for (const auto& tree : living_) {
      if (tree->run.task == id && tree->alive()) fail(name(id) + " is cancelled, but processes of it run");
    }
    return;
  }
  const auto run = known.runs.find(known.attempts);
  if (state == State::completed) {
    const bool sound = run != known.runs.end() && run->second.status && WIFEXITED(*run->second.status) &&
                       WEXITSTATUS(*run->second.status) == 0;
    if (!sound) fail(name(id) + " is completed, but its main process did not end with 0");
    return;
  }
  const std::string reason(event.at("error").at("reason").as_string());
  if (reason == "spawn" && known.prompt && play_of(*known.prompt, known.attempts).can_start) {
    fail(name(id) + " is said to have no program that can be started, but it has");
  }
  if (run == known.runs.end() || !run->second.status || run->second.keeper_killed || run->second.cut) return;
  const int status = *run->second.status;
  if (reason == "lost") fail(name(id) + " is called lost, but its keeper saw how it ended");
  if (reason == "exit" && !(WIFEXITED(status) && WEXITSTATUS(status) != 0)) {
    fail(name(id) + " failed with exit, but its main process did not");
  }
}

void Model::check_dependencies(const Tree& tree, const Known& known) {
  if (!known.submission) return;
  for (const TaskId dependency : known.submission->after) {
    if (tasks_[dependency].told != State::completed) {
      fail(name(tree.run.task) + " runs, but " + name(dependency) + ", which it comes after, has not succeeded");
    }
  }
}

void Model::tree_began(const Tree& tree, const std::vector<std::shared_ptr<Tree>>& living) {
  living_ = living;
  const TaskId id = tree.run.task;
  Known& known = tasks_[id];
  Run& run = known.runs[tree.run.attempt];
  if (run.begun++ > 0 && (!run.cut || run.told_started)) {
    fail(name(id) + " began its attempt " + std::to_string(tree.run.attempt) + " twice");
  }
  run.cut = false;
  run.status.reset();
  if (known.told && task::has_ended(*known.told)) fail(name(id) + " runs, but it is " + text(*known.told));
  if (known.cancelled && tree.ordered > *known.cancelled)
    fail(name(id) + " runs, although a cancel of it was acknowledged");
  check_dependencies(tree, known);
  if (known.submission && tree.run.attempt > known.submission->retries + 1) {
    fail(name(id) + " has more attempts than retries allow");
  }
  for (const auto& [attempt, earlier] : known.runs) {
    if (attempt >= tree.run.attempt || earlier.keeper_killed || earlier.cut || !earlier.status) continue;
    if (WIFEXITED(*earlier.status) && WEXITSTATUS(*earlier.status) == 0 &&
        !(known.submission && known.submission->time_limit)) {
      fail(name(id) + " runs again, but attempt " + std::to_string(attempt) + " had succeeded");
    }
  }
  std::size_t trees = 0;
  for (const auto& other : living) {
    if (!other->alive()) continue;
    ++trees;
    if (other->run.task == id && !(other->run == tree.run)) fail("two attempts of " + name(id) + " run at once");
  }
  if (trees > most_running()) {
    fail(std::to_string(trees) + " tasks run at once, " + std::to_string(most_running()) + " are allowed");
  }
}

void Model::main_ended(const Tree& tree, int status, bool kept) {
  Run& run = tasks_[tree.run.task].runs[tree.run.attempt];
  if (kept) {
    run.status = status;
  } else {
    run.ended_unseen = true;
  }
}

void Model::keeper_killed(task::RunId id) { tasks_[id.task].runs[id.attempt].keeper_killed = true; }

void Model::power_cut() {
  for (auto& [id, known] : tasks_) {
    for (auto& [attempt, run] : known.runs) {
      if (!known.told || !task::has_ended(*known.told)) run.cut = true;
    }
  }
  living_.clear();
}

void Model::set_max_running(std::size_t most) {
  // What was in force until now counts a while longer: starts are on their way.
  limits_.erase(limits_.begin(), limits_.lower_bound(clock_.now() - settings_take_effect));
  limits_[clock_.now()] = std::max(limits_[clock_.now()], latest_limit_);
  latest_limit_ = most;
}

std::size_t Model::most_running() const {
  std::size_t most = latest_limit_;
  for (const auto& [until, limit] : limits_) {
    if (until >= clock_.now() - settings_take_effect) most = std::max(most, limit);
  }
  return most;
}

void Model::stopped_tasks() {
  for (auto& [id, known] : tasks_) known.stopped = true;
}

void Model::compare(const std::vector<task::Task>& tasks, bool everything_has_ended) {
  std::set<TaskId> found;
  for (const task::Task& task : tasks) {
    found.insert(task.id);
    const auto fate = fates_.find(task.prompt);
    if (fate == fates_.end()) {
      fail(name(task.id) + " is in the store, but nobody asked for it");
    } else if (fate->second == "refused") {
      fail(name(task.id) + " was refused, and is in the store");
    }
    const Known& known = tasks_[task.id];
    if (known.told != task.progress.state) {
      fail(name(task.id) + " is " + text(task.progress.state) + " in the store, but the last event told of " +
           (known.told ? text(*known.told) : "nothing"));
    }
    if (everything_has_ended && !task::has_ended(task.progress.state)) {
      fail(name(task.id) + " is " + text(task.progress.state) + " and waits for ever");
    }
  }
  for (const auto& [id, known] : tasks_) {
    if (found.contains(id)) continue;
    if (known.acknowledged && !(known.told && task::has_ended(*known.told))) fail(name(id) + " is lost");
    if (known.told && !task::has_ended(*known.told)) fail(name(id) + " was told of, and is lost");
  }
}

std::vector<TaskId> Model::open_tasks() const {
  std::vector<TaskId> ids;
  for (const auto& [id, known] : tasks_) {
    if (known.acknowledged && !(known.told && task::has_ended(*known.told))) ids.push_back(id);
  }
  return ids;
}

std::vector<TaskId> Model::all_tasks() const {
  std::vector<TaskId> ids;
  for (const auto& [id, known] : tasks_) ids.push_back(id);
  return ids;
}

}  // namespace duet::simulate
