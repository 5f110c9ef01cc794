#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "duet/base/log.h"
#include "duet/transport/loop.h"
#include "task/run.h"
#include "task/store.h"

namespace duet::task {

/// Erases ended tasks, and tells so.
void erase_tasks(StoreWriter& writer, const std::vector<EndedTask>& tasks, std::string_view by);

/// Lets go of tasks that ended long ago, a few at a time: the oldest ones beyond `keep_tasks` and, once the daemon has
/// run for an hour, those older than `keep_days`. Their outputs go with them. The newest task stays whatever the
/// settings say: the next id is counted on from it. So does one with a handle, for a day. If the outputs of all tasks
/// take more room together than they may, those of the tasks that ended first go, and the records say so. For the
/// loop's thread only.
class Retention {
 public:
  struct Limits {
    std::size_t days = 30;
    std::size_t tasks = 10'000;
    std::uint64_t output_bytes = std::uint64_t{2} << 30U;
  };

  /// `is_busy` tells of a task whether anything of it still runs. `outputs` is the folder with the output files.
  Retention(transport::Loop& loop, base::Log& log, Store& store, StateCounts& counts, int outputs, Limits limits,
            std::function<bool(TaskId)> is_busy, std::function<void(RunId)> remove_output);
  Retention(const Retention&) = delete;
  Retention& operator=(const Retention&) = delete;

  void set_limits(Limits limits);
  /// A run that is over has left its output. Each once.
  void output_added(RunId run);
  /// Of a task that has gone.
  void remove_outputs(const EndedTask& task);
  /// What the outputs of all runs that are over take.
  std::uint64_t output_bytes() const { return output_bytes_; }
  /// From now on it looks; it does so by itself an hour after the first look() was asked for.
  void begin();
  /// Looks whether there is too much: when something has ended, and by itself every hour after the first time.
  void look();
  /// It is about to go.
  bool is_removing(TaskId id) const { return leaving_.contains(id); }

 private:
  void wait_an_hour();
  tl::expected<std::vector<EndedTask>, rpc::Error> find_old();
  void remove(const std::vector<EndedTask>& old);
  tl::expected<std::vector<EndedTask>, rpc::Error> find_output();
  void let_go_of_output();
  std::uint64_t written_by(RunId run) const;
  GoneOutput output_of(const EndedTask& task) const;

  transport::Loop& loop_;
  base::Log& log_;
  Store& store_;
  StateCounts& counts_;
  int outputs_;
  Limits limits_;
  std::function<bool(TaskId)> is_busy_;
  std::function<void(RunId)> remove_output_;
  std::uint64_t output_bytes_ = 0;
  std::uint64_t output_from_ = 0;  // no task that ended before has output: it is let go in this order
  bool has_begun_ = false;
  bool removing_ = false;
  std::set<TaskId> leaving_;
  base::UtcTime oldest_kept_ = base::UtcTime::min();
  std::uint64_t look_from_ = 0;  // those that ended before are to stay, for an hour at least
  bool is_cut_short_ = false;    // of the last look: so many are to stay that it did not come to the others
  transport::Loop::Timer timer_;
  transport::Loop::Deferred next_look_;
};

}  // namespace duet::task
