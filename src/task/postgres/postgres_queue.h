#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "duet/base/lifetime.h"
#include "duet/base/log.h"
#include "duet/transport/loop.h"
#include "task/cluster_settings.h"
#include "task/journal.h"
#include "task/output_follower.h"
#include "task/output_waiters.h"
#include "task/postgres/attempts.h"
#include "task/postgres/changes.h"
#include "task/postgres/event_reader.h"
#include "task/postgres/line.h"
#include "task/postgres/membership.h"
#include "task/postgres/remote_output.h"
#include "task/postgres/submits.h"
#include "task/postgres/under_way.h"
#include "task/queue.h"
#include "task/store.h"

namespace duet::task::postgres {

/// The queue that several machines share, as this daemon sees it: one schema of a PostgreSQL database.
///
/// The database holds the truth; nothing is decided here that its functions decide. What is kept of it here is a copy
/// that may be a moment old. This daemon's own store keeps what is its own: what its rules know, and the events that
/// they tell until the database has them. For the loop's thread only; line, store, journal and runner outlive it.
class PostgresQueue final : public Queue {
 public:
  struct Options {
    int tasks = -1;                             ///< the folder with the outputs
    std::function<std::string()> project = {};  ///< where tasks run
    process::Environment environment = {};      ///< tasks get
    Agents::ProvideFor provide_for = {};
    std::uint32_t seed = 0;
    std::string place = {};  ///< of the state folder, see WorkerMemory
    std::string version = {};
    std::vector<std::string> limits = {};  ///< that can be kept here: memory, processes, cpu
    std::function<base::Duration()> boottime = {};
    std::function<std::string()> read_memory = {};
    std::function<bool(const std::string&)> write_memory = {};  ///< false: it could not be
    std::function<void(base::Duration deadline, base::Duration lease)> extend = {};
  };
  struct Tells {
    OutputFollower::Audience output = {};
    std::function<void(const std::string& problem)> problem = {};  ///< empty: none any more
    std::function<void()> journal_began_anew = {};
    std::function<void(const Task&)> starts = {};  ///< of a rule's task, on this machine
  };

  PostgresQueue(transport::Loop& loop, base::Log& log, Line& line, Store& store, Journal& journal,
                TaskSettings settings, ClusterSettings cluster, Options options, Tells tells);
  ~PostgresQueue() override;

  /// Connects.
  void start();
  bool is_joined() const { return membership_.is_joined(); }
  /// By a daemon before, here: what it left running may still be ours.
  bool was_joined() const { return membership_.was_member(); }
  /// Calls at once, or when it has joined for the first time.
  void when_joined(std::function<void()> call);
  /// Why it cannot join, if that will not pass by itself; or what is wrong now.
  std::string trouble() const { return membership_.refusal().empty() ? problem_ : membership_.refusal(); }
  /// The project's folder is a copy of another worker's.
  bool is_copy() const { return membership_.is_copy(); }
  bool is_refused() const { return !membership_.refusal().empty(); }
  /// What people are told while the database is connected and does not answer; empty: it does.
  std::string delay() const;
  KeeperEvents keeper_events();
  void begin(Runner& runner, const std::vector<RunId>& recorded);
  /// Somebody here wants to hear of events: clients, or rules.
  void want_events(bool wanted);
  void change_cluster(ClusterSettings cluster);
  /// For `cluster.status`.
  void cluster_status(const std::function<void(const tl::expected<boost::json::object, rpc::Error>&)>& told);

  using Queue::submit;
  void submit(Submission submission, Submitted submitted, Companion companion) override;
  tl::expected<std::string, rpc::Error> choose_agent(const Submission& submission) const override;
  void cancel(TaskId id, Cancelled cancelled) override;
  void set_held(TaskId id, bool held, const Changed& changed) override;
  void edit(TaskId id, Edit edit, const FoundTask& edited) override;
  void restart(TaskId id, Submitted submitted, std::string by) override;
  void restart_in_place(TaskId id, Submitted submitted) override;
  void remove(std::vector<TaskId> ids, Removed removed) override;
  void clean(std::optional<State> state, std::optional<std::chrono::milliseconds> older, Removed removed) override;
  void set_paused(const std::optional<std::string>& group, bool paused, const Paused& done) override;
  void release_agent(const std::string& agent, const Changed& released) override;

  void find(TaskId id, const FoundTask& found) override;
  void list(const ListQuery& query, const std::function<bool(const Task&)>& each,
            const std::function<void(const std::optional<rpc::Error>&)>& done) override;
  void look(const Stood& stood) override;
  void explain(TaskId id, const std::function<void(const tl::expected<Explanation, rpc::Error>&)>& explained) override;
  std::optional<Ticket> wait(TaskId id, std::optional<base::Duration> limit, const FoundTask& waiter) override;
  void stop_waiting(const Ticket& ticket) override;
  void read_output(const OutputQuestion& question, const GotOutput& got) override;
  std::optional<Ticket> await_output(TaskId id, base::Duration limit, LookAtOutput look) override;
  void stop_awaiting_output(const Ticket& ticket) override;

  void give_handle(TaskId id, const Handle& given) override;
  Companion handle_for_new_task() override { return {}; }
  void find_handle(const std::string& handle,
                   const std::function<void(const tl::expected<TaskId, rpc::Error>&)>& found) override;
  void after_changes(std::function<void()> call) override { submits_.after(std::move(call)); }

  bool is_shared() const override { return true; }
  std::string numbers() const override { return membership_.queue(); }
  tl::expected<std::optional<Task>, rpc::Error> known(TaskId id) override;
  void events_after(std::uint64_t seq, std::size_t limit, const Told& told) override;
  tl::expected<std::uint64_t, rpc::Error> newest_event() override;

  const StateCounts& counts() const override { return counts_; }
  const TaskSettings& settings() const override { return settings_; }
  std::size_t slots() const override { return slots_.value_or(settings_.max_running); }
  void change_settings(TaskSettings settings) override;
  const Agents& agents() const override { return agents_; }
  tl::expected<void, std::string> provide_for(const process::Limits& limits) const override {
    return agents_.provide_for(limits);
  }
  std::string shortage() const override { return attempts_.shortages().text(); }
  void take(const Event& event) override;
  void output_audience_changed() override;
  std::optional<TaskId> task_of_keeper(pid_t keeper) override { return attempts_.task_of_keeper(keeper); }
  /// Before it has joined, nobody knows whether it has.
  bool has_runs() const override { return !attempts_.is_empty() || !membership_.is_joined(); }
  std::vector<TaskId> running() const override { return attempts_.running(); }

  void close() override;
  bool is_stopping_now() const override { return stopping_; }
  void stop(bool force, std::function<void()> stopped, std::optional<base::Duration> patience) override;
  void leave(std::function<void()> left) override;

 private:
  using Object = boost::json::object;
  using FoundObject = tl::expected<Object, rpc::Error>;
  using Asked = std::function<void(const FoundObject&)>;
  /// `again`: what is told may be our own doing, whose answer was lost.
  using Altered = std::function<void(const FoundObject&, bool again)>;
  struct Waiter {
    FoundTask waiter;
    transport::Loop::Timer timer;
  };

  Line::Events line_events();
  Membership::Calls membership_calls();
  Attempts::Calls attempts_calls();
  WorkerOffer offer() const;
  void tell_start(TaskId id, std::string_view body);
  static rpc::Error error_of(const Fault& fault);
  void ask_rows(std::string_view function, std::vector<Argument> arguments, Line::Done done);
  /// Asks a function that gives JSON.
  void ask(std::string_view function, std::vector<Argument> arguments, const Asked& asked);
  /// The same of one that changes something; asked again until its answer is known.
  void alter(std::string_view function, std::vector<Argument> arguments, const Altered& altered);
  /// The same of one that must not be done twice: a lost answer is none.
  void once(std::string_view function, std::vector<Argument> arguments, const Asked& asked);
  rpc::Error not_joined() const;

  // Submitting: postgres_submit.cpp.
  std::vector<std::string> limit_labels() const;
  std::optional<rpc::Error> add_limits(const Submission& submission, Submits::Entry& entry) const;
  tl::expected<Submits::Entry, rpc::Error> entry_of(Submission& submission) const;
  std::optional<rpc::Error> check_group(const std::string& group) const;
  bool is_somebody_known_for(const Submission& submission) const;
  bool is_limit_known(const std::string& name) const;
  void submit_now(Submission submission, base::TimePoint came, const Submitted& submitted, const Companion& companion);
  void taken(const Submission& submission, const std::string& asked, const Submits::Taken& task,
             const Submitted& submitted, const Companion& companion);

  void pause_now(const std::optional<std::string>& group, bool paused, const Paused& done);
  void recall_pauses(StoreReader& reader);
  void take_pauses();
  void remember_pauses(std::set<std::string> paused);
  std::vector<WaitReason> reasons_of(TaskId id, const Object& facts) const;
  void explain_doors(const Object& facts, std::vector<WaitReason>& reasons) const;
  void edit_as_it_is(TaskId id, const Edit& edit, const FoundTask& edited, int tries);
  void edit_queued(TaskId id, const Edit& edit, const Object& request, const FoundTask& edited, int tries);
  void edit_again(TaskId id, const Edit& edit, const std::string& body, const FoundTask& edited, int tries);
  void find_edited(TaskId id, const std::string& body, const rpc::Error& refusal, const FoundTask& edited);
  void remove_some(std::vector<TaskId> ids, std::optional<State> state, std::optional<std::chrono::milliseconds> older,
                   Removal removal, Removed removed);
  static void take_removal(const Object& answer, bool again, Removal& removal);

  // Output: postgres_output.cpp.
  std::pair<std::int64_t, bool> server_now() const;
  void read_remote(const OutputQuestion& question, const Object& state, const GotOutput& got);
  bool is_ours(RunId run) const;
  bool has_all_output(TaskId id, const Object& state) const;
  void watch_output();
  void look_at_output();
  void tell_own_output();
  void tell_output_of(RunId run);
  std::optional<GoneOutput> output_before(RunId run);
  void finish_remote_output(const std::vector<Event>& events, std::function<void()> then);

  // Files here of tasks that are gone: postgres_output.cpp.
  void tidy_in(base::Duration wait);
  void tidy();
  void remove_outputs(std::vector<RunId> runs, const std::set<TaskId>& known);

  void look_at_waiters();
  void answer_waiters(TaskId id);
  void tell_last(const tl::expected<Task, rpc::Error>& task, std::function<void()> tell);
  void wake_up(const std::string& channel, const std::string& payload);
  void count_soon();
  void take_counts(const Object& counts);
  /// Ours, whether it is trusted or not.
  bool has_agent(const std::string& name) const;
  void forward_events(std::vector<Event> events);
  /// Those behind this one.
  void forward_from_store(std::uint64_t told);
  void forward();
  void bound_stop();
  void check_stopped();
  void settle(int rounds, const std::function<void()>& then);
  void end_now();

  transport::Loop& loop_;
  base::Log& log_;
  Line& line_;
  Store& store_;
  Journal& journal_;
  TaskSettings settings_;
  ClusterSettings cluster_;
  Options options_;
  Tells tells_;
  Agents agents_;
  std::string problem_;
  std::vector<std::function<void()>> when_joined_;
  StateCounts counts_ = {};
  std::optional<std::size_t> slots_;  // of all workers that are heard of
  Membership membership_;
  Submits submits_;
  Changes changes_;
  Attempts attempts_;
  EventReader events_;
  Runner* runner_ = nullptr;
  OutputWaiters output_waiters_;
  OutputFollower follower_;
  std::map<Ticket, Waiter> waiters_;
  std::uint64_t last_ticket_ = 0;
  RemoteOutput remote_output_;
  transport::Loop::Timer output_timer_;
  std::set<RunId> asking_before_;  // where their output begins
  std::set<RunId> began_early_;    // their output is told, and perhaps not yet that they have started
  transport::Loop::Timer count_timer_;
  transport::Loop::Timer tidy_timer_;
  transport::Loop::Timer wait_timer_;
  transport::Loop::Timer forward_timer_;
  bool wanted_here_ = false;  // events, by clients or rules
  UnderWay counting_;
  // Events of this daemon that the database does not have yet.
  std::vector<Event> untold_;
  bool more_untold_ = false;  // the store has more of them
  UnderWay telling_;
  // Groups that the settings pause, as far as the database was told; none: no daemon here has told of any.
  std::optional<std::set<std::string>> told_pauses_;
  UnderWay telling_pauses_;
  transport::Loop::Timer pauses_timer_;  // when they are told again

  bool stopping_ = false;
  bool drains_ = false;  // it stops when what runs has ended
  bool left_ = false;
  std::function<void()> stopped_;
  transport::Loop::Timer stop_timer_;
  base::Lifetime lifetime_;
};

}  // namespace duet::task::postgres
