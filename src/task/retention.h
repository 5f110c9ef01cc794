#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include "duet/base/log.h"
#include "duet/transport/loop.h"
#include "task/run.h"
#include "task/store.h"

namespace duet::task {

/// Lets go of tasks that ended long ago, a few at a time: the oldest ones beyond `keep_tasks` and, once the daemon has
/// run for an hour, those older than `keep_days`. Their outputs go with them. The newest task stays whatever the
/// settings say: the next id is counted on from it. For the loop's thread only.
class Retention {
 public:
  struct Limits {
    std::size_t days = 30;
    std::size_t tasks = 10'000;
  };

  /// `is_busy` tells of a task whether anything of it still runs.
  Retention(transport::Loop& loop, base::Log& log, Store& store, StateCounts& counts, Limits limits,
            std::function<bool(TaskId)> is_busy, std::function<void(RunId)> remove_output);
  Retention(const Retention&) = delete;
  Retention& operator=(const Retention&) = delete;

  void set_limits(Limits limits);
  /// Looks whether there is too much: when something has ended, and by itself every hour after the first time.
  void look();

 private:
  void wait_an_hour();
  tl::expected<std::vector<EndedTask>, rpc::Error> find_old() const;
  void remove(const std::vector<EndedTask>& old);

  transport::Loop& loop_;
  base::Log& log_;
  Store& store_;
  StateCounts& counts_;
  Limits limits_;
  std::function<bool(TaskId)> is_busy_;
  std::function<void(RunId)> remove_output_;
  bool removing_ = false;
  base::UtcTime oldest_kept_ = base::UtcTime::min();
  transport::Loop::Timer timer_;
};

}  // namespace duet::task
