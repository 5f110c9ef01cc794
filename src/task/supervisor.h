#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <tl/expected.hpp>

#include "duet/base/lifetime.h"
#include "duet/base/log.h"
#include "duet/rpc/error.h"
#include "duet/transport/loop.h"
#include "task/agents.h"
#include "task/end_waiters.h"
#include "task/explanation.h"
#include "task/handles.h"
#include "task/intake.h"
#include "task/keeper.h"
#include "task/output_follower.h"
#include "task/output_waiters.h"
#include "task/queue.h"
#include "task/queue_gate.h"
#include "task/retention.h"
#include "task/runner.h"
#include "task/shortages.h"
#include "task/store.h"
#include "task/task.h"
#include "task/task_queue.h"
#include "task/transition.h"
#include "task/usage_limit.h"
#include "task/wake_times.h"

namespace duet::task {

/// Where tasks run, and what they inherit.
struct Context {
  int tasks = -1;                             ///< the folder with the outputs; the caller's, outlives the supervisor
  std::function<std::string()> project = {};  ///< where they run unless they say otherwise; it may be moved
  process::Environment environment = {};      ///< they all get
  std::uint32_t seed = 0;                     ///< of the chance in pauses before retries
  Agents::ProvideFor provide_for = {};        ///< limits; without it none can be kept
};

/// The queue of one machine: takes tasks, queues them, has them run and sees to their end.
///
/// Whatever it accepts is on disk before it says so. It tells of nothing by itself: each change is written with its
/// event, and the journal tells. At most `max_running` tasks run at once, and no more of a group or an agent than those
/// may have; TaskQueue has the order. A slot is free when no process of its task is left. It does not start processes:
/// that is the Runner's. What it cannot do it says by value; only its construction and begin() throw. For the loop's
/// thread only; the store and the runner outlive it.
class Supervisor final : public Queue {
 public:
  using Queue::submit;

  static constexpr base::Duration stop_patience = std::chrono::seconds(15);
  /// From when running tasks are told to end until the daemon leaves without them.
  static constexpr base::Duration end_patience = std::chrono::seconds(10);

  Supervisor(transport::Loop& loop, base::Log& log, Store& store, TaskSettings settings, Context context,
             OutputFollower::Audience output);
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;
  ~Supervisor() override;

  /// What the runner has to tell; before begin().
  KeeperEvents keeper_events();
  /// Adopts what an earlier daemon began, and starts working. `recorded` are the runs that have left a record. Throws
  /// rpc::Error if the queue cannot be read; then nothing was touched. Throws std::system_error if the outputs cannot
  /// be listed.
  void begin(Runner& runner, const std::vector<RunId>& recorded);

  void submit(Submission submission, Submitted submitted, Companion companion) override;
  tl::expected<std::string, rpc::Error> choose_agent(const Submission& submission) const override {
    return agents_.choose(submission);
  }
  tl::expected<void, std::string> provide_for(const process::Limits& limits) const override {
    return agents_.provide_for(limits);
  }
  /// Answers when the decision is on disk and, if it runs, it was told to end; or that there is no such task, or that
  /// it has ended.
  void cancel(TaskId id, Cancelled cancelled) override;
  void set_held(TaskId id, bool held, const Changed& changed) override;
  /// Answers with the task when that is on disk.
  void edit(TaskId id, Edit edit, const FoundTask& edited) override;
  void restart(TaskId id, Submitted submitted, std::string by) override;
  void restart(TaskId id, Submitted submitted) { restart(id, std::move(submitted), {}); }
  void restart_in_place(TaskId id, Submitted submitted) override;
  void remove(std::vector<TaskId> ids, Removed removed) override;
  void clean(std::optional<State> state, std::optional<std::chrono::milliseconds> older, Removed removed) override;
  void set_paused(const std::optional<std::string>& group, bool paused, const Paused& done) override;
  void release_agent(const std::string& agent, const Changed& released) override;

  /// Pauses and holds.
  QueueGate& gate() { return gate_; }
  const QueueGate& gate() const { return gate_; }
  const TaskQueue& queue() const { return queue_; }
  const Agents& agents() const override { return agents_; }
  std::size_t running_in_group(std::string_view group) const;
  std::size_t running_for_agent(std::string_view agent) const;
  bool is_stopping_now() const override { return stopping_; }
  /// Those of the settings, and those that queued tasks are in.
  std::vector<std::string> groups() const;
  /// None if tasks may be in this group.
  std::optional<rpc::Error> check_group(const std::string& group) const;
  tl::expected<Explanation, rpc::Error> explain(TaskId id);
  void explain(TaskId id, const std::function<void(const tl::expected<Explanation, rpc::Error>&)>& explained) override {
    explained(explain(id));
  }
  void look(const Stood& stood) override;

  void take(const Event& event) override;

  std::optional<TaskId> task_of_keeper(pid_t keeper) override;
  bool has_runs() const override { return !runs_.empty(); }

  std::string shortage() const override { return shortages_.text(); }
  const Shortages& shortages() const { return shortages_; }

  /// As it is on disk.
  tl::expected<Task, rpc::Error> find(TaskId id) { return find_task(store_, id); }
  void find(TaskId id, const FoundTask& found) override { found(find(id)); }
  void list(const ListQuery& query, const std::function<bool(const Task&)>& each,
            const std::function<void(const std::optional<rpc::Error>&)>& done) override;
  std::vector<TaskId> running() const override;
  std::optional<Ticket> wait(TaskId id, std::optional<base::Duration> limit, const FoundTask& waiter) override;
  void stop_waiting(const Ticket& ticket) override { waiters_.stop_waiting(ticket); }

  tl::expected<Output, rpc::Error> output(TaskId id, std::uint64_t offset, std::size_t limit,
                                          std::optional<Stream> stream = {});
  void read_output(const OutputQuestion& question, const GotOutput& got) override {
    got(output(question.id, question.offset, question.limit, question.stream));
  }
  void output_audience_changed() override { follower_.audience_changed(); }
  std::optional<Ticket> await_output(TaskId id, base::Duration limit, LookAtOutput look) override;
  void stop_awaiting_output(const Ticket& ticket) override { output_waiters_.stop_waiting(ticket); }

  void give_handle(TaskId id, const Handle& given) override { handles_.give(id, given); }
  Companion handle_for_new_task() override { return Handles::for_new_task(); }
  void find_handle(const std::string& handle,
                   const std::function<void(const tl::expected<TaskId, rpc::Error>&)>& found) override {
    found(handles_.find(handle));
  }
  void after_changes(std::function<void()> call) override { store_.after_changes(std::move(call)); }

  bool is_shared() const override { return false; }
  std::string numbers() const override { return {}; }
  tl::expected<std::optional<Task>, rpc::Error> known(TaskId id) override;
  void events_after(std::uint64_t seq, std::size_t limit, const Told& told) override;
  tl::expected<std::uint64_t, rpc::Error> newest_event() override;

  const StateCounts& counts() const override { return counts_; }
  const TaskSettings& settings() const override { return settings_; }
  void change_settings(TaskSettings settings) override;
  /// The store works again: what waited for that may start.
  void store_recovered() { schedule(); }

  void close() override { stopping_ = true; }
  /// Takes no new work. Running tasks may go on for `patience` (none: for ever), or not at all if forced, and are ended
  /// then. Calls when all
  /// are gone and what became of them is on disk, if it can be written; or when `end_patience` is over, and leaves what
  /// cannot be ended to the next daemon. Queued ones stay queued. May be called again. Who waits for the end of one
  /// that has not ended by then is refused.
  void stop(bool force, std::function<void()> stopped, std::optional<base::Duration> patience) override;
  void stop(bool force, std::function<void()> stopped) { stop(force, std::move(stopped), stop_patience); }
  void leave(std::function<void()> left) override;

 private:
  /// A task that was given to the runner: from then until no process of it is left and its end is on disk.
  struct Run {
    QueuedTask task;
    Progress progress = {};  // as it was last written, or is being written
    bool adopted = false;
    bool deciding = false;    // a cancel is on its way to the disk
    bool decided = false;     // and there
    bool terminated = false;  // it was told to end, for that cancel
    bool ended_by_stop = false;
    bool concluded = false;  // its end is on its way to the disk
    bool on_disk = false;    // and there
    bool never_began = false;
    bool gone = false;
    bool blocks_next = false;   // the task is queued again, and waits until this one is gone
    base::Duration pause = {};  // before the next attempt
    std::optional<Outcome> outcome = {};
    std::vector<Cancelled> cancels = {};
  };
  using Runs = std::map<RunId, Run>;
  /// A cancel of a queued task that is on its way to the disk.
  struct QueuedCancel {
    std::vector<Cancelled> waiting = {};
    std::optional<Failure> otherwise = {};  // what becomes of the task if the cancel is refused
    bool decided = false;                   // it is on disk that the task is to be cancelled when its tree is gone
  };

  void record(Transition transition, Change::Kind kind, std::function<void(bool kept)> done);
  void note(Transition transition, std::function<void()> done);
  void submit_now(Submission submission, Submitted submitted, Companion companion);
  void take_arrival(const Arrival& arrival);
  bool adopt(ActiveTask& task, const std::set<RunId>& recorded);
  void linger(RunId id);
  void lingers_no_more(RunId id);
  void load(const ActiveTask& task);
  void load_again(TaskId id, const std::vector<TaskId>& needed = {});
  void remove_unknown_outputs();
  std::optional<GoneOutput> gone_output(TaskId id) const;
  OutputFollower::Audience with_waiters(OutputFollower::Audience audience);
  void wait_for_dependencies(TaskId id, const std::vector<TaskId>& dependencies);
  void pause(TaskId id, base::Duration time);
  void delay(TaskId id, std::optional<std::chrono::milliseconds> time, std::optional<base::UtcTime> not_before);
  void leave_queue(TaskId id);
  void fail_queued(TaskId id, Failure failure);
  void end_dependents(TaskId id, bool succeeded);

  void schedule();
  bool may_start_in_group(const std::string& group) const;
  bool may_start_for_agent(const std::string& agent) const;
  std::optional<base::UtcTime> usage_limit_of(RunId id, const Run& run) const;
  std::string end_of_output(RunId id, const Outcome& outcome) const;
  void make_usage_limits();
  void start(TaskId id, const QueuedTask& task);
  tl::expected<Assignment, std::string> assignment_of(RunId run, const std::string& agent,
                                                      const std::string& body) const;
  Runs::iterator latest_run(TaskId id);
  std::size_t slots_in_use() const;

  void on_started(RunId id, const Started& started);
  void on_terminated(RunId id);
  void on_ended(RunId id, const Outcome& outcome);
  void on_gone(RunId id);
  void on_never_began(RunId id, const std::string& why);

  /// Calls `act` if the task is queued, now or when what is on its way to the disk is there; else `refuse`.
  void when_queued(TaskId id, const std::function<void()>& act, const std::function<void(const rpc::Error&)>& refuse);
  bool is_in_queue(TaskId id) const { return queue_.contains(id) && !cancelling_.contains(id); }
  rpc::Error not_queued(TaskId id);
  void write_held(TaskId id, bool held, Changed changed);
  tl::expected<void, rpc::Error> check_edit(TaskId id, const Edit& edit, const std::string& agent);
  std::optional<rpc::Error> check_dependencies(TaskId id, const std::vector<TaskId>& after);
  tl::expected<Edited, rpc::Error> edited_task(TaskId id, const Edit& edit);
  void write_edit(TaskId id, const Edit& edit, FoundTask edited);
  void fail_after_edit(TaskId id, bool comes_after_others);
  void edit_is_on_disk(const Edited& edited, const Edit& edit, const std::vector<TaskId>& no_longer_after);
  void need(const std::vector<TaskId>& ids) { needed_.insert(ids.begin(), ids.end()); }
  void need_no_more(const std::vector<TaskId>& ids);
  std::optional<TaskId> missing_dependency(const std::vector<TaskId>& after);
  void requeue(const Task& task, const std::vector<TaskId>& after, Submitted submitted);
  void wait_again_for(TaskId id);
  std::optional<Removal::Kept> why_kept(TaskId id, const std::map<TaskId, TaskId>& needed);
  std::vector<EndedTask> take_removable(std::vector<TaskId>& ids, const std::map<TaskId, TaskId>& needed,
                                        Removal& removal);
  void remove_some(std::vector<TaskId> ids, Removal removal, Removed removed);
  bool is_needed_somewhere(TaskId id) const;
  void explain_blocks(TaskId id, const ActiveTask& task, std::vector<WaitReason>& reasons);
  void explain_pause(TaskId id, std::vector<WaitReason>& reasons) const;
  void explain_dependencies(TaskId id, const ActiveTask& task, std::vector<WaitReason>& reasons);
  void explain_doors(const ActiveTask& task, std::vector<WaitReason>& reasons) const;
  void explain_agent(const ActiveTask& task, std::vector<WaitReason>& reasons) const;
  void explain_turn(TaskId id, std::vector<WaitReason>& reasons) const;

  bool cancel_known(TaskId id, const Cancelled& cancelled);
  void refuse_cancel(TaskId id, const Cancelled& cancelled);
  void cancel_queued(TaskId id, Cancelled cancelled);
  void write_queued_cancel(TaskId id, Change::Kind kind);
  void tree_of_cancelled_is_gone(TaskId id);
  void queued_cancel_decided(TaskId id, bool kept);
  void cancel_is_refused(TaskId id);
  void cancel_running(RunId id, Run& run, Cancelled cancelled);
  void cancel_decided(RunId id, bool kept);
  void conclude(RunId id, Run& run);
  void conclude_cancelled(RunId id, Run& run);
  void write_end(RunId id, Run& run, Progress to, std::optional<base::UtcTime> held_until = {});
  void end_is_on_disk(RunId id);
  void put_back(RunId id, Run& run);
  static void answer_cancels(Run& run, const tl::expected<void, rpc::Error>& answer);
  void forget_if_over(RunId id);
  void end_running();
  void check_stopped();
  void answer_last_questions();

  transport::Loop& loop_;
  base::Log& log_;
  Store& store_;
  TaskSettings settings_;
  int tasks_;
  Agents agents_;
  StateCounts counts_;
  EndWaiters waiters_;
  OutputWaiters output_waiters_;
  OutputFollower follower_;
  Retention retention_;
  Intake intake_;
  Handles handles_{store_};
  Runner* runner_ = nullptr;
  std::mt19937 chance_;

  TaskQueue queue_;
  WakeTimes wakes_;
  QueueGate gate_;
  std::map<std::string, UsageLimit, std::less<>> usage_limits_;  // of agents
  std::map<TaskId, QueuedCancel> cancelling_;
  std::set<TaskId> holding_;           // a hold or release of it is on its way to the disk
  std::size_t editing_ = 0;            // edits on their way to the disk
  std::map<TaskId, Failure> failing_;  // when its edit is on disk, unless that says that it comes after others
  std::multiset<TaskId> needed_;       // by an edit or a restart that is on its way to the disk
  std::set<TaskId> restarting_;        // queued again, on its way to the disk
  std::set<RunId> lingering_;          // those found at the start whose tasks have ended
  std::set<TaskId> leaving_;           // removed, on its way to the disk
  Runs runs_;
  Shortages shortages_;

  bool stopping_ = false;
  bool left_ = false;  // nobody will be answered any more
  std::function<void()> stopped_;
  bool ending_ = false;  // running tasks were told to end, for a stop
  std::optional<base::TimePoint> stop_deadline_;
  transport::Loop::Timer stop_timer_;
  base::Lifetime lifetime_;
};

}  // namespace duet::task
