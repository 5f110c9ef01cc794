#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "duet/base/lifetime.h"
#include "duet/base/log.h"
#include "duet/transport/loop.h"
#include "task/cluster_settings.h"
#include "task/postgres/line.h"
#include "task/postgres/liveness.h"
#include "task/postgres/server_check.h"
#include "task/postgres/under_way.h"
#include "task/postgres/worker_memory.h"

namespace duet::task::postgres {

/// An attempt that the database believes this worker to have.
struct OwnAttempt {
  TaskId task = 0;
  std::int64_t fence = 0;
  std::uint32_t attempt = 0;
  bool started = false;
  bool cancelling = false;
  OnLost on_lost = OnLost::fail;
  std::string agent = {};
  std::uint32_t retries = 0;
  std::uint32_t spared = 0;
};

/// What a worker tells of itself when it joins and with each beat.
struct WorkerOffer {
  std::size_t slots = 0;
  bool waiting = false;  ///< for tasks
  std::vector<std::string> labels = {};
  std::vector<std::string> accepts = {};  ///< agents that tasks of others may use here
  std::vector<std::string> agents = {};   ///< all that it has
};

/// This daemon as a worker of the queue: joins it, beats, judges who else is still heard of, and keeps the books that
/// belong to nobody (due tasks, retention, event numbers, wake-ups). It knows the lease, and what a failover asks for.
///
/// No leader: what it does for all is harmless if two do it. It does not run tasks. For the loop's thread only; the
/// line outlives it.
class Membership {
 public:
  struct Calls {
    std::function<WorkerOffer()> offer;
    /// It has joined, for the first time or under a new incarnation: it has these attempts, and no others.
    std::function<void(const std::vector<OwnAttempt>&)> joined;
    /// Its place was taken by another: it has no attempts at all.
    std::function<void()> given_up = [] {};
    /// A beat was answered. All attempts that were known to be claimed when it was sent and are not in `mine` are not
    /// ours any more.
    struct Beat {
      base::Duration sent = {};
      std::set<std::pair<TaskId, std::int64_t>> mine = {};
      std::vector<OwnAttempt> own = {};  ///< the same, at length
      std::vector<std::pair<TaskId, std::int64_t>> cancels = {};
    };
    std::function<void(const Beat&)> beaten;
    /// On a new timeline: JSON of what runs, and of what has ended in the last two minutes, for `recover_v1`.
    std::function<std::string()> remembered;
    /// What the server made of that.
    struct Recovery {
      std::vector<std::int64_t> fenced = {};              ///< not ours any more
      std::map<std::int64_t, std::uint64_t> output = {};  ///< of the others, by fence: how far the database has it
    };
    std::function<void(const Recovery&)> recovered;
    /// Nothing of it is on its way to the database: what is remembered is what there is.
    std::function<bool()> is_quiet;
    /// Tasks may have become ready; or what keeps us from claiming has changed.
    std::function<void()> look;
    /// It has slots free for what it would find.
    std::function<bool()> has_room = [] { return false; };
    /// Old tasks were removed.
    std::function<void()> removed;
    /// Events were numbered.
    std::function<void()> numbered;
    /// The lease holds until then, by CLOCK_BOOTTIME.
    std::function<void(base::Duration deadline, base::Duration lease)> extend;
    /// What is wrong; empty: nothing any more.
    std::function<void(const std::string& problem)> problem;
    std::function<std::string()> read_memory;
    /// False: it could not be written, which was logged.
    std::function<bool(const std::string& text)> write_memory;
  };
  struct Options {
    std::string schema = "duet";
    std::string place = {};  ///< of the state folder, see WorkerMemory
    std::string version = {};
    std::function<base::Duration()> boottime = {};
    std::uint32_t seed = 0;
  };

  static constexpr int protocol = queue_protocol;
  static constexpr const char* fenced_state = "DU001";  ///< of a call whose worker or incarnation is not the row's
  static constexpr const char* untold_state = "DU004";  ///< the server has taken over, and was not told what we have

  Membership(transport::Loop& loop, base::Log& log, Line& line, ClusterSettings settings, Options options, Calls calls);
  Membership(const Membership&) = delete;
  Membership& operator=(const Membership&) = delete;

  /// For Line::Events.
  void greet(Line::Way way, const Line::Ask& ask, const Line::Verdict& verdict);
  void line_is_up();
  void line_is_down(const std::string& why);

  bool is_joined() const { return joined_; }
  /// What is remembered was written in another folder, of which this one is a copy.
  bool is_copy() const { return copied_; }
  /// A daemon before was this worker, and has not left.
  bool was_member() const { return memory_.worker != 0; }
  /// Why it cannot join, if that will not pass by itself.
  const std::string& refusal() const { return refusal_; }
  bool may_claim() const { return joined_ && !draining_ && !recovering_ && settings_.run && !is_lease_over(); }
  std::int64_t worker() const { return memory_.worker; }
  const std::string& incarnation() const { return memory_.incarnation; }
  const std::string& queue() const { return queue_; }
  const std::string& epoch() const { return epoch_; }
  std::uint64_t next_seq() const { return next_seq_; }
  bool is_draining() const { return draining_; }
  /// Others may have given us up.
  bool is_lease_over() const;
  /// What runs here is being told again: until that is known nothing else is to be told of it.
  bool is_telling_again() const { return static_cast<bool>(recovering_here_) || told_timeline_ != memory_.timeline; }
  /// The newest timeline that was seen.
  std::int64_t timeline() const { return memory_.timeline; }
  /// The timeline of the server that was told.
  std::int64_t told_timeline() const { return told_timeline_; }
  /// It knows what others have.
  bool has_beaten() const { return joined_ && has_beaten_; }
  /// All agents that some worker has, also one that is silent.
  bool is_agent_known(const std::string& agent) const { return agents_.contains(agent); }
  /// A live worker has it: `limit=memory`.
  bool is_limit_known(const std::string& label) const { return limits_.contains(label); }
  std::string own_channel() const { return options_.schema + "_w" + std::to_string(memory_.worker); }
  std::string events_channel() const { return options_.schema + "_events"; }
  base::Duration now() const { return options_.boottime(); }
  /// When the last beat that was answered was sent.
  base::Duration last_beat() const { return last_beat_; }

  /// Calls a function with this worker and its incarnation as its first arguments. Who is told that it is fenced joins
  /// anew; the caller hears of the fault.
  void call(Line::Way way, std::string_view function, std::vector<Argument> arguments, Line::Done done);

  void change_settings(ClusterSettings settings);
  void beat_soon();
  /// Calls when a beat that is sent from now on was answered, or cannot be: what is known of the others is of now then,
  /// or as new as it will get.
  void after_beat(std::function<void()> call);
  /// Something was written that others want to hear of.
  void number_soon();
  /// Tasks of these lanes have become ready. Where we have room others hear only of what our own look has left, but for
  /// lanes that such a look found nothing in.
  void wake(std::int32_t lane, std::int64_t count);
  /// We have taken a task of that lane.
  void took(std::int32_t lane);
  /// A look for tasks was answered.
  void looked();
  /// A task is due then: nobody else may know.
  void sweep_in(base::Duration wait);
  void sweep_when(base::UtcTime due);
  /// The worker is gone from the queue when this calls, or cannot be reached, or has still to tell what it had.
  /// `false`: it has not left, because another server has taken over and hears first what it had. To be tried again
  /// then.
  void leave(std::function<void(bool has_left)> left);
  /// No more beats: the daemon ends, and its worker stays in the queue.
  void stop();
  /// Events were seen that happened then.
  void saw_event_at(std::int64_t milliseconds);

 private:
  /// `seen`: the time of the newest event that was known when it was asked.
  std::optional<std::string> check(const boost::json::object& hello, std::int64_t seen);
  std::string take_hello_fault(const Fault& fault);
  void join();
  void join_later();
  void take_join(const Answer& answer, base::Duration told_lease);
  base::Duration lost_after(base::Duration lease) const;
  void take_join_refusal(const Fault& fault);
  void rejoin();
  void recover();
  void greet_anew();
  void begin_work();
  void come_back();
  void beat();
  void take_beat(base::Duration sent, const Result& answer);
  void judge(base::Duration sent, const boost::json::object& answer);
  void give_up(const Liveness::Verdict& verdict);
  void take_ready(const boost::json::object& answer);
  void set_beat_timer();
  void call_after_beat();
  void sweep();
  void ask_for_sweep(base::Duration wait);
  void number();
  void wake_in(base::Duration wait);
  void extend(base::Duration sent, base::Duration told);
  void send_wakes();
  bool remember(const WorkerMemory& memory);
  void note_timeline(Line::Way way, std::int64_t timeline);
  base::Duration jittered(base::Duration time);

  transport::Loop& loop_;
  base::Log& log_;
  Line& line_;
  ClusterSettings settings_;
  Options options_;
  Calls calls_;
  WorkerMemory memory_;
  std::int64_t written_event_ms_ = 0;  // the newest that is on disk
  std::mt19937 chance_;

  bool copied_ = false;
  bool joined_ = false;
  UnderWay joining_;
  UnderWay beating_;
  bool beat_again_ = false;
  bool has_beaten_ = false;  // and was answered
  transport::Loop::Timer after_beat_timer_;
  std::vector<std::function<void()>> after_beat_;      // one that was not sent yet
  std::vector<std::function<void()>> after_this_one_;  // the one under way
  UnderWay recovering_here_;                           // what we run is being told again
  bool left_ = false;
  bool draining_ = false;
  bool recovering_ = false;
  std::string refusal_;
  std::string queue_;
  std::string epoch_;
  std::uint64_t next_seq_ = 1;
  std::int64_t told_timeline_ = 0;               // of the server when we last told what we run
  std::int64_t recovered_timeline_ = 0;          // the same, as the database has confirmed
  std::map<Line::Way, std::int64_t> timelines_;  // of the servers that the ways lead to
  std::set<std::string, std::less<>> agents_;
  std::set<std::string, std::less<>> limits_;
  base::Duration last_beat_ = {};    // when the last answered one was sent
  base::Duration lease_since_ = {};  // likewise, or when the last answered join was
  base::Duration shortest_lease_;
  base::Duration kept_lease_;  // that the keepers know of
  Liveness liveness_;

  UnderWay numbering_;
  bool number_again_ = false;
  UnderWay sweeping_;
  bool sweep_again_ = false;  // something has become due since the one under way was sent
  std::map<std::int32_t, std::int64_t> ready_;
  std::optional<base::TimePoint> sweep_at_;
  std::optional<std::int64_t> sweeper_;  // a worker that could, as of the last beat
  std::optional<base::TimePoint> nudged_at_;
  base::TimePoint woke_at_ = {};
  std::set<std::int32_t> others_lanes_;  // that we found nothing in when there was something, until we take of them
  base::TimePoint numbered_at_ = {};
  transport::Loop::Timer beat_timer_;
  transport::Loop::Timer join_timer_;
  transport::Loop::Timer recover_timer_;
  transport::Loop::Timer sweep_timer_;
  transport::Loop::Timer number_timer_;
  transport::Loop::Timer wake_timer_;
  base::Lifetime lifetime_;
};

}  // namespace duet::task::postgres
