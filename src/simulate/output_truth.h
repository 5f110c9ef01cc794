#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "task/output.h"
#include "task/run.h"
#include "task/task.h"

namespace duet::simulate {

/// All that can be read of a run's output, and what of it is said to be stderr's.
struct RunOutput {
  task::OutputPiece both;
  task::OutputPiece err;
};

/// What the processes of each run really wrote, as their keepers took it, and what must be read back of it.
///
/// What was taken is read back byte for byte. A gap may be where the disk refused a write, and is told of. A power cut
/// may take the output of a run whose end nobody was told of, of one whose keeper was killed before it could sync, and
/// of one whose sync failed.
class OutputTruth {
 public:
  // What happens to runs.
  void began(task::RunId run) { runs_[run] = {}; }
  /// `troubled`: the disk may have refused it.
  void took(task::RunId run, std::string_view bytes, bool troubled, task::Stream stream = task::Stream::out);
  void sync_failed(task::RunId run) { runs_[run].unsynced = true; }
  void keeper_killed(task::RunId run) { runs_[run].unkept = true; }
  /// `told`: everybody was told of its end before.
  void power_cut(task::RunId run, bool told);

  /// What is wrong with a piece of a task's output, if anything is; `done`: there is said to be no more.
  std::optional<std::string> check(task::TaskId id, std::uint32_t attempts, const task::OutputPiece& piece,
                                   bool done) const;
  /// The same for the whole output of one run that has ended.
  std::optional<std::string> check_run(task::RunId run, const RunOutput& output) const;
  /// All of its output so far is known to be where it should be.
  bool is_exact(task::TaskId id) const;
  /// One of its attempts has written so much and no more, as far as that is known.
  bool is_end(task::TaskId id, std::uint64_t offset) const;
  /// How much output a task has, if that is certain.
  std::optional<std::uint64_t> total(task::TaskId id) const;
  /// What its main process wrote.
  std::string_view written(task::RunId run) const { return find(run).bytes; }
  /// And to this stream; the result is the end of what went to stdout.
  std::string written(task::RunId run, task::Stream stream) const;

 private:
  struct Written {
    std::string bytes = {};
    std::vector<task::Stream> streams = {};  // of each byte
    bool troubled = false;                   // the disk may have refused some of it
    bool unsynced = false;                   // its keeper could not sync it
    bool unkept = false;                     // its keeper was killed
    bool open = false;  // the power was cut before its output was safe: all may be there, or nothing
    // All of it must be there, without a gap.
    bool is_exact() const { return !troubled && !open; }
    // What is there can be judged. A keeper that was killed may not have written down where it left gaps.
    bool is_known() const { return !open && !(troubled && unkept); }
  };
  const Written& find(task::RunId run) const;
  static std::optional<std::string> compare(std::string_view truth, const task::OutputPiece& piece, bool whole,
                                            bool exact);

  std::map<task::RunId, Written> runs_;
};

}  // namespace duet::simulate
