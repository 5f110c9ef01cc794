#include "simulate/cluster_truth.h"

#include <sys/wait.h>

#include <algorithm>
#include <concepts>

#include "process/launch.h"
#include "simulate/play.h"

namespace duet::simulate {
namespace {

std::string name_of(std::integral auto id) { return "task-" + std::to_string(id); }

std::string standing_of(const ModelTask& task) {
  return "state " + std::to_string(task.state) + ", worker " + std::to_string(task.worker) + ", fence " +
         std::to_string(task.fence.value_or(0)) + ", attempt " + std::to_string(task.attempts) + ", lane " +
         std::to_string(task.lane) + ", waits for " + std::to_string(task.open_after) +
         (task.announced ? ", started" : "") + (task.cancelling ? ", cancelling" : "");
}

}  // namespace

// ---- what clients ask ----

void ClusterTruth::submitted(const task::Submission& submission) {
  asked_.try_emplace(submission.prompt, Asked{.submission = submission});
}

void ClusterTruth::accepted(const std::string& prompt, task::TaskId id) {
  Asked& asked = asked_.at(prompt);
  if (asked.id && *asked.id != id) fail(prompt + " is " + name_of(id) + ", but was " + name_of(*asked.id));
  asked.id = id;
  asked.accepted = clock_.now();
  const bool is_there = database_.data().tasks.contains(static_cast<std::int64_t>(id));
  if (!is_there && !has_lost_commits_) fail(name_of(id) + " was accepted, and is not there");
}

void ClusterTruth::refused(const std::string& prompt, bool never) {
  Asked& asked = asked_.at(prompt);
  asked.never = asked.never || (never && asked.submission.key.empty());
}

std::vector<task::TaskId> ClusterTruth::accepted_tasks() const {
  std::vector<task::TaskId> ids;
  for (const auto& [id, task] : database_.data().tasks) ids.push_back(static_cast<task::TaskId>(id));
  return ids;
}

const ClusterTruth::Asked* ClusterTruth::asked_of(const ModelTask& task) const {
  const auto found = asked_.find(task::from_body(task.body).prompt);
  return found == asked_.end() ? nullptr : &found->second;
}

std::vector<task::TaskId> ClusterTruth::endless_tasks() const {
  std::vector<task::TaskId> ids;
  for (const auto& [id, task] : database_.data().tasks) {
    if (!task.has_ended() && task::from_body(task.body).prompt.starts_with("endless")) {
      ids.push_back(static_cast<task::TaskId>(id));
    }
  }
  return ids;
}

// ---- what processes do ----

void ClusterTruth::began(std::size_t host, const Tree& tree) {
  check_overlap(tree);
  check_starts(tree);
  runs_[tree.fence] = {.task = tree.run.task, .attempt = tree.run.attempt, .host = host};
  check_slots(host);
}

void ClusterTruth::check_overlap(const Tree& tree) {
  if (runs_.contains(tree.fence))
    fail(name_of(tree.run.task) + " began twice under fence " + std::to_string(tree.fence));
  for (const auto& [fence, run] : runs_) {
    if (run.task != tree.run.task || !run.alive) continue;
    fail("two attempts of " + name_of(run.task) + " run at once, under fence " + std::to_string(fence) + " and " +
         std::to_string(tree.fence));
  }
}

// Every attempt of a task that is not repeated when it is lost counts against its retries.
void ClusterTruth::check_starts(const Tree& tree) {
  const auto found = database_.data().tasks.find(static_cast<std::int64_t>(tree.run.task));
  if (found == database_.data().tasks.end()) {
    if (!has_lost_commits_) fail(name_of(tree.run.task) + " begins, and is not there");
    return;
  }
  const ModelTask& task = found->second;
  const auto starts = std::ranges::count_if(runs_, [&](const auto& run) { return run.second.task == tree.run.task; });
  if (task.on_lost == 0 && starts > task.retries) fail(name_of(task.id) + " begins once too often");
  // What was spared is not told again.
  if (task.on_lost == 1 && starts > task.retries + task.spared + task.lost && !has_lost_commits_) {
    fail(name_of(task.id) + " begins more often than attempts of it were lost");
  }
  if (task.has_ended() && task.state != ModelTask::failed && task.fence == static_cast<std::int64_t>(tree.fence)) {
    fail(name_of(task.id) + " begins after its end");
  }
}

// Of what the database believes it to have: what it is to end does not count.
void ClusterTruth::check_slots(std::size_t host) {
  std::size_t used = 0;
  for (const auto& [fence, run] : runs_) {
    if (run.host != host || !run.alive) continue;
    const auto task = database_.data().tasks.find(static_cast<std::int64_t>(run.task));
    const bool counts = task != database_.data().tasks.end() && task->second.state == ModelTask::running &&
                        task->second.fence == static_cast<std::int64_t>(fence);
    used += counts ? 1 : 0;
  }
  const std::size_t slots = hosts_.at(host).slots;
  if (used > slots) fail(std::to_string(used) + " tasks run on one worker, " + std::to_string(slots) + " are allowed");
}

void ClusterTruth::main_ended(std::size_t /*host*/, const Tree& tree, int status, bool kept) {
  Run& run = runs_.at(tree.fence);
  run.alive = false;
  run.status = status;
  run.seen = kept;
}

ClusterTruth::Run* ClusterTruth::run_of(std::size_t host, task::RunId id) {
  Run* newest = nullptr;
  for (auto& [fence, run] : runs_) {
    if (run.host == host && run.task == id.task && run.attempt == id.attempt) newest = &run;
  }
  return newest;
}

void ClusterTruth::wrote(std::size_t host, task::RunId id, std::string_view bytes) {
  if (Run* run = run_of(host, id)) run->output += bytes;
}

void ClusterTruth::keeper_died(std::size_t host, task::RunId id) {
  if (Run* run = run_of(host, id)) run->keeper_died = true;
}

void ClusterTruth::stopped_tasks(std::size_t host) {
  for (auto& [fence, run] : runs_) {
    if (run.host == host) run.stopped = true;
  }
}

// ---- what goes wrong ----

void ClusterTruth::set_sound(std::size_t host, bool sound) {
  std::optional<base::TimePoint>& since = hosts_.at(host).sound_since;
  if (!sound) return since.reset();
  if (!since) since = clock_.now();
}

void ClusterTruth::set_reached(std::size_t host, bool reached) {
  std::optional<base::TimePoint>& since = hosts_.at(host).reached_since;
  if (!reached) return since.reset();
  if (!since) since = clock_.now();
}

void ClusterTruth::check_fenced() {
  constexpr std::chrono::seconds patience{90};  // some beats, and the grace between TERM and KILL
  const base::TimePoint now = clock_.now();
  for (auto& [fence, run] : runs_) {
    if (!run.alive) continue;
    const auto task = database_.data().tasks.find(static_cast<std::int64_t>(run.task));
    const bool is_own = task != database_.data().tasks.end() && task->second.state == ModelTask::running &&
                        task->second.fence == static_cast<std::int64_t>(fence);
    if (is_own || !run.fenced) run.fenced = is_own ? std::nullopt : std::optional(now);
    const auto& reached = hosts_.at(run.host).reached_since;
    if (run.fenced && reached && now - std::max(*run.fenced, *reached) > patience) {
      fail(name_of(static_cast<std::int64_t>(run.task)) + " runs on under fence " + std::to_string(fence) +
           ", which is not its worker's any more");
    }
  }
}

// What was acknowledged since then may be gone, and nothing else.
void ClusterTruth::failed_over(base::TimePoint since) {
  has_failed_over_ = true;
  has_lost_commits_ = has_lost_commits_ || since < clock_.now();
  for (auto& [prompt, asked] : asked_) {
    const bool is_there = asked.id && database_.data().tasks.contains(static_cast<std::int64_t>(*asked.id));
    if (asked.id && !is_there && asked.accepted >= since) asked.id.reset();
  }
  std::erase_if(acknowledged_, [since](const auto& cancel) { return cancel.second >= since; });
  told_.clear();
  for (const ModelEvent& event : database_.data().events) {
    if (event.becomes) told_[event.task] = *event.becomes;
  }
  checked_events_ = database_.data().events.size();
}

void ClusterTruth::outage() { outages_.push_back(clock_.now()); }

// ---- what the database has ----

void ClusterTruth::carried_out(std::string_view function, const std::vector<Argument>& arguments) {
  check_events();
  if (function == "silence_v1") check_silence(arguments);
  for (const auto& [id, worker] : database_.data().workers) was_silent_[id] = worker.state == ModelWorker::silent;
}

// One at a time, from what it was to what it may become.
void ClusterTruth::check_events() {
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
  }
}

// The worker could reach the database as well as all others for longer than its lease, and more.
void ClusterTruth::check_silence(const std::vector<Argument>& arguments) {
  const Arguments read(arguments);
  const auto found = database_.data().workers.find(read.number(2));
  if (found == database_.data().workers.end()) return;
  const ModelWorker& worker = found->second;
  if (worker.state != ModelWorker::silent || was_silent_[worker.id] || calls_get_lost) return;
  const base::TimePoint since = clock_.now() - 2 * std::chrono::milliseconds(worker.lease);
  const auto outages = std::ranges::count_if(outages_, [since](base::TimePoint at) { return at > since; });
  if (outages > 1) return;
  for (std::size_t host = 0; host < hosts_.size(); ++host) {
    const auto& sound = hosts_[host].sound_since;
    if (worker.name == "worker-" + std::to_string(host) && sound && *sound < since) {
      fail(worker.name + " is called silent, but could beat all the time");
    }
  }
}

void ClusterTruth::journal_began_anew(std::size_t host) {
  if (!has_failed_over_) fail("a daemon says that events are missing, and none is");
  began_to_read(host);
}

void ClusterTruth::heard(std::size_t host, const task::Event& event) {
  std::optional<std::uint64_t>& last = hosts_.at(host).last_seq;
  if (last && event.seq != *last + 1 && !has_failed_over_) {
    fail("a daemon is told of event " + std::to_string(event.seq) + " after " + std::to_string(*last));
  }
  last = event.seq;
  const std::vector<ModelEvent>& events = database_.data().events;
  const auto found = std::ranges::find(events, std::optional(static_cast<std::int64_t>(event.seq)), &ModelEvent::seq);
  const bool is_same =
      found != events.end() && found->kind == event.kind && found->task == static_cast<std::int64_t>(event.task);
  if (!is_same && !has_lost_commits_) fail("event " + std::to_string(event.seq) + " is told as another one");
}

// ---- the end ----

std::size_t ClusterTruth::open_tasks() const {
  const auto open = [](const auto& task) { return !task.second.has_ended(); };
  return static_cast<std::size_t>(std::ranges::count_if(database_.data().tasks, open));
}

void ClusterTruth::check_ends() {
  check_submits();
  for (const auto& [id, task] : database_.data().tasks) check_end(task);
  const auto& events = database_.data().events;
  for (std::size_t i = 1; i < events.size(); ++i) {
    if (!events[i].seq || !events[i - 1].seq) return fail("an event never got its number");
    if (*events[i].seq != *events[i - 1].seq + 1 && !has_failed_over_) fail("numbers of events have a gap");
  }
}

// One submit is one task.
void ClusterTruth::check_submits() {
  std::map<std::string, std::int64_t> found;
  for (const auto& [id, task] : database_.data().tasks) {
    const std::string prompt = task::from_body(task.body).prompt;
    const auto [place, is_first] = found.emplace(prompt, id);
    if (!is_first && !has_lost_commits_) fail(prompt + " became " + name_of(place->second) + " and " + name_of(id));
  }
  for (const auto& [prompt, asked] : asked_) {
    const auto there = found.find(prompt);
    const bool is_there = there != found.end();
    if (asked.id && !is_there) fail(name_of(static_cast<std::int64_t>(*asked.id)) + " was accepted, and is gone");
    if (asked.never && !asked.id && is_there) fail(prompt + " was refused for good, and is there");
  }
}

void ClusterTruth::check_end(const ModelTask& task) {
  if (!task.has_ended()) return fail(name_of(task.id) + " never ends: " + standing_of(task));
  const bool is_cancelled = task.state == ModelTask::cancelled;
  const auto id = static_cast<task::TaskId>(task.id);
  if (is_cancelled && !cancels_.contains(id)) fail(name_of(task.id) + " is cancelled, and nobody asked for it");
  if (!is_cancelled && acknowledged_.contains(id)) {
    fail("a cancel of " + name_of(task.id) + " was acknowledged, but it ended as " + std::to_string(task.world()));
  }
  if (is_cancelled || !task.fence) return;
  const auto run = runs_.find(static_cast<std::uint64_t>(*task.fence));
  if (run != runs_.end()) return check_outcome(task, run->second);
  constexpr std::int64_t spawn = 3;
  const bool may_be_without = task.state == ModelTask::failed && task.reason >= spawn;
  if (!may_be_without) fail(name_of(task.id) + " has an end, but never ran under its last fence");
}

void ClusterTruth::check_outcome(const ModelTask& task, const Run& run) {
  constexpr std::int64_t exit = 0;
  constexpr std::int64_t signal = 1;
  constexpr std::int64_t lost = 4;
  if (!run.status) return fail(name_of(task.id) + " has ended, but its process has not");
  const int status = *run.status;
  if (task.state == ModelTask::completed && status != 0) {
    return fail(name_of(task.id) + " is completed, but its process ended with " + std::to_string(status));
  }
  if (task.reason == lost) {
    const bool is_given_up =
        task.message.find("heard of") != task.message.npos || task.message.find("three attempts") != task.message.npos;
    if (run.seen && !run.keeper_died && !is_given_up) {
      fail(name_of(task.id) + " is called lost (" + task.message + "), but its keeper saw how it ended");
    }
    return;
  }
  if (task.reason == exit && (!WIFEXITED(status) || WEXITSTATUS(status) != task.exit_code)) {
    return fail(name_of(task.id) + " ended with another code than its process");
  }
  if (task.reason == signal && (!WIFSIGNALED(status) || process::signal_name(WTERMSIG(status)) != task.signal)) {
    return fail(name_of(task.id) + " ended by another signal than its process");
  }
  check_output(task, run);
}

void ClusterTruth::check_output(const ModelTask& task, const Run& run) {
  if (run.keeper_died) return;
  const auto found = database_.data().output.find({task.id, static_cast<int>(run.attempt)});
  const std::string kept = found == database_.data().output.end() ? std::string() : found->second.first;
  if (kept != run.output) {
    return fail(name_of(task.id) + ": " + std::to_string(kept.size()) + " bytes of output are kept, " +
                std::to_string(run.output.size()) + " were written");
  }
  if (found != database_.data().output.end() && !found->second.second) {
    fail(name_of(task.id) + " has ended, but its output is not said to be all");
  }
}

}  // namespace duet::simulate
