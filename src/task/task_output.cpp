#include "task/task_output.h"

#include <algorithm>

namespace duet::task {

OutputPiece read_task_output(int tasks, TaskId id, std::uint32_t attempts, std::uint64_t offset, std::size_t limit,
                             std::optional<Stream> stream, const GoneOutput& gone) {
  RunId run{id, gone.attempts + 1};
  std::uint64_t before = gone.bytes;
  const bool is_gone = offset < gone.bytes;
  offset = std::max(offset, gone.bytes);
  if (is_gone && stream) limit = 0;  // only that is told: a gap that a stream comes to may lie far behind
  for (; run.attempt < attempts; ++run.attempt) {
    const std::uint64_t total = read_output(tasks, run, 0, 0).total;
    if (offset < before + total) break;
    before += total;
  }
  OutputPiece piece = stream ? read_stream(tasks, run, *stream, offset - before, limit)
                             : read_output(tasks, run, offset - before, limit);
  piece.offset += before;
  piece.next += before;
  piece.total += before;
  for (OutputRange& part : piece.parts) part = {part.from + before, part.to + before};
  if (piece.dropped) piece.dropped = OutputRange{piece.dropped->from + before, piece.dropped->to + before};
  if (is_gone) piece.dropped = OutputRange{0, piece.dropped ? piece.dropped->to : gone.bytes};
  for (++run.attempt; run.attempt <= attempts; ++run.attempt) piece.total += read_output(tasks, run, 0, 0).total;
  return piece;
}

}  // namespace duet::task
