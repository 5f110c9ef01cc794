#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "task/run.h"

namespace duet::task {

/// Who carries out runs for the supervisor: Keepers, or a fake in tests. Calls return at once; what becomes of a run is
/// told later, through KeeperEvents.
class Runner {
 public:
  virtual void start(const Assignment& assignment) = 0;
  virtual void adopt(RunId run) = 0;
  virtual void cancel(RunId run) = 0;
  virtual void follow(RunId run, std::uint64_t offset) = 0;
  virtual void acknowledge(RunId run) = 0;
  /// The run that a process is the keeper of, if it is one of those that are carried out.
  virtual std::optional<RunId> run_of_keeper(pid_t keeper) = 0;
  /// What the record of a run that has begun says; only in a queue that many machines share.
  virtual std::optional<LeftRun> left_by(RunId run) = 0;
  /// Every run whose output is there, and the end of one of them.
  virtual std::vector<RunId> outputs() = 0;
  virtual void remove_output(RunId run) = 0;

 protected:
  Runner() = default;
  Runner(const Runner&) = default;
  Runner& operator=(const Runner&) = default;
  ~Runner() = default;
};

}  // namespace duet::task
