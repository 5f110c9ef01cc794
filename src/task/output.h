#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "task/output_marks.h"
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
  std::vector<OutputRange> parts = {};      ///< where the bytes are, if they are of one stream only; else in a row

  /// The offset of a byte, or of the one behind the last.
  std::uint64_t place_of(std::size_t byte) const;
};

/// Reads at most `limit` bytes from `offset` on, at any time: while a keeper writes, after its end, after its death.
/// An offset behind the end is taken for the end; a run without output has a total of 0. `tasks` is the folder with
/// the output files. Throws std::system_error if the file cannot be read.
OutputPiece read_output(int tasks, RunId run, std::uint64_t offset, std::size_t limit);

/// The same for what came from one stream, as far as that is known: what is mixed belongs to both. Bytes of the other
/// one are skipped, so `next` may be far behind the last byte, and there may be none. A gap is told whatever was in it.
OutputPiece read_stream(int tasks, RunId run, Stream stream, std::uint64_t offset, std::size_t limit);

/// What is kept of the last `size` bytes. A gap is a line end, since what stands on its two sides was never together.
/// Throws std::system_error.
std::string end_of_output(int tasks, RunId run, std::size_t size);

/// What of the output is missing, so far.
std::vector<OutputRange> dropped_output(int tasks, RunId run);

/// How much room it takes on the disk, with its marks.
std::uint64_t output_size(int tasks, RunId run);

/// Removes what is kept of an ended run. Nothing happens if there is nothing.
void remove_output(int tasks, RunId run);

}  // namespace duet::task
