#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include <boost/json/object.hpp>

#include "duet/base/lifetime.h"
#include "duet/transport/loop.h"
#include "task/output_follower.h"
#include "task/postgres/under_way.h"
#include "task/queue.h"

namespace duet::task::postgres {

/// Tells output of tasks that run elsewhere as it comes, while somebody here wants it. What cannot be asked for now is
/// asked for again, as long as it is wanted. Of many tasks some are asked for at a time: what is reported goes the same
/// way. For the loop's thread only.
class RemoteOutput {
 public:
  using State = tl::expected<boost::json::object, rpc::Error>;
  struct Calls {
    OutputFollower::Audience audience;
    /// What `read_output_state_v1` gives.
    std::function<void(TaskId, const std::function<void(const State&)>&)> state;
    std::function<void(const Queue::OutputQuestion&, const Queue::GotOutput&)> read;
    /// That attempt, or a later one, runs here.
    std::function<bool(TaskId, std::uint32_t attempt)> is_here;
    /// Not while there are events that come before.
    std::function<bool()> may_tell;
  };

  RemoteOutput(transport::Loop& loop, Calls calls) : loop_(loop), calls_(std::move(calls)) {}
  RemoteOutput(const RemoteOutput&) = delete;
  RemoteOutput& operator=(const RemoteOutput&) = delete;

  /// It runs, here or elsewhere; `from_start`: all of its last attempt is told, else what comes from now on.
  void add(TaskId id, bool from_start);
  /// They have ended: calls when all of their output is told, or a second later.
  void finish(const std::vector<TaskId>& ids, std::function<void()> done);
  void stop() { timer_.cancel(); }

 private:
  struct Told {
    bool from_start = false;
    std::optional<std::uint64_t> place = {};  // how far; none: it is not known yet where that begins
    std::uint32_t attempt = 0;                // of then
  };
  struct Finish {
    std::vector<TaskId> ids;
    std::function<void()> done;
    transport::Loop::Timer limit;
  };

  void look_later();
  void look();
  std::vector<TaskId> in_turn() const;
  void place(TaskId id);
  void take_state(TaskId id, const State& state);
  void read(TaskId id);
  void take_output(TaskId id, const tl::expected<Queue::Output, rpc::Error>& output);
  void forget(TaskId id);
  bool is_wanted(TaskId id, const Told& told) const;
  void finished(std::uint64_t number);

  transport::Loop& loop_;
  Calls calls_;
  std::map<TaskId, Told> tasks_;
  std::map<TaskId, UnderWay> asking_;  // since the last look
  TaskId last_ = 0;                    // that was asked for
  std::map<std::uint64_t, Finish> finishing_;
  std::uint64_t last_finish_ = 0;
  transport::Loop::Timer timer_;
  base::Lifetime lifetime_;
};

}  // namespace duet::task::postgres
