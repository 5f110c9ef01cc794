#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include "duet/base/log.h"
#include "duet/transport/loop.h"
#include "task/ledger.h"
#include "task/store.h"

namespace duet::task {

/// Lets go of tasks that ended long ago, a few at a time: those older than `keep_days`, and the oldest ones beyond
/// `keep_tasks`. Their outputs go with them. The newest task stays whatever the settings say: the next id is counted on
/// from it. For the loop's thread only.
class Retention {
 public:
  struct Limits {
    std::size_t days = 30;
    std::size_t tasks = 10'000;
  };

  /// `is_busy` tells of a task whether anything of it still runs; `tasks` is the folder with the outputs.
  Retention(transport::Loop& loop, base::Log& log, Store& store, Ledger& ledger, Limits limits, int tasks,
            std::function<bool(TaskId)> is_busy);
  Retention(const Retention&) = delete;
  Retention& operator=(const Retention&) = delete;
  ~Retention();

  void set_limits(Limits limits);
  /// Looks whether there is too much: when something has ended, and by itself every hour after the first time.
  void look();

 private:
  std::vector<EndedTask> find_old() const;
  void remove(const std::vector<EndedTask>& old);

  transport::Loop& loop_;
  base::Log& log_;
  Store& store_;
  Ledger& ledger_;
  Limits limits_;
  int tasks_;
  std::function<bool(TaskId)> is_busy_;
  bool removing_ = false;
  std::optional<transport::Loop::Timer> timer_;
};

}  // namespace duet::task
