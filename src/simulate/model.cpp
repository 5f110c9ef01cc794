#include "simulate/model.h"

#include <algorithm>
#include <utility>

#include <boost/json/object.hpp>

#include "duet/rpc/value.h"
#include "task/time_text.h"

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

constexpr std::chrono::seconds settings_take_effect{30};
constexpr std::chrono::seconds trouble_takes_effect{5};  // a try that failed is repeated after a second
constexpr int no_such_task = -32000;
constexpr int not_cancellable = -32001;
constexpr int queue_is_full = -32002;
constexpr int unavailable = -32003;

// The shortest pause that docs/tasks.md allows after so many failures: a quarter less than the usual one.
base::Duration least_pause(std::uint32_t failures) {
  const auto plain = std::min(std::chrono::seconds(1U << std::min(failures - 1, 9U)), std::chrono::seconds(300));
  return plain * 3 / 4 - std::chrono::milliseconds(2);  // times are written down in milliseconds
}

// All of a submission that a task's record shows.
bool is_as_asked(const task::Task& task, task::Submission submission) {
  std::ranges::sort(submission.after);
  submission.after.erase(std::unique(submission.after.begin(), submission.after.end()), submission.after.end());
  return task.priority == submission.priority.value_or(0) &&
         rpc::to_text(task.metadata) == rpc::to_text(task::shown_metadata(submission));
}

}  // namespace

void Model::submitted(const task::Submission& submission) {
  depended_on_.insert(submission.after.begin(), submission.after.end());
  const auto [place, is_new] =
      asked_.try_emplace(submission.prompt, Asked{.submission = submission, .asked_at = clock_.now()});
  Asked& asked = place->second;
  if (is_new) {
    asked.found_no_room = count_queued() >= capacity_;
    return;
  }
  asked.found_no_room = false;  // a key that is known needs none
  if (asked.fate == Asked::Fate::open) asked.is_in_doubt = true;
  if (asked.fate == Asked::Fate::refused) asked.fate = Asked::Fate::open;
  asked.may_be_another = asked.fate == Asked::Fate::accepted && may_be_gone(*asked.id);
}

std::size_t Model::count_queued() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(tasks_, [](const auto& task) { return task.second.told == State::queued; }));
}

// Also what is on its way to the store, or may be.
std::size_t Model::most_queued() const {
  std::size_t most = 0;
  for (const auto& [id, known] : tasks_)
    most += known.told && task::has_ended(*known.told) && !known.restart_asked ? 0 : 1;
  for (const auto& [prompt, asked] : asked_) most += asked.fate == Asked::Fate::open || asked.may_be_another ? 1 : 0;
  for (const auto& [rule, events] : due_) most += events;
  return most - std::min(most, fired_.size());
}

void Model::accepted(const task::Submission& submission, TaskId id) {
  Known& known = tasks_[id];
  if (known.acknowledged && known.submission->prompt != submission.prompt) {
    return fail(name(id) + " was answered to two different submissions");
  }
  if (known.prompt && *known.prompt != submission.prompt) fail(name(id) + " is answered to a submit of another task");
  known.acknowledged = true;
  known.submission = submission;
  Asked& asked = asked_.at(submission.prompt);
  asked.fate = Asked::Fate::accepted;
  asked.may_be_another = false;
  known.asked_at = asked.asked_at;
  control_.takes(id, submission, asked.asked_at);
  take_id(asked, id);
  if (asked.found_no_room) fail(name(id) + " was accepted, though the queue was full");
}

void Model::refused(const task::Submission& submission, int code) {
  Asked& asked = asked_.at(submission.prompt);
  const std::size_t itself = asked.fate == Asked::Fate::open || asked.may_be_another ? 1 : 0;
  if (code == queue_is_full && most_queued() < capacity_ + itself) {
    fail("`" + submission.prompt + "` was refused for a full queue, which has room");
  }
  if (code == no_such_task && std::ranges::none_of(submission.after, [&](TaskId id) { return may_be_gone(id); })) {
    fail("`" + submission.prompt + "` was refused for a task that is not there, but all of them are");
  }
  if (code != no_such_task && code != queue_is_full && code != unavailable) {
    fail("`" + submission.prompt + "` was refused with " + std::to_string(code));
  }
  asked.may_be_another = false;
  if (asked.fate == Asked::Fate::open && !asked.is_in_doubt) {
    asked.fate = Asked::Fate::refused;
    asked.refused_at = clock_.now();
  }
}

bool Model::may_be_gone(TaskId id) const {
  const auto found = tasks_.find(id);
  return found == tasks_.end() || !found->second.told || task::has_ended(*found->second.told);
}

void Model::asked_to_cancel(TaskId id) {
  tasks_[id].cancel_asked = true;
  queue_.left(id);
}

void Model::cancelled(TaskId id, bool is_told) {
  Known& known = tasks_[id];
  if (known.told && task::has_ended(*known.told) && *known.told != State::cancelled) {
    return fail("a cancel of " + name(id) + " was acknowledged, but it is " + text(*known.told));
  }
  if (!known.cancelled) known.cancelled = clock_.now();
  if (is_told && !known.told_to_end) known.told_to_end = clock_.now();
}

// -32001 says that the task has ended, and how. Its event may be on its way to the disk.
void Model::cancel_refused(TaskId id, const rpc::Error& error) {
  told_unknown(id, error.code());
  if (error.code() != not_cancellable) return;
  Known& known = tasks_[id];
  const std::string state(rpc::parse_value(error.data()).at("state").as_string());
  if (state == text(State::queued) || state == text(State::running)) {
    return fail("a cancel of " + name(id) + " was refused, though it is " + state);
  }
  if (!known.told || !task::has_ended(*known.told)) {
    known.refused_as = state;
  } else if (state != text(*known.told)) {
    fail("a cancel of " + name(id) + " was refused as " + state + ", but it is " + text(*known.told));
  }
}

void Model::waited(TaskId id, State state, bool time_is_up) {
  const Known& known = tasks_[id];
  const bool was_told = known.told && task::has_ended(*known.told);
  if (task::has_ended(state) && known.told != state) {
    fail("task.wait told that " + name(id) + " is " + text(state) + ", but no event has");
  }
  if (!task::has_ended(state) && was_told) fail("task.wait told that " + name(id) + " is " + text(state) + " still");
  if (!task::has_ended(state) && !time_is_up) fail("task.wait told of " + name(id) + " before its time was up");
}

void Model::told_unknown(TaskId id, int code) {
  if (code != no_such_task) return;
  const std::optional<State>& told = tasks_[id].told;
  if (told && !task::has_ended(*told)) fail(name(id) + " is " + text(*told) + ", but is said not to exist");
}

void Model::output_read(TaskId id, const task::OutputPiece& piece, bool done) {
  if (removed_.contains(id)) return;  // it was on its way to a client who reads slowly
  const Known& known = tasks_[id];
  const std::uint32_t attempts = known.runs.empty() ? 0 : known.runs.rbegin()->first;
  if (const auto wrong = output_.check(id, attempts, piece, done)) fail(name(id) + ": " + *wrong);
  if (!done) return;
  if (known.told && !task::has_ended(*known.told)) fail("output of " + name(id) + " is done, but it has not ended");
  for (const auto& tree : living_) {
    if (tree->run.task == id && tree->alive()) fail("output of " + name(id) + " is done, but processes of it run");
  }
}

void Model::take_epoch(const std::string& epoch) {
  if (!epoch_.empty() && epoch != epoch_) fail("the epoch has changed, though the store is the same");
  epoch_ = epoch;
}

void Model::approving(const std::string& firing) { ++approvals_[firing].open; }

void Model::approved(const std::string& firing) {
  --approvals_[firing].open;
  approvals_[firing].acknowledged = true;
}

void Model::approval_refused(const std::string& firing) {
  --approvals_[firing].open;
  approvals_[firing].refused_at = clock_.now();
}

void Model::daemon_died() {
  for (auto& [id, known] : tasks_) known.refused_as.clear();
}

// The first event of a task: somebody has asked for it, and it is what was asked for.
void Model::take_new(TaskId id, Known& known, const task::Task& task) {
  known.prompt = task.prompt;
  if (known.acknowledged && known.submission->prompt != task.prompt) {
    fail(name(id) + " has another prompt than the submit that it was the answer to");
  }
  if (const boost::json::value* origin = task.metadata.if_contains("automation")) {
    known.submission = {.prompt = task.prompt, .priority = task.priority};
    known.asked_at = clock_.now();
    return take_new_of_rule(id, task.prompt, origin->as_object());
  }
  const auto found = asked_.find(task.prompt);
  if (found == asked_.end()) return fail(name(id) + " is queued, but nobody asked for it");
  Asked& asked = found->second;
  if (asked.fate == Asked::Fate::refused) fail(name(id) + " was refused, and is queued");
  known.submission = asked.submission;
  known.asked_at = asked.asked_at;
  if (!is_as_asked(task, asked.submission)) fail(name(id) + " is not what was asked for");
  take_id(asked, id);
}

// A task of a rule: each event has one, and what waits for approval has none before it.
void Model::take_new_of_rule(TaskId id, const std::string& prompt, const boost::json::object& origin) {
  if (++fired_[prompt] > 1) fail("the rule's task `" + prompt + "` was submitted twice: " + name(id));
  if (origin.at("ruleId").as_string() != asking_rule) return;
  const auto approval = approvals_.find(std::string(origin.at("firingId").as_string()));
  if (approval == approvals_.end()) return fail(name(id) + " was submitted by a rule that awaits approval");
  Approval& state = approval->second;
  if (state.open == 0 && !state.acknowledged) fail(name(id) + " was submitted, though its approval was refused");
  state.done = true;
}

// A submission has one task. It has another one only if it was sent again, with its key, when the first was erased.
void Model::take_id(Asked& asked, TaskId id) {
  const std::optional<TaskId> earlier = std::exchange(asked.id, id);
  if (!earlier || *earlier == id) return;
  if (removed_.contains(*earlier)) return;
  const std::optional<State>& state = tasks_[*earlier].told;
  const bool may_be_erased = state && task::has_ended(*state) && !asked.submission.key.empty() && id > *earlier;
  if (!may_be_erased) fail(name(id) + " and " + name(*earlier) + " come from the same submit");
}

void Model::compare_firings(const std::string& rule, std::uint64_t listed) {
  if (listed != due_[rule]) {
    fail("rule " + rule + " has " + std::to_string(listed) + " firings for " + std::to_string(due_[rule]) + " events");
  }
}

void Model::check_approvals() {
  for (const auto& [firing, approval] : approvals_) {
    if (approval.acknowledged && !approval.done)
      fail("the approval of " + firing + " was acknowledged, and nothing came of it");
  }
}

void Model::told(const task::Event& event, const std::optional<task::Task>& task) {
  if (event.seq != next_seq()) {
    return fail("event " + std::to_string(event.seq) + " was told after " + std::to_string(history_.size()));
  }
  history_.push_back(event);
  if (!troubled_) syncs_failed_at_.reset();  // it was committed
  const std::optional<State> state = state_of(event.kind);
  if (!state) return told_of_queue(event);
  if (*state == State::completed) ++due_[echo_rule];
  if (*state == State::failed) ++due_[asking_rule];
  Known& known = tasks_[event.task];
  if (!known.told && task) {
    take_new(event.task, known, *task);
    if (!known.submission) return;
    control_.takes(event.task, *known.submission, known.asked_at);
    const bool has_delay = known.submission->delay || known.submission->not_before;
    if (!known.ordered && !known.cancel_asked && !has_delay) {
      queue_.queued(event.task, known.submission->priority.value_or(0), known.submission->after, group_of(known),
                    agent_of(known));
    }
  }
  if (*state == State::completed) queue_.completed(event.task);
  if (*state != State::queued) queue_.left(event.task);
  const boost::json::object params = rpc::parse_value(event.params).as_object();
  known.attempts = params.at("attempts").to_number<std::uint32_t>();
  const bool is_again = known.told && task::has_ended(*known.told) && *state == State::queued && known.restart_asked;
  if (is_again) queued_again(event.task, known);
  const std::uint32_t spared = known.spared;
  if (const auto* count = params.if_contains("attemptsNotCounted")) known.spared = count->to_number<std::uint32_t>();
  if (is_again && known.spared != known.attempts) fail(name(event.task) + " is queued again without all its retries");
  if (!is_again && known.submission) check_spared(event.task, known, spared);
  check_step(event.task, known, *state);
  if (*state == State::completed) known.has_once_succeeded = true;
  if (*state == State::running) known.runs[known.attempts].told_started = true;
  if (*state == State::queued && known.told && known.submission && !is_again) check_retry(event.task, known);
  if (task::has_ended(*state) && known.submission) check_end(event.task, known, End::of(*state, params));
  known.told = *state;
  if (!task::has_ended(*state)) return;
  known.ended_seq = event.seq;
  known.ended_at = clock_.now();
  known.newest_then = tasks_.rbegin()->first;
}

// What concerns no task's state.
void Model::told_of_queue(const task::Event& event) {
  const boost::json::object params = rpc::parse_value(event.params).as_object();
  if (event.kind == "agentHeld") {
    const auto until = task::parse_time(params.at("until").as_string());
    if (until) control_.agent_held(std::string(params.at("agent").as_string()), *until);
  }
  if (event.kind == "agentReleased") control_.agent_released(std::string(params.at("agent").as_string()));
  if (event.kind != "tasksRemoved") return;
  for (const boost::json::value& text : params.at("taskIds").as_array()) {
    const TaskId id = task::parse_task_id(text.as_string()).value();
    const Known& known = tasks_[id];
    if (!known.told || !task::has_ended(*known.told)) fail(name(id) + " was removed, but has not ended");
    if (params.at("by") == "retention") continue;  // which of them stay is looked at when they are compared
    removed_[id] = known.has_once_succeeded;
    ++taken_out_;
    tasks_.erase(id);
  }
}

// In place: what was asked and promised of its earlier life counts no more.
void Model::queued_again(TaskId id, Known& known) {
  known.restarted = known.attempts;
  known.was_restarted = true;
  ++taken_out_;
  known.restart_asked = false;
  known.cancelled.reset();
  known.told_to_end.reset();
  known.refused_as.clear();
  known.told = State::queued;
  control_.queued_again(id);
  queue_.queued_again(id);
  queue_.left(id);
}

std::string Model::agent_of(const Known& known) {
  return known.submission && known.submission->agent ? *known.submission->agent : usual_agent;
}

std::string Model::group_of(const Known& known) {
  return known.submission && !known.submission->group.empty() ? known.submission->group : task::default_group;
}

const std::vector<TaskId>& Model::after_of(const Known& known) {
  return known.edited_after ? *known.edited_after : known.submission->after;
}

void Model::editing_after(TaskId id, const std::vector<TaskId>& after) {
  const auto found = tasks_.find(id);
  if (found == tasks_.end()) return;
  ++found->second.open_edits;
  depended_on_.insert(after.begin(), after.end());
}

void Model::edited_after(TaskId id, const std::optional<std::vector<TaskId>>& after) {
  const auto found = tasks_.find(id);
  if (found == tasks_.end()) return;
  --found->second.open_edits;
  if (after) found->second.edited_after = after;
}

// A group without a bound that could start a task has its turn before another one has two.
void Model::check_turns(TaskId id) {
  const std::optional<std::string> group = control_.group_of(id);
  if (!group) return control_.forget_turns();
  std::set<std::string> others = queue_.ready_groups({usual_agent});
  std::erase_if(others, [this](const std::string& name) {
    return name == narrow_group || !control_.is_certainly_open(ControlTruth::group(name));
  });
  const auto passed_over = control_.passed_over(*group, others);
  if (passed_over) fail(name(id) + " starts, but it is the turn of group " + *passed_over);
}

// A daemon that was killed may have had no time to tell of the end that is on disk.
bool Model::has_succeeded(TaskId id) {
  if (const auto removed = removed_.find(id); removed != removed_.end()) return removed->second;
  if (tasks_[id].has_once_succeeded) return true;
  const Known& known = tasks_[id];
  const Run* const run = last_run(known);
  const bool is_witnessed = known.submission && run != nullptr && run->is_witnessed();
  return known.told == State::completed || (is_witnessed && expected_end(known, *run, End{}).state == State::completed);
}

void Model::check_dependencies(const Tree& tree, const Known& known) {
  if (!known.submission || known.open_edits > 0) return;
  for (const TaskId dependency : after_of(known)) {
    if (!has_succeeded(dependency)) {
      fail(name(tree.run.task) + " runs, but " + name(dependency) + ", which it comes after, has not succeeded");
    }
  }
}

const task::Event* Model::event(std::uint64_t seq) const {
  return seq == 0 || seq > history_.size() ? nullptr : &history_[static_cast<std::size_t>(seq - 1)];
}

void Model::ordered(task::RunId run) {
  Known& known = tasks_[run.task];
  known.ordered = run.attempt;
  queue_.left(run.task);
  if (!known.submission) return control_.forget_turns();  // it is not told of yet, so its group is not known
  const bool jumped = wall_jumped_at_.has_value();
  if (const auto why = control_.why_not(run.task, agent_of(known), jumped)) {
    fail(name(run.task) + " starts, but " + *why);
  }
  if (was_troubled_lately()) return control_.forget_turns();
  check_turns(run.task);
  const std::optional<std::string> group = control_.group_of(run.task);
  if (!group) return;
  const auto other = queue_.passed_over(run.task, known.submission->priority.value_or(0), *group, agent_of(known));
  if (other && !is_edited(run.task)) fail(name(run.task) + " starts before " + name(*other) + ", whose turn it is");
}

void Model::check_attempt(const Tree& tree, const Known& known) {
  const TaskId id = tree.run.task;
  if (known.submission && tree.run.attempt > known.submission->retries.value_or(0) + 1 + known.spared) {
    fail(name(id) + " has more attempts than retries allow");
  }
  for (const auto& [attempt, earlier] : known.runs) {
    if (attempt >= tree.run.attempt || attempt <= known.restarted || !earlier.is_witnessed()) continue;
    if (has_met_limit(known, &earlier) || attempt <= known.spared) continue;
    if (earlier.has_succeeded() && !(known.submission && known.submission->time_limit)) {
      fail(name(id) + " runs again, but attempt " + std::to_string(attempt) + " had succeeded");
    }
    if (!jumped_since(earlier.ended_at) && tree.ordered < earlier.ended_at + least_pause(attempt - known.spared)) {
      fail(name(id) + " is tried again too soon after attempt " + std::to_string(attempt));
    }
  }
}

void Model::check_slots(const Tree& tree, const std::vector<std::shared_ptr<Tree>>& living) {
  std::size_t trees = 0;
  std::size_t in_narrow_group = 0;
  for (const auto& other : living) {
    if (!other->alive()) continue;
    ++trees;
    const TaskId id = other->run.task;
    if (!is_edited(id) && control_.group_of(id) == narrow_group) ++in_narrow_group;
    if (other->run.task == tree.run.task && !(other->run == tree.run)) {
      fail("two attempts of " + name(tree.run.task) + " run at once");
    }
  }
  if (in_narrow_group > 1) fail(std::to_string(in_narrow_group) + " tasks of a group run at once, 1 is allowed");
  if (trees > most_running()) {
    fail(std::to_string(trees) + " tasks run at once, " + std::to_string(most_running()) + " are allowed");
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
  run = {.begun = run.begun, .told_started = run.told_started, .began_at = clock_.now()};
  output_.began(tree.run);
  if (known.told && task::has_ended(*known.told)) fail(name(id) + " runs, but it is " + text(*known.told));
  if (known.cancelled && tree.ordered > *known.cancelled)
    fail(name(id) + " runs, although a cancel of it was acknowledged");
  check_dependencies(tree, known);
  check_attempt(tree, known);
  check_slots(tree, living);
}

// A keeper that lives and is awake ends what must end: with TERM, and with KILL after the grace.
void Model::check_trees() {
  for (const auto& tree : living_) {
    if (!tree->alive()) continue;
    const auto due = end_is_due(*tree);
    if (due && clock_.now() > *due + grace + moment) fail("processes of " + name(tree->run.task) + " are not ended");
  }
}

std::optional<base::TimePoint> Model::end_is_due(const Tree& tree) const {
  const Known& known = tasks_.at(tree.run.task);
  const Run& run = known.runs.at(tree.run.attempt);
  if (run.keeper_killed || run.suspended) return std::nullopt;
  if (run.status) return run.ended_at;
  std::optional<base::TimePoint> due = known.told_to_end;
  const bool has_limit = known.submission && known.submission->time_limit;
  if (has_limit && !due) due = run.began_at + *known.submission->time_limit;
  return due;
}

void Model::main_ended(const Tree& tree, int status, bool kept) {
  Run& run = tasks_[tree.run.task].runs[tree.run.attempt];
  if (kept) {
    run.status = status;
    run.ended_at = clock_.now();
  } else {
    run.ended_unseen = true;
  }
}

void Model::keeper_killed(task::RunId id, bool at_work) {
  tasks_[id.task].runs[id.attempt].keeper_killed = true;
  output_.keeper_killed(id);
  if (at_work) output_.took(id, {}, true);
}

// A sync that failed may have kept what is refused then. The daemon writes over it, but if the power is cut before the
// next commit has written all of it anew, nobody can say which of the two is there.
void Model::doubt_refusals() {
  if (!syncs_failed_at_) return;
  for (auto& [prompt, asked] : asked_) {
    const bool is_late = asked.fate == Asked::Fate::refused && asked.refused_at >= *syncs_failed_at_;
    if (is_late) asked.fate = Asked::Fate::open;
  }
  for (auto& [firing, approval] : approvals_) {
    if (approval.refused_at >= *syncs_failed_at_) ++approval.open;
  }
}

void Model::power_cut() {
  last_cut_ = clock_.now();
  doubt_refusals();
  for (auto& [id, known] : tasks_) {
    if (known.ordered) known.runs.try_emplace(*known.ordered);
    for (auto& [attempt, run] : known.runs) {
      if (!known.told || !task::has_ended(*known.told)) run.cut = true;
      const bool is_running = known.told == State::running;
      output_.power_cut({id, attempt},
                        known.told && (is_running ? attempt < known.attempts : attempt <= known.attempts));
    }
  }
  living_.clear();
}

void Model::set_trouble(bool troubled, bool syncs_fail) {
  if (syncs_fail && !syncs_failed_at_) syncs_failed_at_ = clock_.now();
  if (troubled_ && !troubled) trouble_ended_ = clock_.now();
  control_.forget_turns();  // a start that was tried in vain was its group's turn, too
  troubled_ = troubled;
}

bool Model::was_troubled_lately() const {
  return troubled_ || (trouble_ended_ && clock_.now() < *trouble_ended_ + trouble_takes_effect);
}

void Model::set_limits(const task::TaskSettings& settings) {
  set_max_running(settings.max_running);
  capacity_ = settings.queue_capacity;
  kept_ = settings.keep_tasks;
  fewest_kept_ = std::min(fewest_kept_, kept_);
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
  for (auto& [id, known] : tasks_) {
    const bool has_ended = known.told && task::has_ended(*known.told);
    if (known.ordered && !has_ended) known.stopped.insert(*known.ordered);
  }
}

std::vector<TaskId> Model::open_tasks() const {
  std::vector<TaskId> ids;
  for (const auto& [id, known] : tasks_) {
    if (known.acknowledged && !(known.told && task::has_ended(*known.told))) ids.push_back(id);
  }
  return ids;
}

std::vector<TaskId> Model::ended_tasks() const {
  std::vector<TaskId> ids;
  for (const auto& [id, known] : tasks_) {
    if (known.told && task::has_ended(*known.told)) ids.push_back(id);
  }
  return ids;
}

std::vector<TaskId> Model::all_tasks() const {
  std::vector<TaskId> ids;
  for (const auto& [id, known] : tasks_) ids.push_back(id);
  return ids;
}

}  // namespace duet::simulate
