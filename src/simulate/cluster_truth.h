#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "duet/base/clock.h"
#include "simulate/model_database.h"
#include "simulate/population.h"
#include "task/store_tables.h"
#include "task/task.h"

namespace duet::simulate {

/// What must hold in a queue that machines share, known apart from the daemons: what clients asked and were answered,
/// what processes really did, and what the database has. It keeps the first thing that was not as promised.
class ClusterTruth {
 public:
  ClusterTruth(const ModelDatabase& database, const base::Clock& clock, std::size_t hosts)
      : database_(database), clock_(clock), hosts_(hosts) {}

  const std::optional<std::string>& violation() const { return violation_; }
  void fail(std::string what) {
    if (!violation_) violation_ = std::move(what);
  }

  // What clients ask, and are answered. Each prompt is asked for once, or with a key.
  void submitted(const task::Submission& submission);
  void accepted(const std::string& prompt, task::TaskId id);
  /// `never`: it was said that it will never turn up.
  void refused(const std::string& prompt, bool never);
  void asked_to_cancel(task::TaskId id) { cancels_.insert(id); }
  void cancelled(task::TaskId id) { acknowledged_.emplace(id, clock_.now()); }
  std::vector<task::TaskId> accepted_tasks() const;
  /// Those that never end by themselves, and have not.
  std::vector<task::TaskId> endless_tasks() const;

  // What processes do.
  void began(std::size_t host, const Tree& tree);
  void main_ended(std::size_t host, const Tree& tree, int status, bool kept);
  void wrote(std::size_t host, task::RunId run, std::string_view bytes);
  void keeper_died(std::size_t host, task::RunId run);
  void stopped_tasks(std::size_t host);

  // What goes wrong: a worker that could beat all the time must not be called silent.
  void set_slots(std::size_t host, std::size_t slots) { hosts_.at(host).slots = slots; }
  void set_sound(std::size_t host, bool sound);
  /// And a worker that hears from the database ends what is not its own any more.
  void set_reached(std::size_t host, bool reached);
  void check_fenced();
  void outage();
  /// Calls and answers are lost by chance: a worker may seem silent.
  bool calls_get_lost = false;
  /// Another server has taken over, which lacks what was committed since then.
  void failed_over(base::TimePoint since);

  /// A daemon was told of an event.
  void heard(std::size_t host, const task::Event& event);
  void began_to_read(std::size_t host) { hosts_.at(host).last_seq.reset(); }
  /// It says that events may be missing: only when another server has taken over.
  void journal_began_anew(std::size_t host);
  /// After each function that was carried out.
  void carried_out(std::string_view function, const std::vector<Argument>& arguments);

  std::size_t open_tasks() const;
  bool has_come_to_rest() const { return open_tasks() == 0; }
  /// When all has come to rest.
  void check_ends();
  std::uint64_t count() const { return asked_.size(); }
  std::uint64_t starts() const { return runs_.size(); }

 private:
  struct Asked {
    task::Submission submission;
    std::optional<task::TaskId> id = {};
    base::TimePoint accepted = {};
    bool never = false;
  };
  // A process that was started under a fence.
  struct Run {
    task::TaskId task = 0;
    std::uint32_t attempt = 0;
    std::size_t host = 0;
    bool alive = true;
    std::optional<int> status = {};
    bool seen = false;  // its keeper saw how it ended
    bool keeper_died = false;
    bool stopped = false;
    std::string output = {};
    std::optional<base::TimePoint> fenced = {};  // since then it is not its worker's any more
  };
  struct Host {
    std::size_t slots = 0;
    std::optional<base::TimePoint> sound_since = {};
    std::optional<base::TimePoint> reached_since = {};
    std::optional<std::uint64_t> last_seq = {};
  };

  void check_overlap(const Tree& tree);
  void check_starts(const Tree& tree);
  void check_slots(std::size_t host);
  void check_events();
  void check_silence(const std::vector<Argument>& arguments);
  void check_submits();
  void check_end(const ModelTask& task);
  void check_outcome(const ModelTask& task, const Run& run);
  void check_output(const ModelTask& task, const Run& run);
  const Asked* asked_of(const ModelTask& task) const;
  Run* run_of(std::size_t host, task::RunId run);

  const ModelDatabase& database_;
  const base::Clock& clock_;
  std::optional<std::string> violation_;
  std::map<std::string, Asked> asked_;  // by prompt
  std::set<task::TaskId> cancels_;
  std::map<task::TaskId, base::TimePoint> acknowledged_;
  std::map<std::uint64_t, Run> runs_;  // by fence
  std::vector<Host> hosts_;
  std::vector<base::TimePoint> outages_;
  bool has_failed_over_ = false;
  bool has_lost_commits_ = false;
  std::size_t checked_events_ = 0;
  std::map<std::int64_t, int> told_;  // the last state of each task that an event told of
  std::map<std::int64_t, bool> was_silent_;
};

}  // namespace duet::simulate
