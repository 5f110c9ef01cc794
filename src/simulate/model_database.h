#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/json/object.hpp>

#include "duet/base/clock.h"
#include "simulate/model_arguments.h"
#include "simulate/random.h"
#include "task/postgres/line.h"
#include "task/task.h"

namespace duet::simulate {

enum class Fate;

/// Rows of the tables, as src/task/postgres/schema has them; times are milliseconds since 1970.
struct ModelTask {
  enum State : int { waiting, ready, running, completed, failed, cancelled };
  static constexpr int most_lost = 3;  ///< attempts that are lost with their workers

  std::int64_t id = 0;
  std::optional<std::int64_t> fence = {};
  std::int64_t priority = 0;
  std::int64_t worker = 0;
  std::int64_t created = 0;
  int lane = 0;
  int attempts = 0;
  int spared = 0;
  int lost = 0;
  int retries = 0;
  int open_after = 0;
  State state = waiting;
  int on_lost = 0;
  bool cancelling = false;
  bool announced = false;
  bool held = false;
  bool has_dependents = false;
  bool restored = false;  ///< a failover had lost it, and its worker told of it; no column
  std::optional<task::Reason> reason = {};
  std::string message = {};
  std::optional<std::int64_t> pid = {};
  std::optional<std::int64_t> exit_code = {};
  std::optional<std::string> signal = {};
  std::optional<std::int64_t> started = {};
  std::optional<std::int64_t> completed_at = {};
  std::optional<std::int64_t> not_before = {};
  std::optional<std::int64_t> retry_at = {};
  std::optional<std::int64_t> due = {};
  std::string late = {};
  // Of the request.
  std::string ident = {};
  std::string key = {};
  std::string prompt = {};
  std::string metadata = {};
  std::string labels = {};
  std::string body = {};
  Argument env = {};
  std::string result = {};

  bool has_ended() const { return state >= completed; }
  bool is_for(task::OnLost what) const { return on_lost == static_cast<int>(what); }
  /// It runs, and under this fence.
  bool runs_under(std::int64_t its_fence) const { return state == running && fence == its_fence; }
  /// As the world sees it: one that is claimed and has not started is still queued.
  int world() const { return state >= completed ? state - 1 : state == running && announced ? 1 : 0; }
};

struct ModelWorker {
  enum State : int { live, draining, silent, gone };

  std::int64_t id = 0;
  std::string name = {};
  std::string incarnation = {};
  std::int64_t beat = 1;
  State state = live;
  bool waiting = false;
  bool recovering = false;
  std::int64_t told_timeline = 1;
  std::int64_t lease = 0;
  std::int64_t lost_after = 0;
  std::int64_t slots = 0;
  std::vector<std::string> labels = {};
  std::vector<std::string> accepts = {};
  std::vector<std::string> agents = {};
};

struct ModelLane {
  std::string agent = {};
  std::string group = {};
  std::vector<std::string> needs = {};
  std::string submitter = {};

  bool operator==(const ModelLane&) const = default;
};

struct ModelEvent {
  std::int64_t id = 0;
  std::optional<std::int64_t> seq = {};
  std::int64_t task = 0;
  std::int64_t at = 0;
  std::optional<int> was = {};
  std::optional<int> becomes = {};
  std::string kind = {};
  std::string params = {};
};

/// What is kept of an attempt's output: its bytes, of each from which stream it came (`o`, `e` or `m`), and whether
/// that is all. `dropped`: its worker had it no more when the server asked for it again.
struct ModelOutput {
  std::string bytes = {};
  std::string streams = {};
  bool is_all = false;
  bool dropped = false;
};

/// The database of the queue in memory: what its functions do, one call at a time, each whole or not at all.
///
/// It is written after the SQL and knows nothing of daemons, connections or processes. docs/simulator.md lists what is
/// not in it. A function that it does not have throws std::logic_error.
class ModelDatabase {
 public:
  using Answer = task::postgres::Answer;
  using Result = task::postgres::Result;
  struct Notice {
    std::string channel;
    std::string payload;
  };
  /// All that is stored. A copy of it is what a standby had.
  struct Data {
    std::int64_t timeline = 1;
    std::string epoch = "epoch-1";
    std::int64_t epoch_start = 1;
    std::optional<std::int64_t> recovering_until = {};
    std::int64_t next_seq = 1;
    std::int64_t newest_event = 0;
    std::int64_t last_task = 0;
    std::int64_t last_fence = 0;
    std::int64_t renewed_fence = 0;  // up to this one fences were given before the last failover
    std::int64_t last_event = 0;
    std::int64_t last_worker = 0;
    std::map<std::int64_t, ModelTask> tasks = {};
    std::map<std::int64_t, ModelWorker> workers = {};
    std::map<int, ModelLane> lanes = {};
    std::map<std::int64_t, std::map<std::int64_t, bool>> after = {};  ///< task: what it comes after, open or not
    std::vector<ModelEvent> events = {};
    std::size_t unnumbered = 0;                                       ///< events before this place have a number
    std::map<std::pair<std::int64_t, int>, ModelOutput> output = {};  ///< by task and attempt
  };

  ModelDatabase(const base::Clock& clock, Random chance) : clock_(clock), chance_(chance) {}

  Answer call(std::string_view function, const std::vector<Argument>& arguments);
  /// Wake-ups of the calls since the last time.
  std::vector<Notice> take_notices() { return std::exchange(notices_, {}); }
  const Data& data() const { return data_; }
  /// The server ends at once: what was written without a sync in the last moments is gone.
  void crash();
  /// Another server takes over: it has this, and is on the next timeline.
  void fail_over(Data data);
  std::int64_t server_timeline() const { return server_timeline_; }

  bool has_old_snapshot = false;  ///< looks for tasks are called slow now and then

 private:
  using Object = boost::json::object;
  using Lanes = std::vector<int>;
  struct Refused {
    std::string state;
    std::string message;
  };
  struct ReportCall;
  /// A worker as it was before a call that was not synced.
  struct Unsynced {
    base::TimePoint at;
    ModelWorker before;
  };

  std::int64_t now() const { return base::milliseconds_of(clock_.utc()); }
  static Answer one(const Object& object);
  /// Who calls, if it is the worker that it says and not gone.
  ModelWorker* caller(const Arguments& arguments);
  ModelWorker& guard(const Arguments& arguments);
  ModelWorker& who_has_told(const Arguments& arguments);
  void require_known_server() const;
  ModelTask* find(std::int64_t id);
  void tell_task(const ModelTask& task, std::optional<int> was, int becomes, const std::string& kind = {});
  void tell(const std::string& kind, const std::string& params);
  void tell_worker(const ModelWorker& worker);
  void notify(std::string channel, std::string payload) {
    notices_.push_back({std::move(channel), std::move(payload)});
  }
  bool serves(const ModelWorker& worker, const ModelLane& lane) const;
  int lane_of(const ModelLane& lane);
  ModelTask::State queued_state(const ModelTask& task) const;
  static std::map<int, int> count_of(const Lanes& lanes);
  static boost::json::array counted(const Lanes& lanes);

  void note_unsynced(std::string_view function, const Arguments& arguments);

  // model_workers.cpp
  Answer hello(const Arguments& arguments);
  Answer attach(const Arguments& arguments);
  Answer beat(const Arguments& arguments);
  Answer wait(const Arguments& arguments);
  Answer wake(const Arguments& arguments);
  Answer nudge(const Arguments& arguments);
  Answer silence(const Arguments& arguments);
  Answer lose(const Arguments& arguments);
  Answer leave(const Arguments& arguments);
  boost::json::array running_of(const ModelWorker& worker) const;
  bool has_to_repeat(const ModelWorker& worker) const;
  Object beaten(const ModelWorker& worker) const;
  /// Another worker than the caller's, if its beat has not moved.
  ModelWorker* unmoved(const Arguments& arguments);
  Lanes give_up(const ModelWorker& worker, bool all);

  // model_tasks.cpp
  Answer submit(const Arguments& arguments);
  Answer cancel(const Arguments& arguments);
  Answer sweep(const Arguments& arguments);
  struct After;
  Result::Row submit_one(const ModelWorker& worker, const Arguments& arguments, std::size_t place);
  After after_of(const std::string& ids);
  ModelTask& make_task(const ModelWorker& worker, const Arguments& arguments, std::size_t place);
  static Result::Row submitted(std::size_t place, const ModelTask& task, bool fresh);
  Lanes end_task(ModelTask& task, ModelTask::State state, std::optional<task::Reason> reason = {},
                 const std::string& message = {});
  void finish(ModelTask& task, ModelTask::State state, std::optional<task::Reason> reason, const std::string& message);
  int queue_again(ModelTask& task, int attempts, int lost);
  Lanes settle(const std::vector<std::int64_t>& done, const std::vector<std::int64_t>& failed);

  // model_report.cpp
  Answer report(const Arguments& arguments);
  void start_some(ReportCall& call, const Argument& starts);
  void keep_output(const ReportCall& call, const Argument& output);
  void end_some(ReportCall& call, const Arguments& arguments);
  void end_one(ReportCall& call, const Arguments& arguments, std::size_t i, ModelTask& task);
  void keep_end(const Arguments& arguments, std::size_t i, ModelTask& task) const;
  static void drop_end(ModelTask& task);
  void set_pause(ModelTask& task, Fate fate, std::int64_t pause) const;
  void not_running(ReportCall& call, const Arguments& arguments, std::size_t i);
  void claim(ReportCall& call, std::int64_t most, const Argument& told);

  // model_reads.cpp
  Answer number(const Arguments& arguments);
  Answer read_events(const Arguments& arguments);
  Answer read_events_state(const Arguments& arguments);
  Answer read_stats(const Arguments& arguments);
  Answer read_task(const Arguments& arguments);
  Answer read_known(const Arguments& arguments);
  Answer read_running(const Arguments& arguments);

  // model_failover.cpp
  Answer renew(const Arguments& arguments);
  Answer recover(const Arguments& arguments);
  boost::json::array output_of(const boost::json::array& running) const;
  bool restore(const ModelWorker& worker, const Object& told);
  bool make_again(const ModelWorker& worker, const Object& told);
  void recovered();
  bool is_recovering() const { return data_.recovering_until && *data_.recovering_until > now(); }

  const base::Clock& clock_;
  Random chance_;
  Data data_;
  std::int64_t server_timeline_ = 1;
  std::vector<Notice> notices_;
  std::vector<Unsynced> unsynced_;
};

}  // namespace duet::simulate
