#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "duet/base/lifetime.h"
#include "duet/base/log.h"
#include "duet/transport/loop.h"
#include "task/agents.h"
#include "task/keeper.h"
#include "task/postgres/line.h"
#include "task/postgres/membership.h"
#include "task/postgres/output_sender.h"
#include "task/postgres/report.h"
#include "task/postgres/under_way.h"
#include "task/runner.h"
#include "task/shortages.h"
#include "task/usage_limit.h"

namespace duet::task::postgres {

/// The attempts that this worker has: claims tasks when it has slots free, has them run, and reports what becomes of
/// them, with their output.
///
/// One call at a time goes to the database, and carries all there is: starts, output, ends, and the next claim. A
/// process is started only when its claim is known to be committed. Whatever is reported names the attempt's fence;
/// one that is told `fenced` is ended at once. What could not be reported is reported again. For the loop's thread.
class Attempts {
 public:
  struct Calls {
    std::function<const TaskSettings&()> settings;
    std::function<std::string()> project;
    /// A run was begun or adopted, or everybody knows that it runs; or it is gone.
    std::function<void(RunId, bool is_new)> began;
    std::function<void(RunId)> gone;
    std::function<void(RunId)> never_began;
    /// It is not ours any more, and what it still writes is nobody's.
    std::function<void(RunId)> fenced = [](RunId) {};
    /// The database knows that a run has begun.
    std::function<void(RunId)> announced;
    std::function<void(TaskId, std::string_view body)> starts;  ///< it is about to
    /// The end of a task was taken: it may be over, or queued again.
    std::function<void(TaskId)> ended;
    std::function<void()> stopped;  ///< no attempt is left
  };
  struct Options {
    int tasks = -1;  ///< the folder with the outputs
    std::string worker = {};
    std::uint64_t output = std::uint64_t{4} << 20U;
    std::uint32_t seed = 0;
  };

  Attempts(transport::Loop& loop, base::Log& log, Line& line, Membership& membership, const Agents& agents,
           Options options, Calls calls);
  Attempts(const Attempts&) = delete;
  Attempts& operator=(const Attempts&) = delete;

  KeeperEvents keeper_events();
  /// `recorded` are runs that left a record here.
  void begin(Runner& runner, const std::vector<RunId>& recorded);
  void settings_changed();
  /// How much output of an attempt goes to the database, from the next attempt on.
  void change_output(std::uint64_t bytes) { options_.output = bytes; }

  /// Asks for tasks if there are slots free; `wake_up`: somebody said that there are some.
  void look(bool wake_up);
  void joined(const std::vector<OwnAttempt>& own);
  void beaten(const Membership::Calls::Beat& beat);
  /// None of them is ours any more.
  void given_up();
  void recovered(const Membership::Calls::Recovery& recovery);
  /// For recover_v1: what runs, and what was reported in the last two minutes.
  std::string remembered() const;

  std::vector<TaskId> running() const;
  bool is_empty() const { return attempts_.empty(); }
  std::size_t slots_in_use() const;
  /// A look would ask for tasks.
  bool has_room() const { return free_slots() > 0; }
  std::optional<TaskId> task_of_keeper(pid_t keeper) const;
  const Shortages& shortages() const { return shortages_; }
  /// The latest attempt of a task, if it has one here.
  std::optional<RunId> latest(TaskId id) const;
  /// It has processes here.
  bool is_live(RunId run) const;
  /// The database knows that it has begun.
  bool is_announced(RunId run) const;
  /// That attempt of a task, or a later one, is this worker's, and has not ended.
  bool is_here(TaskId id, std::uint32_t attempt) const;

  /// Takes nothing more.
  void close() { closed_ = true; }
  /// Ends all that run, as failed by the stop.
  void end_running();
  /// Nothing is on its way to the database.
  bool is_idle() const { return !in_flight_ && !telling_wait_; }
  /// The database is to know that we wait for tasks.
  bool is_waiting() const { return waiting_; }

 private:
  struct Attempt {
    std::int64_t fence = 0;
    std::string agent = {};
    std::string group = {};
    OnLost on_lost = OnLost::fail;
    std::uint32_t retries = 0;
    std::uint32_t spared = 0;
    std::string claim = {};  // JSON members of what it was claimed with, for a database that has forgotten it
    std::string env = {};    // likewise
    bool adopted = false;
    bool cancelling = false;
    bool ended_by_stop = false;
    bool never_began = false;
    bool made_here = false;  // its outcome: no keeper knows of it
    bool start_told = false;
    bool announced = false;  // and that was taken
    bool end_told = false;   // it is on its way
    bool concluded = false;  // the database has its end, or does not want it
    bool fenced = false;
    bool ended_as_fenced = false;  // by us, and nobody knows how it would have ended
    std::int64_t refused_by = 0;   // the timeline of the server that it is not ours at; another one may know less
    bool gone = false;
    bool told_again = false;    // after a failover: its keeper has been told
    base::Duration pause = {};  // before it is tried again, if it never began
    base::Duration claimed = {};
    std::optional<Started> started = {};
    std::optional<Outcome> outcome = {};
    std::optional<base::Duration> unread_since = {};  // its output, when it had ended
    OutputSender output;
  };
  using All = std::map<RunId, Attempt>;

  void set_poll_timer();
  void set_output_timer();
  void soon();
  void tell_wait();
  void flush();
  void add_starts(Report& report);
  void add_ends(Report& report);
  void add_output(Report& report);
  std::uint64_t add_output_of(Report& report, RunId run, Attempt& attempt, std::uint64_t left);
  bool is_end_ready(const All::value_type& each) const;
  bool has_end_to_tell(const All::value_type& each) const;
  bool may_run_again(RunId run, const Attempt& attempt) const;
  std::optional<OutputSender::Portion> last_output(RunId run, Attempt& attempt);
  void warn_of_unread(RunId run, const std::system_error& error);
  std::shared_ptr<Report> new_report();
  void send(const std::shared_ptr<Report>& report);
  void go_on();
  void take(const Report& report, const Answer& answer, bool claims_count);
  void take_claims(const Report& report, const Result& rows);
  void take_places(const Report& report, const Result& rows);
  Argument places() const;
  void take_claim(const Result& rows, std::size_t row);
  void take_rows(const Report& report, const Result& rows, bool claims_count);
  void sweep_for(const Report& report, RunId run);
  void log_end(RunId run, const Attempt& attempt, std::int64_t state) const;
  void take_unknown(const OwnAttempt& own);
  bool may_have_run(RunId run, const Attempt& attempt) const;
  static void describe(Attempt& attempt, const OwnAttempt& own);
  /// Its end was told, and may be told again after a failover.
  bool was_reported(std::int64_t fence) const;
  void take_forgotten();
  void take_given_up();
  void take_end(RunId run, std::int64_t state);
  void announce(RunId run, Attempt& attempt);
  static void take_back(Attempt& attempt);
  bool is_refused_here(const Attempt& attempt) const;
  void take_fenced(RunId run, bool end_is_told = false);
  void report_is_lost(const Report& report);
  std::size_t free_slots() const;
  std::string limits() const;
  std::vector<std::string> closed_groups() const;
  tl::expected<Assignment, std::string> assignment_of(RunId run, Attempt& attempt, std::string_view body) const;
  void start(RunId run, Attempt& attempt, std::string_view body);
  void put_back(RunId run, Attempt& attempt, base::Duration pause);
  void cancel(RunId run, Attempt& attempt);
  void on_started(RunId run, const Started& started);
  void on_ended(RunId run, const Outcome& outcome);
  void on_gone(RunId run);
  void on_never_began(RunId run, const std::string& why);
  void conclude(RunId run, Attempt& attempt);
  void forget_if_over(RunId run);
  void say_if_stopped() const;
  All::iterator find(TaskId task, std::int64_t fence);
  std::optional<base::UtcTime> usage_limit_of(RunId run, const Attempt& attempt) const;
  void remember_end(RunId run, const Attempt& attempt);
  void remember_told(const Report& report);
  std::string recovery_text(RunId run, const Attempt& attempt, std::size_t before) const;
  void tell_ends_again(const Membership::Calls::Recovery& recovery);

  transport::Loop& loop_;
  base::Log& log_;
  Line& line_;
  Membership& membership_;
  const Agents& agents_;
  Options options_;
  Calls calls_;
  Runner* runner_ = nullptr;
  std::set<RunId> recorded_;
  bool is_first_join_ = true;
  All attempts_;
  Shortages shortages_;
  OutputBudget budget_;
  std::map<std::string, UsageLimit, std::less<>> usage_limits_;
  std::vector<std::string> turns_;  // groups, the longest ago first
  std::mt19937 chance_;
  // Ends that were told in the last two minutes, for a database that has forgotten them.
  struct Reported {
    base::Duration at;
    RunId run;
    Attempt attempt;
    std::size_t size() const;
  };
  bool is_old(const Reported& reported) const;
  void forget_old_ends();

  std::deque<Reported> reported_;
  std::size_t reported_bytes_ = 0;
  std::set<std::int64_t> told_;                        // fences of ends that were taken, the newest of them
  std::set<std::pair<RunId, std::int64_t>> given_up_;  // while no daemon was here: a server may have forgotten that

  bool closed_ = false;
  UnderWay in_flight_;
  bool lost_claim_ = false;      // the answer to one never came: a beat tells what we have
  bool changing_ = false;        // the report that is on its way asks for tasks, or tells ends
  base::Duration changed_ = {};  // when the last such report was over
  bool wants_claim_ = false;
  bool waiting_ = false;               // the database knows that we wait
  bool found_less_ = false;            // the last full look left nothing that we could take: what comes wakes us
  base::TimePoint full_look_at_ = {};  // until then looks begin behind the places
  transport::Loop::Timer full_look_;
  std::map<std::int64_t, std::pair<std::int64_t, TaskId>> places_;  // by lane: priority and id of the last task taken
  UnderWay telling_wait_;                                           // it is being told
  bool woken_ = false;                                              // meanwhile
  transport::Loop::Timer poll_timer_;
  transport::Loop::Timer output_timer_;
  transport::Loop::Timer soon_timer_;
  base::Lifetime lifetime_;
};

}  // namespace duet::task::postgres
