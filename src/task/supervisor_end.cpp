#include <utility>

#include "duet/base/all_calls.h"
#include "task/refusal.h"
#include "task/supervisor.h"

// How tasks are ended from outside: one by a cancel, all by the daemon's stop.

namespace duet::task {

void Supervisor::cancel(TaskId id, Cancelled cancelled) {
  if (cancel_known(id, cancelled)) return;
  // It has ended, or is on its way to the disk: into the queue, or to its end.
  store_.after_changes(lifetime_.bind([this, id, cancelled = std::move(cancelled)] {
    if (!cancel_known(id, cancelled)) refuse_cancel(id, cancelled);
  }));
}

// False: it is neither queued nor running, or its end is on its way to the disk: of that nobody is told before.
bool Supervisor::cancel_known(TaskId id, const Cancelled& cancelled) {
  if (queue_.contains(id)) {
    cancel_queued(id, cancelled);
    return true;
  }
  const auto run = latest_run(id);
  const bool is_over = run == runs_.end() || run->second.on_disk ||
                       (run->second.concluded && run->second.progress.state != State::queued);
  if (is_over) return false;
  cancel_running(run->first, run->second, cancelled);
  return true;
}

void Supervisor::refuse_cancel(TaskId id, const Cancelled& cancelled) {
  const auto standing = store_.read([id](StoreReader& tasks) { return tasks.standing(id); });
  if (!standing) return cancelled(tl::unexpected(standing.error()));
  if (!*standing) return cancelled(tl::unexpected(unknown_task(to_text(id))));
  const State state = (*standing)->state;
  if (has_ended(state)) return cancelled(tl::unexpected(not_cancellable(id, state)));
  // Its end cannot be written; or it was submitted after this cancel, in the same commit: then there was none.
  cancelled(tl::unexpected(store_.is_healthy() ? unknown_task(to_text(id)) : store_.refusal()));
}

void Supervisor::cancel_queued(TaskId id, Cancelled cancelled) {
  const auto [place, is_first] = cancelling_.try_emplace(id);
  if (place->second.decided) return cancelled({});
  place->second.waiting.push_back(std::move(cancelled));
  if (!is_first) return;
  queue_.block(id, Block::cancel);
  // Of a task that waits for its next attempt, processes of the last one may be left.
  const auto run = latest_run(id);
  if (run == runs_.end() || run->second.gone) return write_queued_cancel(id, Change::Kind::request);
  Progress to = run->second.progress;
  to.cancelling = true;
  record({.id = id, .agent = queue_.find(id)->agent, .to = std::move(to)}, Change::Kind::request,
         [this, id](bool kept) { queued_cancel_decided(id, kept); });
}

// It is certain; the state follows when the tree is gone.
void Supervisor::queued_cancel_decided(TaskId id, bool kept) {
  QueuedCancel& cancel = cancelling_.at(id);
  tl::expected<void, rpc::Error> answer;
  if (!kept) answer = tl::unexpected(store_.refusal());
  const std::vector<Cancelled> waiting = std::exchange(cancel.waiting, {});
  cancel.decided = kept;
  if (kept) {
    // Its keeper may have been suspended since it was told.
    if (const auto run = latest_run(id); run != runs_.end() && !run->second.gone) runner_->cancel(run->first);
    tree_of_cancelled_is_gone(id);
  } else {
    cancel_is_refused(id);
  }
  base::call_all(waiting, answer);
}

// The task goes on, unless one that it comes after has failed meanwhile.
void Supervisor::cancel_is_refused(TaskId id) {
  const QueuedCancel cancel = std::move(cancelling_.extract(id).mapped());
  if (cancel.otherwise) return fail_queued(id, *cancel.otherwise);
  queue_.unblock(id, Block::cancel);
}

void Supervisor::tree_of_cancelled_is_gone(TaskId id) {
  const auto cancel = cancelling_.find(id);
  if (cancel == cancelling_.end() || !cancel->second.decided) return;
  const auto run = latest_run(id);
  if (run != runs_.end() && !run->second.gone) return;
  cancel->second.decided = false;
  write_queued_cancel(id, Change::Kind::fact);
}

void Supervisor::write_queued_cancel(TaskId id, Change::Kind kind) {
  const QueuedTask task = queue_.find(id).value();
  Progress to{.state = State::cancelled, .attempts = task.attempts, .spared = task.spared};
  to.completed_at = loop_.clock().utc();
  record({.id = id, .agent = task.agent, .to = std::move(to)}, kind, [this, id](bool kept) {
    const std::vector<Cancelled> waiting = std::exchange(cancelling_.at(id).waiting, {});
    tl::expected<void, rpc::Error> answer;
    if (kept) {
      cancelling_.erase(id);
      leave_queue(id);
      end_dependents(id, false);
      retention_.look();
    } else {
      answer = tl::unexpected(store_.refusal());
      cancel_is_refused(id);
    }
    base::call_all(waiting, answer);
  });
}

void Supervisor::cancel_running(RunId id, Run& run, Cancelled cancelled) {
  if (run.decided && !run.concluded && (run.terminated || run.outcome)) return cancelled({});
  run.cancels.push_back(std::move(cancelled));
  // Its keeper may have been suspended since it was told, or before there was this daemon.
  if (run.decided && !run.concluded) runner_->cancel(id);
  // One that is about to be queued again is cancelled when it is.
  if (run.concluded || run.decided || run.deciding) return;
  run.deciding = true;
  run.progress.cancelling = true;
  record({.id = id.task, .agent = run.task.agent, .from = run.progress.state, .to = run.progress},
         Change::Kind::request, [this, id](bool kept) { cancel_decided(id, kept); });
}

void Supervisor::cancel_decided(RunId id, bool kept) {
  const auto found = runs_.find(id);
  if (found == runs_.end()) return;
  Run& run = found->second;
  run.deciding = false;
  run.decided = kept;
  // It ended by itself while the decision was on its way, and is to be tried again: that attempt is cancelled.
  if (run.concluded && run.progress.state == State::queued) return;
  if (!kept) answer_cancels(run, tl::unexpected(store_.refusal()));
  if (run.concluded) return;  // they are answered when its end is on disk
  if (!kept) {
    // It may be this task that fills the disk: it is ended all the same, and that is written when it can be. One that
    // never began is put back as if nobody had asked.
    run.progress.cancelling = !run.never_began;
    if (run.never_began) return put_back(id, run);
    note({.id = id.task, .agent = run.task.agent, .from = run.progress.state, .to = run.progress}, {});
  }
  if (run.never_began) return put_back(id, run);
  runner_->cancel(id);
  if (run.decided && run.terminated) answer_cancels(run, {});
}

void Supervisor::on_terminated(RunId id) {
  const auto found = runs_.find(id);
  if (found == runs_.end()) return;
  Run& run = found->second;
  run.terminated = true;
  // A stop, too, ends tasks; what is not decided is not certain.
  if (run.decided) answer_cancels(run, {});
}

void Supervisor::answer_cancels(Run& run, const tl::expected<void, rpc::Error>& answer) {
  base::call_all(std::exchange(run.cancels, {}), answer);
}

void Supervisor::stop(bool force, std::function<void()> stopped, std::optional<base::Duration> patience) {
  stopping_ = true;
  stopped_ = std::move(stopped);
  if (force) {
    end_running();
  } else if (patience && !ending_) {
    const base::TimePoint deadline = loop_.now() + *patience;
    if (!stop_deadline_ || deadline < *stop_deadline_) {
      stop_deadline_ = deadline;
      stop_timer_ = loop_.after(*patience, [this] { end_running(); });
    }
  }
  check_stopped();
}

void Supervisor::end_running() {
  ending_ = true;
  stop_timer_ = loop_.after(end_patience, [this] {
    for (const auto& [id, run] : runs_) {
      if (!run.gone) log_.error("a task cannot be ended, and is left", {{"task", to_text(id.task)}});
    }
    if (stopped_) leave(std::exchange(stopped_, {}));
  });
  for (auto& [id, run] : runs_) {
    if (run.gone || run.concluded || run.ended_by_stop) continue;
    run.ended_by_stop = !run.progress.cancelling;
    runner_->cancel(id);
  }
}

void Supervisor::check_stopped() {
  if (!stopped_ || slots_in_use() > 0) return;
  leave(std::exchange(stopped_, {}));
}

void Supervisor::leave(std::function<void()> left) {
  stopping_ = true;
  store_.when_idle(lifetime_.bind([this, left = std::move(left)] {
    answer_last_questions();
    left();
  }));
}

void Supervisor::answer_last_questions() {
  for (auto& [id, run] : runs_) {
    // A cancel that is on disk is certain: the next daemon carries it out.
    if (run.decided) answer_cancels(run, {});
  }
  left_ = true;
  output_waiters_.end();
  waiters_.refuse_all(is_stopping());
}

}  // namespace duet::task
