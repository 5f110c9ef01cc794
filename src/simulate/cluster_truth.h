#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tl/expected.hpp>

#include "duet/base/clock.h"
#include "duet/rpc/error.h"
#include "simulate/model_database.h"
#include "simulate/population.h"
#include "task/store_tables.h"
#include "task/task.h"

namespace duet::simulate {

/// What must hold in a queue that machines share, known apart from the daemons: what clients asked and were answered,
/// what processes really did, and what the database has. It keeps the first thing that was not as promised.
///
/// What a task is comes from who asked for it, not from its row; the row only says what has become of it.
class ClusterTruth {
 public:
  ClusterTruth(const ModelDatabase& database, const base::Clock& clock, std::size_t hosts)
      : database_(database), clock_(clock), hosts_(hosts) {}

  const std::optional<std::string>& violation() const { return violation_; }
  void fail(std::string what) {
    if (!violation_) violation_ = std::move(what);
  }

  // What clients ask, and are answered. Each prompt is asked for once, or with a key.
  void submitted(std::size_t host, const task::Submission& submission);
  void accepted(const std::string& prompt, task::TaskId id);
  void refused(std::size_t host, const std::string& prompt, const rpc::Error& why);
  void asked_to_cancel(task::TaskId id) { cancels_.insert(id); }
  void cancelled(task::TaskId id) { acknowledged_.emplace(id, clock_.now()); }
  void not_cancelled(std::size_t host, task::TaskId id, const rpc::Error& why);
  /// `is_late`: the time for which it was to be waited is over.
  void waited(std::size_t host, task::TaskId id, bool is_late, const tl::expected<task::Task, rpc::Error>& answer);
  std::vector<task::TaskId> known_tasks() const;
  /// Those that never end by themselves, and have not.
  std::vector<task::TaskId> endless_tasks() const;

  // What processes do.
  void began(std::size_t host, const Tree& tree);
  void main_ended(const Tree& tree, int status, bool kept);
  void gone(const Tree& tree);
  void wrote(std::size_t host, task::RunId run, std::string_view bytes, task::Stream stream);
  void keeper_died(std::size_t host, task::RunId run);
  /// A daemon was stopped with its tasks: also with those that it has just asked for.
  void stopped_tasks(std::size_t host);

  // What goes wrong.
  void set_host(std::size_t host, std::size_t slots, std::vector<std::string> labels);
  /// It lives and is not cut off: a worker that could beat all the time must not be called silent.
  void set_sound(std::size_t host, bool sound);
  /// And the database is up: then it ends what is not its own any more, and refuses nothing.
  void set_reached(std::size_t host, bool reached);
  void check_fenced();
  void outage() { outages_.push_back(clock_.now()); }
  /// Calls and answers are lost by chance: a worker may seem silent, and may refuse what it is asked.
  bool calls_get_lost = false;
  /// Another server has taken over from one that had `before`, and lacks what was committed since then.
  void failed_over(base::TimePoint since, const ModelDatabase::Data& before);

  /// A daemon was told of an event.
  void heard(std::size_t host, const task::Event& event);
  void began_to_read(std::size_t host);
  /// It says that events may be missing: only when another server has taken over. It goes on with the first of the
  /// epoch.
  void journal_began_anew(std::size_t host);
  /// After each function that was carried out.
  void carried_out(std::string_view function, const std::vector<Argument>& arguments);

  std::size_t open_tasks() const;
  bool has_come_to_rest() const { return open_tasks() == 0; }
  /// When all has come to rest.
  void check_ends();
  /// Then each daemon has been told all events; `next` is the number that its journal waits for.
  void check_told(std::size_t host, std::uint64_t next);
  std::uint64_t count() const { return asked_.size(); }

 private:
  struct Asked {
    task::Submission submission;
    base::TimePoint sent = {};         // for the first time
    std::set<std::size_t> hosts = {};  // whose daemons were asked
    std::optional<task::TaskId> id = {};
    bool never = false;  // it was said that it will never turn up

    bool is_retried_when_lost() const { return submission.on_lost == task::OnLost::retry; }
    std::int64_t retries() const { return submission.retries.value_or(0); }
  };
  struct Beat {
    std::int64_t number = 0;
    base::TimePoint at = {};
  };
  // A process that was started under a fence.
  struct Run {
    task::TaskId task = 0;
    std::uint32_t attempt = 0;
    std::size_t host = 0;
    bool alive = true;     // its main process
    bool has_tree = true;  // any process of it
    std::optional<int> status = {};
    bool seen = false;  // its keeper saw how it ended
    bool keeper_died = false;
    bool stopped = false;
    bool forgotten = false;  // the server that took over did not know of it
    std::string output = {};
    std::string streams = {};                    // of each byte, as ModelOutput has them
    std::optional<base::TimePoint> fenced = {};  // since then it is not its worker's any more

    bool is_witnessed() const { return status && seen && !keeper_died; }
    bool has_succeeded() const { return status == 0; }
  };
  struct Host {
    std::size_t slots = 0;
    std::vector<std::string> labels = {};
    std::optional<base::TimePoint> sound_since = {};
    std::optional<base::TimePoint> reached_since = {};
    std::optional<base::TimePoint> stopped = {};
    std::optional<std::uint64_t> last_seq = {};
    bool begins_epoch = false;  // the next event that it is told of is the first of one
  };

  // cluster_truth.cpp
  bool may_have_been_missing(task::TaskId id) const;
  void check_refusal(std::size_t host, const std::string& what, const rpc::Error& why);
  void check_events(std::string_view function);
  void check_gone(std::int64_t task);
  void check_silence(const std::vector<Argument>& arguments);
  void set_since(std::optional<base::TimePoint>& since, bool holds) const;
  const ModelTask* row_of(task::TaskId id) const;
  bool is_own(std::uint64_t fence, const Run& run) const;
  bool was_lost(task::TaskId id) const { return lost_tasks_.contains(id); }
  const Asked* asked_of(const ModelTask& task) const;
  Run* run_of(std::size_t host, task::RunId run);

  // cluster_truth_starts.cpp
  void check_overlap(const Tree& tree);
  void check_starts(const Tree& tree, const ModelTask& task, const Asked& asked);
  void check_place(std::size_t host, const ModelTask& task, const Asked& asked);
  void check_after(const ModelTask& task, const Asked& asked);
  void check_slots(std::size_t host);

  // cluster_truth_ends.cpp
  void check_submits();
  void check_row(const ModelTask& task, const Asked& asked);
  void check_numbers();
  void check_end(const ModelTask& task);
  void check_cancelled(const ModelTask& task);
  void check_completed(const ModelTask& task);
  void check_failed(const ModelTask& task, const Asked& asked);
  void check_exit(const ModelTask& task, const Run& run);
  void check_signal(const ModelTask& task, const Run& run, const Asked& asked);
  void check_spawn(const ModelTask& task);
  void check_lost(const ModelTask& task);
  void check_dependency(const ModelTask& task, const Asked& asked);
  void check_outputs(const ModelTask& task);
  void check_output(const ModelTask& task, const Run& run);
  bool has_status_of(const ModelTask& task, const Run& run) const;
  const Run* last_run(const ModelTask& task) const;

  const ModelDatabase& database_;
  const base::Clock& clock_;
  std::optional<std::string> violation_;
  std::map<std::string, Asked> asked_;  // by prompt
  std::set<task::TaskId> cancels_;
  std::map<task::TaskId, base::TimePoint> acknowledged_;
  std::map<std::uint64_t, Run> runs_;  // by fence
  std::vector<Host> hosts_;
  std::set<std::pair<task::TaskId, std::uint32_t>> dead_keepers_;  // of attempts whose process never began
  std::vector<base::TimePoint> outages_;
  bool has_failed_over_ = false;
  bool has_lost_commits_ = false;
  std::set<task::TaskId> lost_tasks_;    // that a server which took over did not have
  std::set<task::TaskId> lost_cancels_;  // that had been acknowledged
  std::uint64_t lost_seq_ = 0;           // events up to this one may have been others
  std::set<std::uint64_t> epoch_starts_;
  std::size_t checked_events_ = 0;
  std::map<std::int64_t, int> told_;  // the last state of each task that an event told of
  std::set<std::int64_t> given_up_;   // tasks that somebody else ended than their worker
  std::map<std::int64_t, bool> was_silent_;
  std::map<std::int64_t, Beat> beats_;  // the last one of each worker
};

}  // namespace duet::simulate
