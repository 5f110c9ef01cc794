#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "duet/base/clock.h"
#include "simulate/population.h"
#include "task/store_tables.h"
#include "task/task.h"

namespace duet::simulate {

/// The rules of every simulation: one that goes on from what completed, and one that asks before it goes on from what
/// failed. Their prompts name the task, so that each must turn up once.
inline constexpr char echo_rule[] = "echo";
inline constexpr char asking_rule[] = "ask";

/// What must hold, known apart from the daemon: what it was asked and answered, what it told, and what processes really
/// did. It is told everything, and keeps the first thing that was not as promised.
///
/// A power cut takes the machine's processes, but nothing that was told. Whoever is told of an answer or an event calls
/// this only if the daemon lived to tell it.
class Model {
 public:
  explicit Model(const base::Clock& clock) : clock_(clock) {}

  const std::optional<std::string>& violation() const { return violation_; }
  void fail(std::string what) {
    if (!violation_) violation_ = std::move(what);
  }

  // What clients ask, and are answered.
  void submitted(const task::Submission& submission);
  void accepted(const task::Submission& submission, task::TaskId id);
  void refused(const task::Submission& submission);
  void cancelled(task::TaskId id);
  void waited(task::TaskId id, task::State state);
  void output_done(task::TaskId id);
  void approving(const std::string& firing);
  void approved(const std::string& firing);

  // What the journal tells.
  void told(const task::Event& event, const std::optional<task::Task>& task);
  void epoch(const std::string& epoch);
  std::uint64_t next_seq() const { return last_seq_ + 1; }

  // What processes do.
  void tree_began(const Tree& tree, const std::vector<std::shared_ptr<Tree>>& living);
  void main_ended(const Tree& tree, int status, bool kept);
  void keeper_killed(task::RunId run);
  void power_cut();

  void set_max_running(std::size_t most);
  /// Running tasks were ended, since the daemon was stopped.
  void stopped_tasks();

  /// Against what the rules say of themselves, when all has come to its end: how many firings of a rule are listed.
  void compare_firings(const std::string& rule, std::uint64_t listed);
  /// Against the store, when nothing is on its way there.
  void compare(const std::vector<task::Task>& tasks, bool everything_has_ended);

  std::vector<task::TaskId> open_tasks() const;
  std::vector<task::TaskId> all_tasks() const;
  std::size_t count() const { return tasks_.size(); }
  bool is_known(task::TaskId id) const { return tasks_.contains(id); }

 private:
  struct Run {
    int begun = 0;
    bool told_started = false;
    bool cut = false;           // the power was cut after it began
    std::optional<int> status;  // of its main process, when its keeper saw it
    bool keeper_killed = false;
    bool ended_unseen = false;
  };
  struct Known {
    std::optional<task::Submission> submission;
    std::optional<std::string> prompt;
    bool acknowledged = false;
    std::optional<base::TimePoint> cancelled;  // when that was acknowledged
    bool stopped = false;
    bool may_be_ended = false;  // somebody asked for its end, and was not answered
    std::optional<task::State> told;
    std::uint32_t attempts = 0;
    std::string reason;
    std::map<std::uint32_t, Run> runs;
  };

  std::string name(task::TaskId id) const { return task::to_text(id); }
  void take_new(task::TaskId id, const task::Task& task);
  void check_step(task::TaskId id, const Known& known, task::State to);
  void check_end(task::TaskId id, const Known& known, task::State state, const std::string& params);
  void check_dependencies(const Tree& tree, const Known& known);
  std::size_t most_running() const;

  const base::Clock& clock_;
  std::optional<std::string> violation_;
  std::map<task::TaskId, Known> tasks_;
  std::map<std::string, std::string> fates_;  // by prompt: asked, accepted, refused
  std::map<std::string, int> fired_;          // by prompt: tasks of rules
  std::map<std::string, std::uint64_t> due_;  // by rule: events that were told
  std::map<std::string, int> approvals_;      // by firing: 1 asked for, 2 acknowledged, 3 done
  std::uint64_t last_seq_ = 0;
  std::string epoch_;
  std::map<base::TimePoint, std::size_t> limits_;
  std::size_t latest_limit_ = 0;
  std::vector<std::shared_ptr<Tree>> living_;
};

}  // namespace duet::simulate
