#include "simulate/cluster_truth.h"

#include <algorithm>

#include "simulate/cluster_names.h"

namespace duet::simulate {
namespace {

// As docs/protocol.md has them.
constexpr int unknown_task_code = -32000;
constexpr int wrong_state_code = -32001;

constexpr std::chrono::seconds time_to_beat{10};  // to be connected again, and to be answered
constexpr std::chrono::seconds patience{25};      // every question is answered by then

}  // namespace

// ---- what clients ask ----

void ClusterTruth::submitted(std::size_t host, const task::Submission& submission) {
  const auto [place, is_first] = asked_.try_emplace(submission.prompt);
  if (is_first) place->second = {.submission = submission, .sent = clock_.now()};
  place->second.hosts.insert(host);
}

void ClusterTruth::accepted(const std::string& prompt, task::TaskId id) {
  Asked& asked = asked_.at(prompt);
  if (asked.id && *asked.id != id && !was_lost(*asked.id)) {
    fail(prompt + " is " + name_of(id) + ", but was " + name_of(*asked.id));
  }
  const ModelTask* const task = row_of(id);
  if (task == nullptr) {
    if (!was_lost(id)) fail(name_of(id) + " was accepted, and is not there");
    return;
  }
  asked.id = id;
  if (prompt_of(*task) != prompt) fail(prompt + " is said to be " + name_of(id) + ", which is " + prompt_of(*task));
}

// A key may be asked for again.
void ClusterTruth::refused(std::size_t host, const std::string& prompt, const rpc::Error& why) {
  Asked& asked = asked_.at(prompt);
  const bool never = std::string_view(why.data()).find("\"unknown\"") == std::string_view::npos;
  asked.never = asked.never || (never && asked.submission.key.empty());
  const auto was_missing = [this](task::TaskId id) { return may_have_been_missing(id); };
  const bool is_unknown = why.code() == unknown_task_code && std::ranges::any_of(asked.submission.after, was_missing);
  if (!is_unknown) check_refusal(host, "submit of " + prompt, why);
}

void ClusterTruth::not_cancelled(std::size_t host, task::TaskId id, const rpc::Error& why) {
  const ModelTask* const task = row_of(id);
  const bool is_unknown = why.code() == unknown_task_code && may_have_been_missing(id);
  const bool has_ended = why.code() == wrong_state_code && (task == nullptr || task->has_ended());
  if (!is_unknown && !has_ended) check_refusal(host, "cancel of " + name_of(id), why);
}

void ClusterTruth::waited(std::size_t host, task::TaskId id, bool is_late,
                          const tl::expected<task::Task, rpc::Error>& answer) {
  const ModelTask* const task = row_of(id);
  const std::string what = "wait for " + name_of(id);
  if (!answer) {
    const bool is_unknown = answer.error().code() == unknown_task_code && may_have_been_missing(id);
    if (!is_unknown) check_refusal(host, what, answer.error());
    return;
  }
  const task::Progress& told = answer->progress;
  if (!task::has_ended(told.state)) {
    if (!is_late) fail("the " + what + " is answered before its end");
    return;
  }
  if (has_lost_commits_) return;
  const bool is_same =
      task != nullptr && task->world() == static_cast<int>(told.state) &&
      task->exit_code == (told.exit_code ? std::optional<std::int64_t>(*told.exit_code) : std::nullopt);
  if (!is_same) fail("the " + what + " is answered with another end than it has");
}

// When that was asked.
bool ClusterTruth::may_have_been_missing(task::TaskId id) const {
  const ModelTask* const task = row_of(id);
  return task == nullptr || base::milliseconds_of(clock_.utc() - patience) < task->created;
}

// A daemon that has reached the database for some time answers.
void ClusterTruth::check_refusal(std::size_t host, const std::string& what, const rpc::Error& why) {
  const auto& since = hosts_.at(host).reached_since;
  const bool is_reached = since && clock_.now() - *since > patience;
  if (is_reached && !calls_get_lost) fail("the " + what + " is refused without need: " + std::string(why.message()));
}

std::vector<task::TaskId> ClusterTruth::known_tasks() const {
  std::vector<task::TaskId> ids;
  for (const auto& [id, task] : database_.data().tasks) ids.push_back(static_cast<task::TaskId>(id));
  return ids;
}

std::vector<task::TaskId> ClusterTruth::endless_tasks() const {
  std::vector<task::TaskId> ids;
  for (const auto& [id, task] : database_.data().tasks) {
    if (!task.has_ended() && prompt_of(task).starts_with("endless")) ids.push_back(static_cast<task::TaskId>(id));
  }
  return ids;
}

const ModelTask* ClusterTruth::row_of(task::TaskId id) const {
  const auto found = database_.data().tasks.find(static_cast<std::int64_t>(id));
  return found == database_.data().tasks.end() ? nullptr : &found->second;
}

const ClusterTruth::Asked* ClusterTruth::asked_of(const ModelTask& task) const {
  const auto found = asked_.find(prompt_of(task));
  return found == asked_.end() ? nullptr : &found->second;
}

// ---- what goes wrong ----

void ClusterTruth::set_host(std::size_t host, std::size_t slots, std::vector<std::string> labels) {
  hosts_.at(host).slots = slots;
  hosts_.at(host).labels = std::move(labels);
}

void ClusterTruth::set_since(std::optional<base::TimePoint>& since, bool holds) const {
  if (!holds) return since.reset();
  if (!since) since = clock_.now();
}

void ClusterTruth::set_sound(std::size_t host, bool sound) { set_since(hosts_.at(host).sound_since, sound); }

void ClusterTruth::set_reached(std::size_t host, bool reached) { set_since(hosts_.at(host).reached_since, reached); }

// The database believes it to run.
bool ClusterTruth::is_own(std::uint64_t fence, const Run& run) const {
  const ModelTask* const task = row_of(run.task);
  return task != nullptr && task->runs_under(static_cast<std::int64_t>(fence));
}

void ClusterTruth::check_fenced() {
  constexpr std::chrono::seconds patience{90};  // some beats, and the grace between TERM and KILL
  const base::TimePoint now = clock_.now();
  for (auto& [fence, run] : runs_) {
    if (!run.alive) continue;
    set_since(run.fenced, !is_own(fence, run));
    const auto& reached = hosts_.at(run.host).reached_since;
    if (run.fenced && reached && now - std::max(*run.fenced, *reached) > patience) {
      fail(name_of(run.task) + " runs on under fence " + std::to_string(fence) +
           ", which is not its worker's any more");
    }
  }
}

// What was committed since then may be gone, and nothing else.
void ClusterTruth::failed_over(base::TimePoint since, const ModelDatabase::Data& before) {
  has_failed_over_ = true;
  has_lost_commits_ = has_lost_commits_ || since < clock_.now();
  for (const auto& [id, task] : before.tasks) {
    if (row_of(static_cast<task::TaskId>(id)) == nullptr) lost_tasks_.insert(static_cast<task::TaskId>(id));
  }
  for (auto& [fence, run] : runs_) {
    const ModelTask* const task = row_of(run.task);
    run.forgotten = task == nullptr || task->attempts < static_cast<int>(run.attempt);
  }
  lost_seq_ = static_cast<std::uint64_t>(before.next_seq);
  for (auto& [prompt, asked] : asked_) {
    if (asked.id && was_lost(*asked.id)) asked.id.reset();
  }
  std::erase_if(acknowledged_, [this, since](const auto& cancel) {
    const bool is_lost = cancel.second >= since;
    if (is_lost) lost_cancels_.insert(cancel.first);
    return is_lost;
  });
  told_.clear();
  for (const ModelEvent& event : database_.data().events) {
    if (event.becomes) told_[event.task] = *event.becomes;
  }
  checked_events_ = database_.data().events.size();
}

// ---- what the database has ----

void ClusterTruth::carried_out(std::string_view function, const std::vector<Argument>& arguments) {
  check_events(function);
  if (function == "silence_v1") check_silence(arguments);
  epoch_starts_.insert(static_cast<std::uint64_t>(database_.data().epoch_start));
  for (const auto& [id, worker] : database_.data().workers) {
    was_silent_[id] = worker.state == ModelWorker::silent;
    Beat& last = beats_[id];
    if (last.number < worker.beat) last.at = clock_.now();
    last.number = worker.beat;  // a server that crashed may lack the last ones
  }
}

// One at a time, from what it was to what it may become.
void ClusterTruth::check_events(std::string_view function) {
  const bool is_by_worker = function == "report_v1" || function == "recover_v1";
  const std::vector<ModelEvent>& events = database_.data().events;
  checked_events_ = std::min(checked_events_, events.size());
  for (; checked_events_ < events.size(); ++checked_events_) {
    const ModelEvent& event = events[checked_events_];
    if (event.task == 0 || !event.becomes) continue;
    const auto known = told_.find(event.task);
    const bool is_new = known == told_.end();
    const bool fits = is_new ? !event.was : event.was == known->second;
    const bool has_ended = !is_new && known->second > 1;
    if (!fits || has_ended) {
      fail(name_of(event.task) + " is told to become " + std::to_string(*event.becomes) + " out of turn");
    }
    told_[event.task] = *event.becomes;
    if (*event.becomes <= 1) continue;
    if (!is_by_worker) given_up_.insert(event.task);
    if (is_by_worker && *event.becomes == static_cast<int>(task::State::cancelled)) check_gone(event.task);
  }
}

// A cancel is over when no process is left.
void ClusterTruth::check_gone(std::int64_t task) {
  for (const auto& [fence, run] : runs_) {
    if (run.task != static_cast<task::TaskId>(task) || !run.has_tree || run.keeper_died) continue;
    fail(name_of(task) + " is cancelled, but processes of it run under fence " + std::to_string(fence));
  }
}

// Its beat has not moved for its lease. And the worker could not reach the database as well as all others for longer
// than that, and more.
void ClusterTruth::check_silence(const std::vector<Argument>& arguments) {
  const auto found = database_.data().workers.find(Arguments(arguments).number(2));
  if (found == database_.data().workers.end()) return;
  const ModelWorker& worker = found->second;
  if (worker.state != ModelWorker::silent || was_silent_[worker.id]) return;
  const std::chrono::milliseconds lease(worker.lease);
  const auto beat = beats_.find(worker.id);
  if (beat != beats_.end() && clock_.now() - beat->second.at < lease) {
    fail(worker.name + " is called silent, but has beaten in its lease");
  }
  if (calls_get_lost) return;
  const base::TimePoint since = clock_.now() - 2 * lease;
  const auto outages = std::ranges::count_if(outages_, [since](base::TimePoint at) { return at > since; });
  for (std::size_t host = 0; host < hosts_.size(); ++host) {
    if (worker.name != worker_name(host)) continue;
    const auto& sound = hosts_[host].sound_since;
    const auto& reached = hosts_[host].reached_since;
    const bool could_beat = sound && *sound < since && outages <= 1;
    const bool had_time = reached && clock_.now() - *reached > time_to_beat + lease / 4;
    if (could_beat || had_time) fail(worker.name + " is called silent, but could beat");
  }
}

void ClusterTruth::journal_began_anew(std::size_t host) {
  if (!has_failed_over_) fail("a daemon says that events are missing, and none is");
  hosts_.at(host).last_seq.reset();
  hosts_.at(host).begins_epoch = true;
}

void ClusterTruth::began_to_read(std::size_t host) {
  hosts_.at(host).last_seq.reset();
  hosts_.at(host).begins_epoch = false;
}

void ClusterTruth::heard(std::size_t host, const task::Event& event) {
  std::optional<std::uint64_t>& last = hosts_.at(host).last_seq;
  if (last && event.seq != *last + 1) {
    fail("a daemon is told of event " + std::to_string(event.seq) + " after " + std::to_string(*last));
  }
  if (std::exchange(hosts_.at(host).begins_epoch, false) && !epoch_starts_.contains(event.seq)) {
    fail(worker_name(host) + " goes on with event " + std::to_string(event.seq) +
         ", which is not the first of an epoch");
  }
  last = event.seq;
  const std::vector<ModelEvent>& events = database_.data().events;
  const auto found = std::ranges::find(events, std::optional(static_cast<std::int64_t>(event.seq)), &ModelEvent::seq);
  const bool is_same =
      found != events.end() && found->kind == event.kind && found->task == static_cast<std::int64_t>(event.task);
  const bool may_differ = has_lost_commits_ && event.seq < lost_seq_;
  if (!is_same && !may_differ) fail("event " + std::to_string(event.seq) + " is told as another one");
}

}  // namespace duet::simulate
