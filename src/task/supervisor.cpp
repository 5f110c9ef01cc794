#include "task/supervisor.h"

#include <algorithm>
#include <deque>
#include <set>
#include <system_error>

#include "duet/base/all_calls.h"
#include "task/failure_text.h"
#include "task/refusal.h"
#include "task/retry.h"
#include "task/task_output.h"

namespace duet::task {
namespace {

constexpr base::Duration second = std::chrono::seconds(1);
constexpr base::Duration limits_pause = std::chrono::seconds(10);

Retention::Limits kept_by(const TaskSettings& settings) {
  return {.days = settings.keep_days, .tasks = settings.keep_tasks, .output_bytes = settings.keep_output};
}

// What is known of an attempt that is over, whatever becomes of the task.
Progress after(RunId run, Progress progress, const Outcome& outcome) {
  progress.cancelling = false;
  progress.attempts = run.attempt;  // its start may not be on disk
  if (outcome.started) {
    progress.started_at = outcome.started->at;
    progress.pid = outcome.started->pid;
  }
  if (outcome.kind == Outcome::Kind::exited) progress.exit_code = outcome.code;
  if (outcome.kind == Outcome::Kind::signalled) progress.signal = process::signal_name(outcome.signal);
  progress.completed_at = outcome.ended_at;
  return progress;
}

}  // namespace

Supervisor::Supervisor(transport::Loop& loop, base::Log& log, Store& store, TaskSettings settings, Context context,
                       OutputFollower::Audience output)
    : loop_(loop),
      log_(log),
      store_(store),
      settings_(std::move(settings)),
      tasks_(context.tasks),
      agents_(settings_, std::move(context.environment), std::move(context.project), std::move(context.provide_for)),
      counts_(store.read([](StoreReader& tasks) { return tasks.counts(); }).value()),
      waiters_(loop, store),
      output_waiters_(loop),
      follower_(
          loop, log, tasks_, [this](RunId run) { return gone_output(run.task); }, with_waiters(std::move(output))),
      retention_(
          loop, log, store, counts_, tasks_, kept_by(settings_),
          [this](TaskId id) {
            return latest_run(id) != runs_.end() || is_needed_somewhere(id) || restarting_.contains(id) ||
                   leaving_.contains(id) || follower_.is_telling(id);
          },
          [this](RunId run) { runner_->remove_output(run); }),
      intake_(
          loop.clock(), store, agents_, store.read([](StoreReader& tasks) { return tasks.newest(); }).value(),
          [this](const std::string& group) { return check_group(group); },
          [this](const Arrival& arrival) { take_arrival(arrival); }),
      chance_(context.seed),
      wakes_(loop,
             [this](TaskId id, Block block) {
               queue_.unblock(id, block);
               schedule();
               if (queue_.contains(id)) shortages_.not_tried(id);
             }),
      gate_(loop, store, settings_, [this] { schedule(); }),
      shortages_(loop.clock()) {
  make_usage_limits();
}

Supervisor::~Supervisor() = default;

KeeperEvents Supervisor::keeper_events() {
  return {.started = [this](RunId id, const Started& started) { on_started(id, started); },
          .output = [this](RunId id, std::uint64_t /*total*/) { follower_.more(id); },
          .terminated = [this](RunId id) { on_terminated(id); },
          .ended = [this](RunId id, const Outcome& outcome) { on_ended(id, outcome); },
          .gone = [this](RunId id) { on_gone(id); },
          .never_began = [this](RunId id, const std::string& why) { on_never_began(id, why); }};
}

void Supervisor::begin(Runner& runner, const std::vector<RunId>& recorded) {
  runner_ = &runner;
  const std::set<RunId> known(recorded.begin(), recorded.end());
  std::vector<ActiveTask> active;
  const auto read = store_.read(
      [&](StoreReader& tasks) { tasks.each_active([&](ActiveTask task) { active.push_back(std::move(task)); }); });
  if (!read) throw rpc::Error(read.error());
  gate_.load();
  std::vector<ActiveTask> queued;
  for (ActiveTask& task : active) {
    if (!adopt(task, known)) queued.push_back(std::move(task));
  }
  for (const RunId run : recorded) linger(run);
  for (const ActiveTask& task : queued) load(task);
  remove_unknown_outputs();
  schedule();
  retention_.look();
  if (lingering_.empty()) retention_.begin();
}

std::optional<GoneOutput> Supervisor::gone_output(TaskId id) const {
  const auto standing = store_.read([id](StoreReader& tasks) { return tasks.standing(id); });
  if (!standing) return std::nullopt;
  return *standing ? (*standing)->gone : GoneOutput{};
}

// A daemon that was killed between erasing a task, or letting go of its output, and removing the files has left them.
void Supervisor::remove_unknown_outputs() {
  const std::vector<RunId> found = runner_->outputs();
  for (const RunId run : std::set<RunId>(found.begin(), found.end())) {
    const auto known = store_.read([run](StoreReader& tasks) { return tasks.standing(run.task); });
    if (!known) continue;
    const bool is_gone = !*known || run.attempt <= (*known)->gone.attempts;
    if (is_gone) {
      runner_->remove_output(run);
    } else if (!runs_.contains(run)) {
      retention_.output_added(run);
    }
  }
}

bool Supervisor::adopt(ActiveTask& task, const std::set<RunId>& recorded) {
  const bool running = task.progress.state == State::running;
  // A queued task whose next attempt has a record: the daemon that began it did not live to write that down.
  const RunId id{task.id, task.progress.attempts + (running ? 0 : 1)};
  if (!running && !recorded.contains(id)) return false;
  Run& run = runs_[id];
  run.adopted = true;
  run.task = {task.priority,        task.retries,          id.attempt - 1,
              task.progress.spared, std::move(task.agent), std::move(task.group)};
  run.progress = std::move(task.progress);
  run.decided = run.progress.cancelling;
  runner_->adopt(id);
  return true;
}

// A run whose end is on disk, but whose tree may not be gone: it keeps its slot, and its task's next attempt waits.
void Supervisor::linger(RunId id) {
  if (runs_.contains(id)) return;
  const tl::expected<Task, rpc::Error> task = find(id.task);
  if (!task) return;  // of no task that is known: the runner ends it
  lingering_.insert(id);
  Run& run = runs_[id];
  run.adopted = true;
  run.concluded = true;
  run.on_disk = true;
  run.progress = task->progress;
  run.task.agent = task->agent;
  run.task.group = task->group;
  runner_->adopt(id);
  runner_->cancel(id);  // its keeper may have been suspended
  const bool is_known = has_ended(task->progress.state) || id.attempt <= task->progress.attempts;
  if (is_known) runner_->acknowledge(id);  // else the store is older than the run
}

// Retention waits for them, or a task that ended first would outlast others because its run is still looked at.
void Supervisor::lingers_no_more(RunId id) {
  if (lingering_.erase(id) > 0 && lingering_.empty()) retention_.begin();
}

void Supervisor::load(const ActiveTask& task) {
  const Progress& progress = task.progress;
  queue_.add(task.id, {task.priority, task.retries, progress.attempts, progress.spared, task.agent, task.group});
  for (auto run = runs_.lower_bound({task.id, 0}); run != runs_.end() && run->first.task == task.id; ++run) {
    queue_.block(task.id, Block::leftovers);
    run->second.blocks_next = true;
    run->second.progress = progress;  // of a task that is restarted in place it was the end
  }
  if (progress.cancelling) {  // That is certain: whoever asked for it was told.
    queue_.block(task.id, Block::cancel);
    cancelling_.try_emplace(task.id);
  }
  wait_for_dependencies(task.id, task.after);
  if (!queue_.contains(task.id)) return;
  if (task.held) queue_.block(task.id, Block::held);
  delay(task.id, task.delay, task.not_before);
  if (progress.retry_at) {
    // The clock on the wall may have been set since.
    const base::Duration most = retry_delay(std::max(progress.attempts - progress.spared, 1U), 1);
    pause(task.id, std::min<base::Duration>(*progress.retry_at - loop_.clock().utc(), most));
  }
  if (progress.cancelling) queued_cancel_decided(task.id, true);
}

void Supervisor::record(Transition transition, Change::Kind kind, std::function<void(bool kept)> done) {
  Change change{.kind = kind, .bytes = 512 + (transition.result ? transition.result->size() : 0)};
  change.done = [this, from = transition.from, to = transition.to.state, done = std::move(done)](bool kept) {
    if (kept) {
      --counts_.at(static_cast<std::size_t>(from));
      ++counts_.at(static_cast<std::size_t>(to));
    }
    if (done) done(kept);
  };
  change.apply = write_of(std::move(transition));
  store_.write(std::move(change));
}

// What has happened; it is on disk sooner or later.
void Supervisor::note(Transition transition, std::function<void()> done) {
  const bool is_end = has_ended(transition.to.state);
  const bool awaited = is_end && (waiters_.is_awaited(transition.id) || queue_.has_dependents(transition.id));
  record(std::move(transition), awaited ? Change::Kind::fact : Change::Kind::patient_fact,
         [done = std::move(done)](bool /*kept*/) {
           if (done) done();
         });
}

void Supervisor::take(const Event& event) {
  if (tells_start(event)) follower_.began(event.task);
  if (!tells_end(event)) return;
  waiters_.take(event.task);
  output_waiters_.take(event.task);
}

void Supervisor::submit(Submission submission, Submitted submitted, Companion companion) {
  if (!intake_.must_wait(submission))
    return submit_now(std::move(submission), std::move(submitted), std::move(companion));
  const bool waits = intake_.wait(submission, lifetime_.bind([this, submission, submitted, companion] {
    submit_now(submission, submitted, companion);
  }));
  if (!waits) submitted(tl::unexpected(unavailable("store", "more waits to be written than it can take")));
}

void Supervisor::submit_now(Submission submission, Submitted submitted, Companion companion) {
  if (stopping_) return submitted(tl::unexpected(is_stopping()));
  if (store_.health().lost) return submitted(tl::unexpected(store_.refusal()));
  const Intake::Capacity room{static_cast<std::size_t>(counts_[0]) + restarting_.size(), settings_.queue_capacity};
  intake_.submit(std::move(submission), room, std::move(submitted), std::move(companion));
}

// It is logged here: there may be tens of thousands a second, and to read their events costs more than to log them.
void Supervisor::take_arrival(const Arrival& arrival) {
  if (log_.enabled(base::Level::info)) {
    log_.info("task accepted", {{"task", to_text(arrival.id)}, {"agent", arrival.task.agent}});
  }
  ++counts_.at(static_cast<std::size_t>(arrival.failed ? State::failed : State::queued));
  if (arrival.failed) return retention_.look();
  queue_.add(arrival.id, arrival.task);
  delay(arrival.id, arrival.delay, arrival.not_before);
  wait_for_dependencies(arrival.id, arrival.after);
  schedule();
}

void Supervisor::wait_for_dependencies(TaskId id, const std::vector<TaskId>& dependencies) {
  for (auto at = dependencies.begin(); at != dependencies.end(); ++at) {
    const auto standing = store_.read([=](StoreReader& tasks) { return tasks.standing(*at); });
    if (!standing) {  // tried again, and held until then
      queue_.block(id, Block::reading);
      auto again = lifetime_.bind([this, id, rest = std::vector(at, dependencies.end())] {
        if (!queue_.is_blocked(id, Block::reading)) return;
        queue_.block(id, Block::after);  // so that it does not start in between
        queue_.unblock(id, Block::reading);
        wait_for_dependencies(id, rest);
        queue_.unblock(id, Block::after);
        schedule();
      });
      return loop_.after(second, std::move(again)).detach();
    }
    // One that is not there any more has succeeded: had it failed, this one would have failed in the same commit.
    if (!*standing || (*standing)->state == State::completed) continue;
    if (has_ended((*standing)->state)) return fail_queued(id, dependency_failure(*at));
    queue_.wait_for(id, *at);
  }
}

void Supervisor::pause(TaskId id, base::Duration time) {
  queue_.block(id, Block::pause);
  wakes_.set(id, Block::pause, time);
}

// A delay is counted by the clock that does not jump; only over a restart by the one on the wall, and then it is not
// longer than it was to be.
void Supervisor::delay(TaskId id, std::optional<std::chrono::milliseconds> time,
                       std::optional<base::UtcTime> not_before) {
  if (!not_before) return;
  const base::UtcTime now = loop_.clock().utc();
  if (*not_before <= now) return;
  queue_.block(id, Block::delay);
  if (time) {
    wakes_.set(id, Block::delay, std::min<base::Duration>(*not_before - now, *time));
  } else {
    wakes_.set_wall(id, Block::delay, *not_before);
  }
}

void Supervisor::leave_queue(TaskId id) {
  queue_.remove(id);
  wakes_.forget(id, Block::pause);
  wakes_.forget(id, Block::delay);
  shortages_.forget(id);
}

// And all that comes after it, in one commit: there may be thousands.
void Supervisor::fail_queued(TaskId id, Failure failure) {
  std::deque<std::pair<TaskId, Failure>> failing{{id, std::move(failure)}};
  for (; !failing.empty(); failing.pop_front()) {
    auto& [next, why] = failing.front();
    const std::optional<QueuedTask> task = queue_.find(next);
    if (!task) continue;  // it comes after two of them
    if (queue_.is_blocked(next, Block::edit)) {
      failing_.insert_or_assign(next, std::move(why));  // the edit may say that it comes after others
      continue;
    }
    const auto cancelling = cancelling_.find(next);
    if (cancelling != cancelling_.end()) {
      cancelling->second.otherwise = std::move(why);
      continue;
    }
    leave_queue(next);
    Progress to{.state = State::failed, .attempts = task->attempts, .spared = task->spared};
    to.completed_at = loop_.clock().utc();
    to.error = std::move(why);
    note({.id = next, .agent = task->agent, .to = std::move(to)}, [this, failed = next] {
      end_dependents(failed, false);  // those that came while this was on its way to the disk
      retention_.look();
    });
    for (const TaskId dependent : queue_.take_dependents(next)) {
      queue_.unblock(dependent, Block::after);
      failing.emplace_back(dependent, dependency_failure(next));
    }
  }
}

void Supervisor::end_dependents(TaskId id, bool succeeded) {
  for (const TaskId dependent : queue_.take_dependents(id)) {
    queue_.unblock(dependent, Block::after);
    if (!succeeded) fail_queued(dependent, dependency_failure(id));
  }
}

void Supervisor::schedule() {
  // Nothing is started while its end could not be written down.
  if (runner_ == nullptr || stopping_ || !store_.is_healthy() || gate_.is_paused()) return;
  const TaskQueue::Doors doors{.group = [this](const std::string& group) { return may_start_in_group(group); },
                               .agent = [this](const std::string& agent) { return may_start_for_agent(agent); }};
  while (queue_.size() > 0 && slots_in_use() < settings_.max_running) {
    const auto next = queue_.take_next(doors);
    if (!next) return;
    start(next->first, next->second);
  }
}

void Supervisor::start(TaskId id, const QueuedTask& task) {
  const RunId run{id, task.attempts + 1};
  const auto body = store_.read([id](StoreReader& tasks) { return tasks.body(id); });
  if (!body) {
    log_.warn("a task cannot be read, and is tried again", {{"task", to_text(id)}, {"reason", body.error().what()}});
    queue_.add(id, task);
    return pause(id, second);
  }
  const auto assignment = assignment_of(run, task.agent, *body);
  if (!assignment) {
    queue_.add(id, task);
    return fail_queued(id, {Reason::spawn, assignment.error()});
  }
  // It was accepted by a daemon that could: it waits for one that can.
  const auto provided = agents_.provide_for(assignment->limits);
  shortages_.set_limits(id, provided ? std::string() : provided.error());
  if (!provided) {
    queue_.add(id, task);
    return pause(id, limits_pause);
  }
  Run& begun = runs_[run];
  begun.task = task;
  begun.progress.attempts = task.attempts;
  begun.progress.spared = task.spared;
  runner_->start(*assignment);
  follower_.add(*runner_, run, true);
}

// Or why there is none.
tl::expected<Assignment, std::string> Supervisor::assignment_of(RunId run, const std::string& agent,
                                                                const std::string& body) const {
  try {
    if (std::optional<Assignment> found = agents_.assignment(run, agent, from_body(body))) return std::move(*found);
    return tl::unexpected(std::string("the settings have no agent of that name any more"));
  } catch (const std::exception&) {
    return tl::unexpected(std::string("what was asked for is damaged in the store"));
  }
}

Supervisor::Runs::iterator Supervisor::latest_run(TaskId id) {
  const auto behind = runs_.lower_bound({id + 1, 0});
  if (behind == runs_.begin() || std::prev(behind)->first.task != id) return runs_.end();
  return std::prev(behind);
}

std::size_t Supervisor::slots_in_use() const {
  return static_cast<std::size_t>(std::ranges::count_if(runs_, [](const auto& run) { return !run.second.gone; }));
}

void Supervisor::on_started(RunId id, const Started& started) {
  const auto found = runs_.find(id);
  if (found == runs_.end() || found->second.concluded) return;
  Run& run = found->second;
  if (run.adopted) {
    follower_.add(*runner_, id, false);
    if (run.progress.state == State::running) follower_.began(id.task);
  }
  if (run.adopted && run.progress.cancelling && !run.deciding) runner_->cancel(id);
  if (!run.adopted) shortages_.one_has_started();
  if (run.progress.state == State::running && run.progress.pid == started.pid) return;
  const State from = run.progress.state;
  run.progress.state = State::running;
  run.progress.attempts = id.attempt;
  run.progress.pid = started.pid;
  run.progress.started_at = started.at;
  run.progress.retry_at = {};
  note({.id = id.task, .agent = run.task.agent, .from = from, .to = run.progress}, {});
}

void Supervisor::on_ended(RunId id, const Outcome& outcome) {
  const auto found = runs_.find(id);
  if (found == runs_.end() || found->second.concluded) return;
  Run& run = found->second;
  run.outcome = outcome;
  if (outcome.kind == Outcome::Kind::not_started) run.ended_by_stop = false;  // there was nothing to end
  // A cancelled task is one when its tree is gone. A cancel that is not decided yet comes too late.
  if (!run.progress.cancelling || run.deciding) conclude(id, run);
}

void Supervisor::on_gone(RunId id) {
  const auto found = runs_.find(id);
  if (found == runs_.end()) return;
  Run& run = found->second;
  run.gone = true;
  if (run.outcome && run.outcome->kind == Outcome::Kind::not_started) follower_.drop(id);
  follower_.gone(id);
  if (!run.concluded) conclude_cancelled(id, run);                 // else it was concluded when its main process ended
  if (run.blocks_next) queue_.unblock(id.task, Block::leftovers);  // if it is to be tried again
  forget_if_over(id);
  retention_.output_added(id);
  lingers_no_more(id);
  tree_of_cancelled_is_gone(id.task);
  output_waiters_.take(id.task);
  schedule();
  check_stopped();
}

void Supervisor::on_never_began(RunId id, const std::string& why) {
  const auto found = runs_.find(id);
  if (found == runs_.end()) return;
  Run& run = found->second;
  if (!why.empty() && !run.adopted) shortages_.met_by(id.task, why);
  run.gone = true;
  run.never_began = true;
  follower_.drop(id);
  if (run.on_disk) {
    if (run.blocks_next) queue_.unblock(id.task, Block::leftovers);
    forget_if_over(id);
    lingers_no_more(id);
    tree_of_cancelled_is_gone(id.task);
  } else if (run.progress.state == State::running) {  // it did begin, and all that told of it is gone
    run.outcome = Outcome{.kind = Outcome::Kind::lost, .ended_at = loop_.clock().utc()};
    if (run.progress.cancelling && !run.deciding) {
      conclude_cancelled(id, run);
    } else {
      conclude(id, run);
    }
  } else if (!run.deciding) {
    put_back(id, run);
  }
  schedule();
  check_stopped();
}

// A run that never began: its task is queued again, unless somebody has cancelled it.
void Supervisor::put_back(RunId id, Run& run) {
  if (run.progress.cancelling) return conclude_cancelled(id, run);
  const bool adopted = run.adopted;
  runs_.erase(id);
  load_again(id.task);  // it may be held since: a removed record is back after a power cut
  if (!adopted) pause(id.task, second);
  schedule();
}

// As it is on disk; if that cannot be read now, it is tried again.
void Supervisor::load_again(TaskId id, const std::vector<TaskId>& needed) {
  const auto task = store_.read([id](StoreReader& tasks) { return tasks.find_active(id); });
  if (!task) {
    auto again = lifetime_.bind([this, id, needed] {
      load_again(id, needed);
      schedule();
    });
    return loop_.after(second, std::move(again)).detach();
  }
  if (*task) load(**task);
  need_no_more(needed);
}

void Supervisor::conclude(RunId id, Run& run) {
  const Outcome& outcome = *run.outcome;
  Progress to = after(id, run.progress, outcome);
  const std::optional<base::UtcTime> held_until = usage_limit_of(id, run);
  const bool succeeded = outcome.kind == Outcome::Kind::exited && outcome.code == 0 && !outcome.timed_out;
  if (run.ended_by_stop) {
    to.state = State::failed;
    to.error = failure_by_stop();
  } else if (held_until) {
    to = {.attempts = id.attempt, .spared = to.spared + 1};
  } else if (succeeded) {
    to.state = State::completed;
  } else if (id.attempt - to.spared <= run.task.retries) {
    run.pause = retry_delay(id.attempt - to.spared, std::uniform_real_distribution(0.0, 1.0)(chance_));
    to = {.attempts = id.attempt, .spared = to.spared, .retry_at = loop_.clock().utc() + run.pause};
  } else {
    to.state = State::failed;
    to.error = failure_of(outcome);
  }
  write_end(id, run, std::move(to), run.ended_by_stop ? std::nullopt : held_until);
}

void Supervisor::conclude_cancelled(RunId id, Run& run) {
  Progress to = run.outcome ? after(id, run.progress, *run.outcome) : run.progress;
  to.state = State::cancelled;
  to.cancelling = false;
  to.completed_at = loop_.clock().utc();
  write_end(id, run, std::move(to));
}

void Supervisor::write_end(RunId id, Run& run, Progress to, std::optional<base::UtcTime> held_until) {
  const State from = run.progress.state;
  run.concluded = true;
  run.progress = to;
  run.task.spared = to.spared;
  Transition end{.id = id.task, .agent = run.task.agent, .from = from, .to = std::move(to)};
  if (held_until) {
    QueueGate::Hold hold{.until = *held_until, .since = loop_.clock().utc(), .task = id.task};
    hold.text = to_text(id.task) + " has met a usage limit: " + failure_of(*run.outcome).message;
    end.is_news = true;
    end.also = gate_.hold(run.task.agent, std::move(hold));
  }
  if (has_ended(end.to.state) && run.outcome && run.outcome->started) end.result = std::move(run.outcome->result);
  if (run.outcome) end.usage = run.outcome->usage;
  note(std::move(end), [this, id] { end_is_on_disk(id); });
}

void Supervisor::end_is_on_disk(RunId id) {
  Run& run = runs_.at(id);
  run.on_disk = true;
  if (!run.never_began) runner_->acknowledge(id);
  if (run.progress.state == State::queued) {
    QueuedTask again = run.task;
    again.attempts = id.attempt;
    queue_.add(id.task, again);
    if (run.pause > base::Duration::zero()) pause(id.task, run.pause);
    run.blocks_next = !run.gone;
    if (run.blocks_next) queue_.block(id.task, Block::leftovers);
    for (Cancelled& cancelled : std::exchange(run.cancels, {})) cancel_queued(id.task, std::move(cancelled));
  }
  const State state = run.progress.state;
  const std::vector<Cancelled> cancels = std::exchange(run.cancels, {});
  tl::expected<void, rpc::Error> answer;
  if (state != State::cancelled) answer = tl::unexpected(not_cancellable(id.task, state));
  base::AllCalls calls;
  forget_if_over(id);
  if (has_ended(state)) shortages_.forget(id.task);
  if (has_ended(state)) calls.make([&] { end_dependents(id.task, state == State::completed); });
  if (has_ended(state)) calls.make([&] { retention_.look(); });
  calls.make([&] { schedule(); });
  calls.make([&] { base::call_all(cancels, answer); });
  calls.check();
}

void Supervisor::forget_if_over(RunId id) {
  const auto found = runs_.find(id);
  if (found != runs_.end() && found->second.gone && found->second.on_disk) runs_.erase(found);
}

std::optional<TaskId> Supervisor::task_of_keeper(pid_t keeper) {
  const std::optional<RunId> run = runner_ == nullptr ? std::nullopt : runner_->run_of_keeper(keeper);
  return run ? std::optional(run->task) : std::nullopt;
}

std::vector<TaskId> Supervisor::running() const {
  std::vector<TaskId> ids;
  for (const auto& [id, run] : runs_) {
    if (run.progress.state == State::running) ids.push_back(id.task);
  }
  return ids;
}

std::optional<Queue::Ticket> Supervisor::wait(TaskId id, std::optional<base::Duration> limit, const FoundTask& waiter) {
  const tl::expected<Task, rpc::Error> task = find(id);
  const bool is_over = !task || has_ended(task->progress.state) || limit == base::Duration::zero();
  if (!is_over && !left_) return waiters_.wait(id, limit, waiter);
  waiter(is_over ? task : tl::unexpected(is_stopping()));
  return std::nullopt;
}

OutputFollower::Audience Supervisor::with_waiters(OutputFollower::Audience audience) {
  return {.wants = [this, wants = std::move(audience.wants)](
                       TaskId id) { return output_waiters_.is_awaited(id) || wants(id); },
          .tell =
              [this, tell = std::move(audience.tell)](TaskId id, std::uint64_t offset, Stream stream,
                                                      std::string_view text) {
                tell(id, offset, stream, text);
                output_waiters_.take(id);
              },
          .done = [this] { retention_.look(); }};
}

// What is written before the follower is there is not told, but is there to be read: hence the first look.
std::optional<Queue::Ticket> Supervisor::await_output(TaskId id, base::Duration limit, LookAtOutput look) {
  const Ticket ticket = output_waiters_.wait(id, limit, std::move(look));
  follower_.audience_changed();
  output_waiters_.take(id);
  return output_waiters_.is_waiting(ticket) ? std::optional(ticket) : std::nullopt;
}

tl::expected<Supervisor::Output, rpc::Error> Supervisor::output(TaskId id, std::uint64_t offset, std::size_t limit,
                                                                std::optional<Stream> stream) {
  const auto standing = store_.read([id](StoreReader& tasks) { return tasks.standing(id); });
  if (!standing) return tl::unexpected(standing.error());
  if (!*standing) return tl::unexpected(unknown_task(to_text(id)));
  const auto run = latest_run(id);
  const std::uint32_t attempts = run == runs_.end() ? (*standing)->attempts : run->first.attempt;
  const bool over = has_ended((*standing)->state) && (run == runs_.end() || run->second.gone);
  try {
    Output output{.piece = read_task_output(tasks_, id, attempts, offset, limit, stream, (*standing)->gone)};
    output.done = over && output.piece.next >= output.piece.total;
    return output;
  } catch (const std::system_error& error) {
    log_.warn("output of a task cannot be read", {{"task", to_text(id)}, {"reason", error.code().message()}});
    return tl::unexpected(unavailable("output", "the output of the task cannot be read"));
  }
}

void Supervisor::change_settings(TaskSettings settings) {
  gate_.change_settings(settings);
  settings_ = std::move(settings);
  agents_.change_settings(settings_);
  make_usage_limits();
  retention_.set_limits(kept_by(settings_));
  schedule();
}

}  // namespace duet::task
