#include "task/task_output.h"

namespace duet::task {

OutputPiece read_task_output(int tasks, TaskId id, std::uint32_t attempts, std::uint64_t offset, std::size_t limit) {
  RunId run{id, 1};
  std::uint64_t before = 0;
  for (; run.attempt < attempts; ++run.attempt) {
    const std::uint64_t total = read_output(tasks, run, 0, 0).total;
    if (offset < before + total) break;
    before += total;
  }
  OutputPiece piece = read_output(tasks, run, offset - before, limit);
  piece.offset += before;
  piece.next += before;
  piece.total += before;
  if (piece.dropped) piece.dropped = OutputRange{piece.dropped->from + before, piece.dropped->to + before};
  for (++run.attempt; run.attempt <= attempts; ++run.attempt) piece.total += read_output(tasks, run, 0, 0).total;
  return piece;
}

}  // namespace duet::task
