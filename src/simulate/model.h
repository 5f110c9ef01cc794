#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <boost/json/object.hpp>

#include "duet/base/clock.h"
#include "duet/rpc/error.h"
#include "simulate/control_truth.h"
#include "simulate/output_truth.h"
#include "simulate/population.h"
#include "simulate/queue_truth.h"
#include "task/agent.h"
#include "task/journal.h"
#include "task/store_tables.h"
#include "task/task.h"

namespace duet::simulate {

/// The rules of every simulation: one that goes on from what completed, and one that asks before it goes on from what
/// failed. Their prompts name the task, so that each must turn up once.
inline constexpr char echo_rule[] = "echo";
inline constexpr char asking_rule[] = "ask";

/// The agents of every simulation. The second one has a limit of its own, and is held when a task of it ends with this
/// code.
inline constexpr char usual_agent[] = "play";
inline constexpr char limited_agent[] = "limited";
inline constexpr int usage_limit_code = 3;
/// The groups, beside `default`: one with room for one task, and one with room for all.
inline constexpr char narrow_group[] = "narrow";
inline constexpr char wide_group[] = "wide";

/// What must hold, known apart from the daemon: what it was asked and answered, what it told, and what processes really
/// did. It is told everything, and keeps the first thing that was not as promised.
///
/// A power cut takes the machine's processes, but nothing that was told. Whoever is told of an answer or an event calls
/// this only if the daemon lived to tell it.
class Model {
 public:
  explicit Model(const base::Clock& clock) : clock_(clock), control_(clock) {}

  const std::optional<std::string>& violation() const { return violation_; }
  void fail(std::string what) {
    if (!violation_) violation_ = std::move(what);
  }

  // What clients ask, and are answered.
  void submitted(const task::Submission& submission);
  void accepted(const task::Submission& submission, task::TaskId id);
  void refused(const task::Submission& submission, int code);
  void asked_to_cancel(task::TaskId id);
  /// `is_told`: its processes were told to end, if it has any.
  void cancelled(task::TaskId id, bool is_told);
  void cancel_refused(task::TaskId id, const rpc::Error& error);
  void waited(task::TaskId id, task::State state, bool time_is_up);
  /// Somebody asked for the task, and was refused with this code: if it says that there is no such task, there is none.
  void told_unknown(task::TaskId id, int code);
  void output_read(task::TaskId id, const task::OutputPiece& piece, bool done);
  void approving(const std::string& firing);
  void approved(const std::string& firing);
  void approval_refused(const std::string& firing);

  // What is done with queued and ended tasks.
  ControlTruth& control() { return control_; }
  /// Somebody asks for something of a queued task that may keep it from its turn.
  void touches(task::TaskId id) { queue_.left(id); }
  void editing(task::TaskId id) {
    touches(id);
    edited_.insert(id);
    control_.editing(id);
  }
  /// It is to come after these tasks; and what was answered, none if it was refused and stays as it is.
  void editing_after(task::TaskId id, const std::vector<task::TaskId>& after);
  void edited_after(task::TaskId id, const std::optional<std::vector<task::TaskId>>& after);
  void restarting(task::TaskId id) {
    tasks_[id].restart_asked = true;
    control_.queued_again(id);  // it may start before that is told
  }
  void daemon_started() { control_.forget_turns(); }
  std::vector<task::TaskId> ended_tasks() const;

  // What the journal tells.
  void told(const task::Event& event, const std::optional<task::Task>& task);
  void take_epoch(const std::string& epoch);
  /// The journal of a daemon that has just started.
  void compare_journal(const task::Journal& journal);
  const std::string& epoch() const { return epoch_; }
  std::uint64_t next_seq() const { return history_.size() + 1; }
  /// None if nobody was told of such an event.
  const task::Event* event(std::uint64_t seq) const;

  // What processes do.
  void ordered(task::RunId run);
  void tree_began(const Tree& tree, const std::vector<std::shared_ptr<Tree>>& living);
  void main_ended(const Tree& tree, int status, bool kept);
  /// `at_work`: in the middle of something, which may have been its output.
  void keeper_killed(task::RunId run, bool at_work);
  void keeper_suspended(task::RunId run) { tasks_[run.task].runs[run.attempt].suspended = true; }
  void power_cut();
  OutputTruth& output() { return output_; }

  /// A step of the simulation is over: at most one turn of the daemon.
  void next_turn() {
    queue_.next_turn();
    check_trees();
  }
  /// The disk refuses something, or processes cannot be started; or that is over.
  void set_trouble(bool troubled, bool syncs_fail = false);
  /// Whether that is so, or has been a moment ago.
  bool was_troubled_lately() const;
  /// What it had not written yet is forgotten.
  void daemon_died();
  void wall_jumped() { wall_jumped_at_ = clock_.now(); }
  void set_limits(const task::TaskSettings& settings);
  /// Running tasks were ended, since the daemon was stopped.
  void stopped_tasks();

  /// Against what the rules say of themselves, when all has come to its end: how many firings of a rule are listed.
  void compare_firings(const std::string& rule, std::uint64_t listed);
  /// What was acknowledged has happened.
  void check_approvals();
  /// Against the store, when nothing is on its way there.
  void compare(const std::vector<task::Task>& tasks, bool everything_has_ended);
  /// All have ended, and the daemon has looked whether there are too many.
  void check_kept(std::size_t tasks);
  /// A task that has ended, and is still in the store, with the outputs of its attempts.
  void compare_ended(const task::Task& task, const std::vector<RunOutput>& outputs);

  std::vector<task::TaskId> open_tasks() const;
  std::vector<task::TaskId> all_tasks() const;
  std::size_t count() const { return tasks_.size(); }
  bool is_known(task::TaskId id) const { return tasks_.contains(id) || removed_.contains(id); }

 private:
  static constexpr std::chrono::seconds grace{5};  // from TERM to KILL
  static constexpr std::chrono::seconds moment{1};
  struct Run {
    int begun = 0;
    bool told_started = false;
    bool cut = false;                // the power was cut after it began
    std::optional<int> status = {};  // of its main process, when its keeper saw it
    bool keeper_killed = false;
    bool suspended = false;  // its keeper was, at some time
    bool ended_unseen = false;
    base::TimePoint began_at = {};
    base::TimePoint ended_at = {};  // when there is a status
    bool is_witnessed() const { return status && !keeper_killed && !cut; }
    bool has_succeeded() const;
  };
  /// How a task ended, as its event has it.
  struct End {
    task::State state = task::State::queued;
    std::string reason = {};  // of a failure
    std::optional<int> exit_code = {};
    std::string signal = {};
    static End of(task::State state, const boost::json::object& params);
    bool operator==(const End&) const = default;
    bool has_same_status(const End& other) const { return exit_code == other.exit_code && signal == other.signal; }
    std::string text() const;
  };
  struct Known {
    std::optional<task::Submission> submission;
    std::optional<std::string> prompt;
    bool acknowledged = false;
    bool cancel_asked = false;
    std::string refused_as;                    // a cancel came too late for this end, which is still to be told
    std::optional<std::uint32_t> ordered;      // the last attempt that the daemon has tried to start
    std::optional<base::TimePoint> cancelled;  // when that was acknowledged
    std::optional<base::TimePoint> told_to_end;
    std::uint64_t ended_seq = 0;      // the event of its end
    base::TimePoint ended_at = {};    // and when that was told
    task::TaskId newest_then = 0;     // the newest task at that time
    std::set<std::uint32_t> stopped;  // attempts that were there when the daemon was stopped
    std::optional<task::State> told;
    std::uint32_t attempts = 0;
    std::uint32_t spared = 0;     // of those, how many do not count
    bool restart_asked = false;   // in place
    std::uint32_t restarted = 0;  // attempts that it had when it was queued again
    bool was_restarted = false;   // so that it may have been failed at any time before
    bool has_once_succeeded = false;
    base::TimePoint asked_at = {};
    std::optional<std::vector<task::TaskId>> edited_after;  // what it comes after since somebody has edited that
    int open_edits = 0;                                     // of that, which nobody has answered
    std::map<std::uint32_t, Run> runs;
  };

  /// What came of a submit.
  struct Asked {
    enum class Fate : std::uint8_t { open, accepted, refused };
    task::Submission submission = {};
    Fate fate = Fate::open;
    base::TimePoint refused_at = {};
    std::optional<task::TaskId> id = {};  // that it was told to have, by an answer or an event
    base::TimePoint asked_at = {};
    bool found_no_room = false;   // as many tasks as may be were queued already
    bool is_in_doubt = false;     // it was asked again before it was answered
    bool may_be_another = false;  // it was asked again, with its key, when its task may have been erased
  };

  std::string name(task::TaskId id) const { return task::to_text(id); }
  static std::string text(task::State state) { return std::string(task::name_of(state)); }
  void take_new(task::TaskId id, Known& known, const task::Task& task);
  void take_new_of_rule(task::TaskId id, const std::string& prompt, const boost::json::object& origin);
  void take_id(Asked& asked, task::TaskId id);
  void told_of_queue(const task::Event& event);
  void queued_again(task::TaskId id, Known& known);
  void check_spared(task::TaskId id, const Known& known, std::uint32_t before);
  static bool has_met_limit(const Known& known, const Run* run);
  bool is_edited(task::TaskId id) const { return edited_.contains(id); }
  static std::string agent_of(const Known& known);
  static std::string group_of(const Known& known);
  static const std::vector<task::TaskId>& after_of(const Known& known);
  void check_turns(task::TaskId id);
  void check_step(task::TaskId id, const Known& known, task::State to);
  void check_retry(task::TaskId id, const Known& known);
  void check_end(task::TaskId id, const Known& known, const End& told);
  void check_cancelled(task::TaskId id, const Known& known, const End& told);
  void check_failed_dependency(task::TaskId id, const Known& known, const End& told);
  void check_unknown_end(task::TaskId id, const Known& known, const End& told);
  void check_seen_end(task::TaskId id, const Known& known, const End& told);
  void check_time_limit(task::TaskId id, const Known& known);
  void check_usage(const task::Task& task, const Known& known);
  static const Run* last_run(const Known& known);
  static End expected_end(const Known& known, const Run& run, const End& told);
  bool has_succeeded(task::TaskId id);
  void check_dependencies(const Tree& tree, const Known& known);
  void check_attempt(const Tree& tree, const Known& known);
  void doubt_refusals();
  void check_trees();
  std::optional<base::TimePoint> end_is_due(const Tree& tree) const;
  void check_erased(const std::set<task::TaskId>& kept);
  void check_slots(const Tree& tree, const std::vector<std::shared_ptr<Tree>>& living);
  void set_max_running(std::size_t most);
  std::size_t most_running() const;
  /// The pause of a task that a later daemon finds ends by the clock on the wall.
  bool jumped_since(base::TimePoint time) const { return wall_jumped_at_ && *wall_jumped_at_ >= time; }
  bool may_be_gone(task::TaskId id) const;
  std::size_t count_queued() const;
  std::size_t most_queued() const;

  const base::Clock& clock_;
  std::optional<std::string> violation_;
  std::map<task::TaskId, Known> tasks_;
  OutputTruth output_;
  QueueTruth queue_;
  ControlTruth control_;
  std::map<task::TaskId, bool> removed_;      // and whether they had succeeded
  std::size_t taken_out_ = 0;                 // of the ended ones: removed, or queued again
  std::set<task::TaskId> edited_;             // their priority may be another one
  std::map<std::string, Asked> asked_;        // by prompt
  std::map<std::string, int> fired_;          // by prompt: tasks of rules
  std::map<std::string, std::uint64_t> due_;  // by rule: events that were told
  /// What came of the approvals of a firing. One that a daemon did not live to answer may have been taken or not.
  struct Approval {
    int open = 0;  // that were asked for, and not answered yet or never
    bool acknowledged = false;
    bool done = false;  // its task was told of
    base::TimePoint refused_at = {};
  };
  std::map<std::string, Approval> approvals_;  // by firing
  std::vector<task::Event> history_;
  std::string epoch_;
  std::size_t capacity_ = 0;
  std::size_t fewest_kept_ = std::numeric_limits<std::size_t>::max();
  std::size_t kept_ = 0;
  std::optional<base::TimePoint> wall_jumped_at_;  // the last time
  std::optional<base::TimePoint> last_cut_;        // of the power
  bool troubled_ = false;
  std::optional<base::TimePoint> trouble_ended_;
  std::optional<base::TimePoint> syncs_failed_at_;  // first, since the last commit
  std::map<base::TimePoint, std::size_t> limits_;
  std::size_t latest_limit_ = 0;
  std::vector<std::shared_ptr<Tree>> living_;  // when the last one began; those that ended since are still in it
  std::set<task::TaskId> depended_on_;         // that somebody wanted to come after
};

}  // namespace duet::simulate
