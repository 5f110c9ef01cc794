#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tl/expected.hpp>

#include "duet/base/clock.h"
#include "duet/rpc/error.h"
#include "process/cgroup.h"
#include "task/agents.h"
#include "task/explanation.h"
#include "task/output.h"
#include "task/store_tables.h"
#include "task/submitted.h"
#include "task/task.h"

namespace duet::task {

/// A daemon's tasks, for those who ask about them: methods, rules, and the daemon itself.
///
/// One stands on the project's own SQLite store (Supervisor), one on a PostgreSQL database that other machines share
/// (postgres::PostgresQueue). Answers may come later; those of SQLite come within the call wherever nothing has to be
/// written first. What cannot be done is said by value. For the loop's thread only.
class Queue {
 public:
  using Submitted = task::Submitted;
  using Cancelled = std::function<void(const tl::expected<void, rpc::Error>&)>;
  /// Whether that changed anything.
  using Changed = std::function<void(const tl::expected<bool, rpc::Error>&)>;
  using FoundTask = std::function<void(const tl::expected<Task, rpc::Error>&)>;
  using Handle = std::function<void(const tl::expected<std::string, rpc::Error>&)>;
  /// Tells of one who waits.
  using Ticket = std::pair<TaskId, std::uint64_t>;

  /// What of a queued task is to be changed; none: it stays.
  struct Edit {
    std::optional<std::string> prompt = {};
    std::optional<std::int64_t> priority = {};
    std::optional<std::string> group = {};
    std::optional<std::chrono::milliseconds> delay = {};  ///< from now on; 0 takes away what there is
    std::optional<base::UtcTime> not_before = {};
    std::optional<std::vector<TaskId>> after = {};
    std::optional<Labels> labels = {};
  };

  /// Ended tasks that went, and those that stay, with why.
  struct Removal {
    struct Kept {
      TaskId id = 0;
      std::string reason = {};  ///< `unknown`, `not-ended`, `needed` or `busy`
      std::string text = {};
      std::optional<TaskId> by = {};  ///< who needs it
    };
    std::vector<TaskId> removed = {};
    std::vector<Kept> kept = {};
  };
  using Removed = std::function<void(const tl::expected<Removal, rpc::Error>&)>;

  struct Output {
    OutputPiece piece;
    bool done = false;         ///< no more will come after it
    bool gap_follows = false;  ///< a character that is cut at its end never goes on
  };
  using GotOutput = std::function<void(const tl::expected<Output, rpc::Error>&)>;
  struct OutputQuestion {
    TaskId id = 0;
    std::uint64_t offset = 0;
    std::size_t limit = 0;
    std::optional<Stream> stream = {};
  };
  /// True: it is content, and is not called again. `is_last`: whatever there is, it will not be.
  using LookAtOutput = std::function<bool(bool is_last)>;

  /// What is in the way of tasks, and how many there are.
  struct Standing {
    struct Group {
      bool paused = false;
      std::size_t running = 0;
      std::size_t queued = 0;
      bool operator==(const Group&) const = default;
    };
    struct AgentHold {
      base::UtcTime until = {};
      TaskId task = 0;  ///< that met the limit
      std::string text = {};
    };
    struct AgentLoad {
      std::size_t running = 0;
      std::size_t queued = 0;
    };
    bool paused = false;
    StateCounts counts = {};
    std::map<std::string, Group, std::less<>> groups = {};
    std::map<std::string, AgentLoad, std::less<>> agents = {};
    std::map<std::string, AgentHold, std::less<>> holds = {};
  };
  using Stood = std::function<void(const tl::expected<Standing, rpc::Error>&)>;
  /// Whether it changed anything, and which groups are paused then.
  struct Pause {
    bool changed = false;
    std::vector<std::string> groups = {};
  };
  using Paused = std::function<void(const tl::expected<Pause, rpc::Error>&)>;

  virtual ~Queue() = default;

  // ---- what clients ask for ----

  /// Answers when the task is safe, or at once if it is refused. `companion` is written with it, to the local store.
  virtual void submit(Submission submission, Submitted submitted, Companion companion) = 0;
  void submit(Submission submission, Submitted submitted) { submit(std::move(submission), std::move(submitted), {}); }
  /// Who would do it, by the settings of now; or why nobody can.
  virtual tl::expected<std::string, rpc::Error> choose_agent(const Submission& submission) const = 0;
  /// Answers when the decision is safe; or that there is no such task, or that it has ended.
  virtual void cancel(TaskId id, Cancelled cancelled) = 0;
  /// Keeps a queued task from starting, or lets it go. Or that there is no such task, or that it is not queued.
  virtual void set_held(TaskId id, bool held, const Changed& changed) = 0;
  virtual void edit(TaskId id, Edit edit, const FoundTask& edited) = 0;
  /// A new task with the same parameters, without its key and its delay.
  virtual void restart(TaskId id, Submitted submitted, std::string by) = 0;
  /// Queues an ended task again. Its attempts go on counting; those it had do not count against its retries.
  virtual void restart_in_place(TaskId id, Submitted submitted) = 0;
  virtual void remove(std::vector<TaskId> ids, Removed removed) = 0;
  /// Of all that have ended, in a state or so long ago if that is given.
  virtual void clean(std::optional<State> state, std::optional<std::chrono::milliseconds> older, Removed removed) = 0;
  /// A group, or without one the whole queue. Refused if there is no such group.
  virtual void set_paused(const std::optional<std::string>& group, bool paused, const Paused& done) = 0;
  /// Ends a hold; or that there is no such agent.
  virtual void release_agent(const std::string& agent, const Changed& released) = 0;

  virtual void find(TaskId id, const FoundTask& found) = 0;
  /// Calls `each` for each task in turn, until that says no, and then `done` with what went wrong, if anything did.
  virtual void list(const ListQuery& query, const std::function<bool(const Task&)>& each,
                    const std::function<void(const std::optional<rpc::Error>&)>& done) = 0;
  virtual void look(const Stood& stood) = 0;
  /// Why it does not run, or that there is no such task.
  virtual void explain(TaskId id,
                       const std::function<void(const tl::expected<Explanation, rpc::Error>&)>& explained) = 0;
  /// Answers, now or later, when the task has ended or the time is up, or that there is none. A ticket: later.
  virtual std::optional<Ticket> wait(TaskId id, std::optional<base::Duration> limit, const FoundTask& waiter) = 0;
  virtual void stop_waiting(const Ticket& ticket) = 0;
  /// Or that there is no such task, or that its output cannot be read.
  virtual void read_output(const OutputQuestion& question, const GotOutput& got) = 0;
  /// Calls now and whenever there may be more output of a task. A ticket: it was not content.
  virtual std::optional<Ticket> await_output(TaskId id, base::Duration limit, LookAtOutput look) = 0;
  virtual void stop_awaiting_output(const Ticket& ticket) = 0;

  /// A name of the task that cannot be guessed: the one that it has, or else a new one.
  virtual void give_handle(TaskId id, const Handle& given) = 0;
  /// What is written with a new task that is to have one from its first moment on.
  virtual Companion handle_for_new_task() = 0;
  virtual void find_handle(const std::string& handle,
                           const std::function<void(const tl::expected<TaskId, rpc::Error>&)>& found) = 0;

  /// Calls when all that was changed before is safe, or refused.
  virtual void after_changes(std::function<void()> call) = 0;

  // ---- what rules ask for ----

  /// Others have their own rules on the same tasks: what an event sets off is to have a key that all would give it.
  virtual bool is_shared() const = 0;
  /// Whose numbers events have; a place in another journal means nothing in this one. Empty: the project's own.
  virtual std::string numbers() const = 0;
  /// A task that an event tells of which was just given out, without asking anybody else; none: it is not kept any
  /// more. An error: that cannot be known now.
  virtual tl::expected<std::optional<Task>, rpc::Error> known(TaskId id) = 0;
  using Told = std::function<void(const tl::expected<std::vector<Event>, rpc::Error>&)>;
  /// At most so many events after this one, in order.
  virtual void events_after(std::uint64_t seq, std::size_t limit, const Told& told) = 0;
  /// The number of the newest event, as far as that is known.
  virtual tl::expected<std::uint64_t, rpc::Error> newest_event() = 0;

  // ---- what the daemon asks for ----

  /// As they were a moment ago.
  virtual const StateCounts& counts() const = 0;
  virtual const TaskSettings& settings() const = 0;
  /// How many tasks may run at once, on all machines that share the queue; as old as the counts.
  virtual std::size_t slots() const { return settings().max_running; }
  virtual void change_settings(TaskSettings settings) = 0;
  virtual const Agents& agents() const = 0;
  /// Sees to it that such limits can be kept; or says why not.
  virtual tl::expected<void, std::string> provide_for(const process::Limits& limits) const = 0;
  /// What keeps tasks from being started that has to do with the machine; empty: nothing.
  virtual std::string shortage() const = 0;
  /// What the journal tells.
  virtual void take(const Event& event) = 0;
  virtual void output_audience_changed() = 0;
  /// The task that a process is the keeper of.
  virtual std::optional<TaskId> task_of_keeper(pid_t keeper) = 0;
  /// Whether there is a task that could have processes here.
  virtual bool has_runs() const = 0;
  /// Those that run here.
  virtual std::vector<TaskId> running() const = 0;

  /// Takes no new work from now on: a stop is to follow.
  virtual void close() = 0;
  virtual bool is_stopping_now() const = 0;
  /// Takes no new work. Running tasks may go on for `patience` (none: for ever), or not at all if forced, and are ended
  /// then. Calls when all are gone. May be called again.
  virtual void stop(bool force, std::function<void()> stopped, std::optional<base::Duration> patience) = 0;
  /// The same, but running tasks go on, for the next daemon.
  virtual void leave(std::function<void()> left) = 0;

 protected:
  Queue() = default;
  Queue(const Queue&) = default;
  Queue& operator=(const Queue&) = default;
};

}  // namespace duet::task
