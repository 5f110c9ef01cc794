#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "task/run.h"
#include "task/run_record.h"

namespace duet::task {

/// A piece of a run's output. Offsets count all that the task wrote, kept or not.
struct OutputPiece {
  std::uint64_t offset = 0;  ///< of the first byte here; behind the one that was asked for if that was dropped
  std::string bytes = {};
  std::uint64_t next = 0;                   ///< where to go on reading
  std::uint64_t total = 0;                  ///< how much was written so far
  std::optional<OutputRange> dropped = {};  ///< the gap that was skipped to come to `offset`
};

/// Reads at most `limit` bytes from `offset` on, at any time: while a keeper writes, after its end, after its death.
/// An offset behind the end is taken for the end; a run without output has a total of 0. `tasks` is the folder with
/// the output files. Throws std::system_error if the file cannot be read.
OutputPiece read_output(int tasks, RunId run, std::uint64_t offset, std::size_t limit);

/// What of the output is missing, so far.
std::vector<OutputRange> dropped_output(int tasks, RunId run);

/// Removes what is kept of an ended run. Nothing happens if there is nothing.
void remove_output(int tasks, RunId run);

}  // namespace duet::task
