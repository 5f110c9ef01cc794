#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "duet/base/clock.h"
#include "task/task.h"

namespace duet::app::top {

/// A task as the screen knows it. All texts are of screen_text().
struct TaskRow {
  task::TaskId number = 0;
  task::State state = task::State::queued;
  bool has_record = false;  ///< else only an event has told of it
  std::string agent = {};
  std::string group = {};  ///< empty: the default one
  std::string prompt = {};
  std::string outcome = {};  ///< of an ended one, in a word: `completed`, `exit 7`, `SIGKILL`, `timeout`
  std::string error = {};    ///< of one that failed, in a sentence
  std::string output = {};   ///< its last line
  std::int64_t priority = 0;
  bool held = false;
  std::vector<task::TaskId> after = {};
  std::optional<base::UtcTime> not_before = {};  ///< a delay, or the next attempt
  std::optional<base::UtcTime> started = {};
  std::optional<base::UtcTime> ended = {};

  std::string id() const { return task::to_text(number); }
};

/// What holds back more than one task.
struct Hold {
  enum class Kind : std::uint8_t { daemon, queue, group, agent };  ///< daemon: it is stopping
  Kind kind = Kind::queue;
  std::string name = {};
  std::optional<base::UtcTime> until = {};
  bool operator==(const Hold&) const = default;
};

/// What is known of a daemon and its tasks, from records, events and answers.
///
/// It is told what came, in that order, and keeps what a person can look at: all that run, the queue as far as it is
/// bounded, and the tasks that ended last. Members that another version of the daemon lacks, or has in another shape,
/// are taken as absent. Pure: no I/O and no clock.
class Board {
 public:
  static constexpr std::size_t most_queued = 10'000;
  static constexpr std::size_t most_ended = 200;

  struct Status {
    std::string health = {};
    std::vector<std::string> problems = {};
    std::string version = {};
    std::int64_t pid = 0;
    std::int64_t most_running = 0;
  };
  struct Counts {
    std::int64_t queued = 0;
    std::int64_t running = 0;
    std::int64_t completed = 0;
    std::int64_t failed = 0;
    std::int64_t cancelled = 0;
  };
  /// Of the last minute.
  struct Rate {
    std::int64_t ended = 0;
    std::int64_t failed = 0;
  };

  void take_record(const boost::json::object& record);
  /// The beginning of the queue, by priority and age. If that is not all of it, tasks that belong behind it are not
  /// kept until the next such list: what stands between is not known.
  void take_beginning_of_queue(const boost::json::array& records, bool is_all);
  /// `kind` without `event.`. False: it tells of no task.
  bool take_event(std::string_view kind, const boost::json::object& params);
  void take_status(const boost::json::object& status);
  void take_counts(const boost::json::object& counts);
  void take_queue(const boost::json::object& queue);
  void set_output(task::TaskId number, std::string line);
  /// What waited for a time before `now` waits for its turn, and ends of long ago no longer count. Now and then.
  void let_pass(base::UtcTime now);
  /// It is not there any more.
  void forget(task::TaskId number);

  const TaskRow* find(task::TaskId number) const;
  /// In the order they started, in the order they are to start, the last one first.
  const std::vector<const TaskRow*>& running() const { return ordered().running; }
  const std::vector<const TaskRow*>& queued() const { return ordered().queued; }
  const std::vector<const TaskRow*>& ended() const { return ordered().ended; }
  /// Whether it waits for something else than its turn.
  bool is_kept_back(const TaskRow& row) const;
  std::size_t count_kept_back() const;
  /// The first task it comes after that has not ended.
  std::optional<task::TaskId> awaited(const TaskRow& row) const;

  /// Tasks whose records are to be asked for: new ones, and those that were changed.
  const std::set<task::TaskId>& stale() const { return stale_; }
  void asked_for(task::TaskId first, task::TaskId last);

  const Status& status() const { return status_; }
  const Counts& counts() const { return counts_; }
  const std::vector<Hold>& holds() const { return holds_; }
  bool is_paused() const;
  Rate rate(base::UtcTime now) const;

 private:
  struct Order {
    std::vector<const TaskRow*> running = {};
    std::vector<const TaskRow*> queued = {};
    std::vector<const TaskRow*> ended = {};
  };

  using Rank = std::pair<std::int64_t, task::TaskId>;  // smaller stands before

  static Rank rank_of(const TaskRow& row) { return {~row.priority, row.number}; }
  bool is_out_of_sight(const TaskRow& row) const;
  const Order& ordered() const;
  void put_in_order_of_start(std::vector<const TaskRow*>& rows) const;
  void order_anew() { order_.reset(); }
  std::size_t& rows_in(task::State state) { return rows_in_.at(static_cast<std::size_t>(state)); }
  TaskRow* row_for(task::TaskId number, task::State state);
  void change_state(TaskRow& row, task::State to);
  void note_end(const TaskRow& row);
  void drop_surplus();

  std::map<task::TaskId, TaskRow> rows_;
  std::set<task::TaskId> stale_;
  std::array<std::size_t, 5> rows_in_{};
  std::optional<Rank> last_known_;  // of the queue, if there is more of it
  Status status_;
  Counts counts_;
  std::vector<Hold> holds_;
  std::map<std::int64_t, std::map<task::TaskId, task::State>> ends_;  // by second; one may be told of twice
  mutable std::optional<Order> order_;
};

}  // namespace duet::app::top
