#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "duet/base/lifetime.h"
#include "duet/transport/loop.h"
#include "task/output_follower.h"
#include "task/postgres/line.h"
#include "task/postgres/under_way.h"
#include "task/queue.h"

namespace duet::task::postgres {

/// Tells output of tasks that run elsewhere as it comes, while somebody here wants it. One question at a time asks for
/// all of them; what cannot be asked for now is asked for again. For the loop's thread only.
class RemoteOutput {
 public:
  struct Calls {
    OutputFollower::Audience audience;
    /// Asks the database, if that can be asked now.
    Line::Ask ask;
    /// That attempt, or a later one of its task, runs here.
    std::function<bool(RunId)> is_here;
    /// Not while there are events that come before.
    std::function<bool()> may_tell;
  };

  RemoteOutput(transport::Loop& loop, Calls calls) : loop_(loop), calls_(std::move(calls)) {}
  RemoteOutput(const RemoteOutput&) = delete;
  RemoteOutput& operator=(const RemoteOutput&) = delete;

  /// Somebody may want what nobody wanted before: of what runs now all is told that comes from now on.
  void find();
  /// An attempt has started elsewhere: all of it is told.
  void add(RunId run);
  /// An attempt is here, and is told by others: of those before it the rest is told.
  void comes_here(RunId run);
  /// Everybody is told that it has ended.
  void ended(TaskId id);
  /// The numbers of events begin anew: what was passed over is not told any more.
  void begin_anew();
  /// Calls when all is told that these tasks have written by now, or a second later.
  void finish(const std::vector<TaskId>& ids, std::function<void()> done);
  /// Nothing is told or asked any more.
  void stop();

 private:
  struct Told {
    std::uint32_t attempt = 0;
    std::optional<std::uint64_t> place = {};  // how far; none: from where that attempt begins
    bool may_be_behind = false;               // `place`: a failover may have lost what was told before that attempt
    bool any = false;
    bool left = false;         // the attempt behind it is here, and told by others
    bool end_told = false;     // everybody knows that its task has ended
    bool over = false;         // all is told; while that end is not, an event that comes late tells nothing twice
    std::uint64_t serial = 0;  // another one: what was asked before is of another entry
  };
  struct Finish {
    std::set<TaskId> ids;
    std::uint64_t question = 0;  // the first that tells
    std::function<void()> done;
    transport::Loop::Timer limit;
  };
  struct Question {
    std::uint64_t number = 0;
    std::vector<std::pair<TaskId, std::uint64_t>> asked = {};  // with their serials
    std::size_t waited_for = 0;                                // the first of them, which are not in turn
  };
  enum class Step : std::uint8_t { none, some, more };  // `more` is there

  void ask_running();
  void take_running(const Answer& answer);
  void look_in(base::Duration wait);
  void look_soon();
  void look();
  std::vector<TaskId> waited_for() const;
  void add_in_turn(std::vector<TaskId>& ids) const;
  bool is_asked(TaskId id) const;
  void ask();
  void take(const Answer& answer, const Question& question);
  Step take_task(TaskId id, const Result& rows, std::pair<std::size_t, std::size_t> range);
  Step take_output(TaskId id, const Queue::Output& output, std::uint64_t end);
  void put(TaskId id, Told told);
  void forget_unwanted();
  void told_all(TaskId id, std::uint64_t question);
  void call_finished();

  transport::Loop& loop_;
  Calls calls_;
  std::map<TaskId, Told> tasks_;
  std::uint64_t last_serial_ = 0;
  UnderWay asking_;
  bool soon_ = false;  // there are some that were not asked for
  std::uint64_t questions_ = 0;
  TaskId last_ = 0;  // of those in turn that there was room for
  UnderWay finding_;
  bool find_again_ = false;
  std::map<std::uint64_t, Finish> finishing_;
  std::uint64_t last_finish_ = 0;
  transport::Loop::Timer timer_;
  transport::Loop::Timer find_timer_;
  bool stopped_ = false;
  base::Lifetime lifetime_;
};

}  // namespace duet::task::postgres
