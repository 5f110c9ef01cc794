#include <sys/wait.h>

#include <algorithm>

#include "process/launch.h"
#include "simulate/cluster_names.h"
#include "simulate/cluster_truth.h"
#include "simulate/play.h"

// When all has come to rest: what became of each submit, and how each task ended.

namespace duet::simulate {
namespace {

std::string standing_of(const ModelTask& task) {
  return "state " + std::to_string(task.state) + ", worker " + std::to_string(task.worker) + ", fence " +
         std::to_string(task.fence.value_or(0)) + ", attempt " + std::to_string(task.attempts) + ", lane " +
         std::to_string(task.lane) + ", waits for " + std::to_string(task.open_after) +
         (task.announced ? ", started" : "") + (task.cancelling ? ", cancelling" : "");
}

}  // namespace

std::size_t ClusterTruth::open_tasks() const {
  const auto open = [](const auto& task) { return !task.second.has_ended(); };
  return static_cast<std::size_t>(std::ranges::count_if(database_.data().tasks, open));
}

void ClusterTruth::check_ends() {
  check_submits();
  for (const auto& [id, task] : database_.data().tasks) check_end(task);
  check_numbers();
}

void ClusterTruth::check_numbers() {
  const auto& events = database_.data().events;
  for (std::size_t i = 0; i < events.size(); ++i) {
    if (!events[i].seq) return fail("an event never got its number");
    // A server that takes over goes on a million later.
    const bool is_next = i == 0 || *events[i].seq == *events[i - 1].seq + 1;
    if (!is_next && !has_failed_over_) fail("numbers of events have a gap");
    if (i > 0 && *events[i].seq <= *events[i - 1].seq) fail("numbers of events go back");
  }
}

void ClusterTruth::check_told(std::size_t host, std::uint64_t next) {
  const auto wanted = static_cast<std::uint64_t>(database_.data().next_seq);
  const auto& last = hosts_.at(host).last_seq;
  if (next != wanted || (last && *last + 1 != wanted)) {
    fail(worker_name(host) + " waits for event " + std::to_string(next) + " and was told of " +
         std::to_string(last.value_or(0)) + ", but the next one is " + std::to_string(wanted));
  }
}

// One submit is one task. One that was lost may be asked for again, and be told again by who runs it.
void ClusterTruth::check_submits() {
  std::map<std::string, const ModelTask*> found;
  for (const auto& [id, task] : database_.data().tasks) {
    const auto [place, is_first] = found.emplace(prompt_of(task), &task);
    if (!is_first && !task.restored && !place->second->restored) {
      fail(place->first + " became " + name_of(place->second->id) + " and " + name_of(id));
    }
    const Asked* const asked = asked_of(task);
    if (asked == nullptr) return fail(name_of(id) + " is there, and nobody asked for it");
    check_row(task, *asked);
  }
  for (const auto& [prompt, asked] : asked_) {
    const bool is_there = found.contains(prompt);
    if (asked.id && row_of(*asked.id) == nullptr) fail(name_of(*asked.id) + " was accepted, and is gone");
    if (asked.never && !asked.id && is_there) fail(prompt + " was refused for good, and is there");
  }
}

// It is what was asked for.
void ClusterTruth::check_row(const ModelTask& task, const Asked& asked) {
  if (asked.id && *asked.id != static_cast<task::TaskId>(task.id) && !task.restored) {
    const ModelTask* const other = row_of(*asked.id);
    if (other == nullptr || !other->restored) {
      fail(prompt_of(task) + " was accepted as " + name_of(*asked.id) + ", and is " + name_of(task.id));
    }
  }
  const bool is_same = task.priority == asked.submission.priority.value_or(0) && task.retries == asked.retries() &&
                       task.is_for(asked.submission.on_lost.value_or(task::OnLost::fail));
  if (!is_same) fail(name_of(task.id) + " has another priority, retries or on_lost than was asked for");
}

void ClusterTruth::check_end(const ModelTask& task) {
  if (!task.has_ended()) return fail(name_of(task.id) + " never ends: " + standing_of(task));
  const Asked* const asked = asked_of(task);
  if (asked == nullptr) return;
  if (task.state == ModelTask::cancelled) return check_cancelled(task);
  if (acknowledged_.contains(static_cast<task::TaskId>(task.id))) {
    fail("a cancel of " + name_of(task.id) + " was acknowledged, but it ended as " + std::to_string(task.world()));
  }
  check_outputs(task);
  task.state == ModelTask::completed ? check_completed(task) : check_failed(task, *asked);
}

const ClusterTruth::Run* ClusterTruth::last_run(const ModelTask& task) const {
  const auto run = task.fence ? runs_.find(static_cast<std::uint64_t>(*task.fence)) : runs_.end();
  return run == runs_.end() ? nullptr : &run->second;
}

// The code and the signal that are told are those of its process.
bool ClusterTruth::has_status_of(const ModelTask& task, const Run& run) const {
  if (!run.status) return false;
  const int status = *run.status;
  if (WIFEXITED(status)) return task.exit_code == WEXITSTATUS(status) && !task.signal;
  return !task.exit_code && task.signal == process::signal_name(WTERMSIG(status));
}

void ClusterTruth::check_cancelled(const ModelTask& task) {
  const auto id = static_cast<task::TaskId>(task.id);
  if (!cancels_.contains(id)) fail(name_of(task.id) + " is cancelled, and nobody asked for it");
  const Run* const run = last_run(task);
  const bool says_how = task.exit_code || task.signal;
  if (says_how && (run == nullptr || !has_status_of(task, *run))) {
    fail(name_of(task.id) + " is cancelled, and is said to have ended otherwise than its process");
  }
}

void ClusterTruth::check_completed(const ModelTask& task) {
  const Run* const run = last_run(task);
  if (run == nullptr) return fail(name_of(task.id) + " is completed, but never ran under its last fence");
  if (!run->has_succeeded()) fail(name_of(task.id) + " is completed, but its process has not succeeded");
  if (!has_status_of(task, *run)) fail(name_of(task.id) + " is completed with another code than its process");
  check_output(task, *run);
}

void ClusterTruth::check_failed(const ModelTask& task, const Asked& asked) {
  using task::Reason;
  if (task.reason == Reason::spawn) return check_spawn(task);
  if (task.reason == Reason::lost) return check_lost(task);
  if (task.reason == Reason::dependency) return check_dependency(task, asked);
  const Run* const run = last_run(task);
  if (run == nullptr) return fail(name_of(task.id) + " has failed, but never ran under its last fence");
  // What a stop has ended says so, also if no keeper lived to see how.
  const bool is_unseen = run->stopped && !run->is_witnessed() && !task.exit_code && !task.signal;
  if (!is_unseen && !has_status_of(task, *run)) {
    return fail(name_of(task.id) + " has failed otherwise than its process");
  }
  if (task.reason == Reason::exit) {
    check_exit(task, *run);
  } else if (task.reason == Reason::signal) {
    check_signal(task, *run, asked);
  } else {
    fail(name_of(task.id) + " has failed for a reason that there is not");
  }
  check_output(task, *run);
}

// What a stop of its daemon ended has failed, whatever it made of that.
void ClusterTruth::check_exit(const ModelTask& task, const Run& run) {
  if (run.has_succeeded() && !run.stopped) fail(name_of(task.id) + " has failed, but its process has succeeded");
}

// Nobody ends a task by himself but the lease of one that is tried again when it is lost.
void ClusterTruth::check_signal(const ModelTask& task, const Run& run, const Asked& asked) {
  const bool is_asked_for = run.stopped || cancels_.contains(run.task) || asked.is_retried_when_lost();
  if (!is_asked_for) fail(name_of(task.id) + " was ended by a signal, and nobody asked for that");
  // Its worker had heard of the cancel, and tells of it again.
  const bool is_cancel = lost_cancels_.contains(run.task) && !run.stopped && !asked.is_retried_when_lost();
  if (is_cancel) fail(name_of(task.id) + " was ended by a cancel, and is not cancelled");
}

void ClusterTruth::check_spawn(const ModelTask& task) {
  if (last_run(task) != nullptr) return fail(name_of(task.id) + " is said not to have begun, but has");
  if (play_of(prompt_of(task), static_cast<std::uint32_t>(task.attempts)).can_start) {
    fail(name_of(task.id) + " is said to have no program that can be started, but it has");
  }
}

// `lost`: nobody lived to see how it ended, or to tell.
void ClusterTruth::check_lost(const ModelTask& task) {
  if (given_up_.contains(task.id) || task.lost >= ModelTask::most_lost) return;
  const Run* const run = last_run(task);
  if (run == nullptr) {
    const std::pair run_id{static_cast<task::TaskId>(task.id), static_cast<std::uint32_t>(task.attempts)};
    // Of what it had claimed before a failover a daemon that comes then does not know whether it ran.
    const bool is_of_before = has_failed_over_ && task.fence.value_or(0) <= database_.data().renewed_fence;
    const bool may_have_run = is_of_before && task.is_for(task::OnLost::fail);
    if (!dead_keepers_.contains(run_id) && !may_have_run) fail(name_of(task.id) + " is called lost, but never ran");
    return;
  }
  if (!run->status) return fail(name_of(task.id) + " has ended, but its process has not");
  if (run->is_witnessed()) {
    fail(name_of(task.id) + " is called lost (" + task.message + "), but its keeper saw how it ended");
  }
}

// What ran in moments that a failover lost may fail all the same: what it comes after can be cancelled before its
// worker has told of it again.
void ClusterTruth::check_dependency(const ModelTask& task, const Asked& asked) {
  const bool has_failed = std::ranges::any_of(asked.submission.after, [this](task::TaskId id) {
    const ModelTask* const dependency = row_of(id);
    return dependency == nullptr || dependency->state > ModelTask::completed;
  });
  if (!has_failed) fail(name_of(task.id) + " failed with what it comes after, which did not fail");
  const bool has_run = std::ranges::any_of(runs_, [&task](const auto& run) {
    return run.second.task == static_cast<task::TaskId>(task.id) && !run.second.forgotten;
  });
  if (has_run || task.exit_code || task.signal) fail(name_of(task.id) + " failed with what it comes after, but ran");
}

// Of every attempt what is kept is what it wrote, or the beginning of it. Of two with the same number the first one did
// not count, and nothing of it is kept.
void ClusterTruth::check_outputs(const ModelTask& task) {
  std::map<std::uint32_t, const Run*> newest;
  for (const auto& [fence, run] : runs_) {
    if (run.task == static_cast<task::TaskId>(task.id)) newest[run.attempt] = &run;
  }
  for (const auto& [attempt, of] : newest) {
    const Run& run = *of;
    const auto found = database_.data().output.find({task.id, static_cast<int>(attempt)});
    if (found == database_.data().output.end() || run.keeper_died) continue;
    const auto& [bytes, streams, is_all, is_dropped] = found->second;
    const bool is_beginning = run.output.starts_with(bytes) && run.streams.starts_with(streams);
    if (is_beginning && (!is_all || (is_dropped && has_lost_commits_) || bytes.size() == run.output.size())) continue;
    fail(name_of(task.id) + ", attempt " + std::to_string(run.attempt) + ": other output is kept than was written");
  }
}

// With the end of a task comes all of its output, but for what a failover lost when its worker had it no more.
void ClusterTruth::check_output(const ModelTask& task, const Run& run) {
  if (run.keeper_died) return;
  const auto found = database_.data().output.find({task.id, static_cast<int>(run.attempt)});
  const bool is_kept = found != database_.data().output.end();
  const std::size_t kept = is_kept ? found->second.bytes.size() : 0;
  const bool may_lack = is_kept && found->second.dropped && has_lost_commits_;
  if (kept != run.output.size() && !may_lack) {
    fail(name_of(task.id) + ": " + std::to_string(kept) + " bytes of output are kept, " +
         std::to_string(run.output.size()) + " were written");
  }
  if (is_kept && !found->second.is_all) fail(name_of(task.id) + " has ended, but its output is not said to be all");
}

}  // namespace duet::simulate
