#include <algorithm>

#include "simulate/cluster_names.h"
#include "simulate/cluster_truth.h"

// What processes do, and when they may begin.

namespace duet::simulate {

void ClusterTruth::began(std::size_t host, const Tree& tree) {
  check_overlap(tree);
  const ModelTask* const task = row_of(tree.run.task);
  if (task == nullptr && !was_lost(tree.run.task)) fail(name_of(tree.run.task) + " begins, and is not there");
  const Asked* const asked = task == nullptr ? nullptr : asked_of(*task);
  if (task != nullptr && asked == nullptr) fail(name_of(tree.run.task) + " begins, and nobody asked for it");
  if (asked != nullptr) {
    check_starts(tree, *task, *asked);
    check_place(host, *task, *asked);
    check_after(*task, *asked);
  }
  const auto& stopped = hosts_.at(host).stopped;
  runs_[tree.fence] = {
      .task = tree.run.task, .attempt = tree.run.attempt, .host = host, .stopped = stopped && tree.ordered <= *stopped};
  check_slots(host);
}

// Of an attempt whose keeper died others may have been left.
void ClusterTruth::check_overlap(const Tree& tree) {
  if (runs_.contains(tree.fence))
    fail(name_of(tree.run.task) + " began twice under fence " + std::to_string(tree.fence));
  for (const auto& [fence, run] : runs_) {
    const bool lives = run.alive || (run.has_tree && !run.keeper_died);
    if (run.task != tree.run.task || !lives) continue;
    fail("two attempts of " + name_of(run.task) + " run at once, under fence " + std::to_string(fence) + " and " +
         std::to_string(tree.fence));
  }
}

// Every attempt of a task that is not repeated when it is lost counts against its retries.
void ClusterTruth::check_starts(const Tree& tree, const ModelTask& task, const Asked& asked) {
  const auto starts = std::ranges::count_if(runs_, [&](const auto& run) { return run.second.task == tree.run.task; });
  if (!asked.is_retried_when_lost() && starts > asked.retries()) fail(name_of(task.id) + " begins once too often");
  // What was spared is not told again.
  const std::int64_t lost = task.spared + task.lost;
  if (asked.is_retried_when_lost() && starts > asked.retries() + lost && !has_lost_commits_) {
    fail(name_of(task.id) + " begins more often than attempts of it were lost");
  }
  const bool is_last = task.fence == static_cast<std::int64_t>(tree.fence);
  if (task.has_ended() && task.state != ModelTask::failed && is_last) fail(name_of(task.id) + " begins after its end");
}

void ClusterTruth::check_place(std::size_t host, const ModelTask& task, const Asked& asked) {
  const task::Submission& submission = asked.submission;
  if (submission.delay && clock_.now() < asked.sent + *submission.delay) {
    fail(name_of(task.id) + " begins, but its delay is not over");
  }
  const std::vector<std::string>& labels = hosts_.at(host).labels;
  const auto has = [&labels](const std::string& label) { return std::ranges::find(labels, label) != labels.end(); };
  if (!std::ranges::all_of(submission.needs, has)) {
    fail(name_of(task.id) + " begins on " + worker_name(host) + ", which has not what it needs");
  }
  if (submission.here && !asked.hosts.contains(host)) {
    fail(name_of(task.id) + " begins on " + worker_name(host) + ", where nobody asked for it");
  }
}

void ClusterTruth::check_after(const ModelTask& task, const Asked& asked) {
  for (const task::TaskId dependency : asked.submission.after) {
    const auto has_succeeded = [dependency](const auto& each) {
      return each.second.task == dependency && each.second.has_succeeded();
    };
    const ModelTask* const row = row_of(dependency);
    const bool is_completed = row != nullptr && row->state == ModelTask::completed;
    if (std::ranges::any_of(runs_, has_succeeded) && (is_completed || has_lost_commits_)) continue;
    fail(name_of(task.id) + " begins, but " + name_of(dependency) + ", which it comes after, has not succeeded");
  }
}

// Of what the database believes it to have: what it is to end does not count.
void ClusterTruth::check_slots(std::size_t host) {
  const auto used = std::ranges::count_if(runs_, [&](const auto& each) {
    return each.second.host == host && each.second.alive && is_own(each.first, each.second);
  });
  const std::size_t slots = hosts_.at(host).slots;
  if (static_cast<std::size_t>(used) > slots) {
    fail(std::to_string(used) + " tasks run on one worker, " + std::to_string(slots) + " are allowed");
  }
}

void ClusterTruth::main_ended(const Tree& tree, int status, bool kept) {
  Run& run = runs_.at(tree.fence);
  run.alive = false;
  run.status = status;
  run.seen = kept;
}

void ClusterTruth::gone(const Tree& tree) { runs_.at(tree.fence).has_tree = false; }

ClusterTruth::Run* ClusterTruth::run_of(std::size_t host, task::RunId id) {
  Run* newest = nullptr;
  for (auto& [fence, run] : runs_) {
    if (run.host == host && run.task == id.task && run.attempt == id.attempt) newest = &run;
  }
  return newest;
}

void ClusterTruth::wrote(std::size_t host, task::RunId id, std::string_view bytes, task::Stream stream) {
  Run* const run = run_of(host, id);
  if (run == nullptr) return;
  run->output += bytes;
  run->streams.append(bytes.size(), stream == task::Stream::err ? 'e' : 'o');
}

void ClusterTruth::keeper_died(std::size_t host, task::RunId id) {
  dead_keepers_.emplace(id.task, id.attempt);
  if (Run* run = run_of(host, id)) run->keeper_died = true;
}

void ClusterTruth::stopped_tasks(std::size_t host) {
  hosts_.at(host).stopped = clock_.now();
  for (auto& [fence, run] : runs_) {
    if (run.host == host) run.stopped = true;
  }
}

}  // namespace duet::simulate
