#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "task/output.h"
#include "task/task.h"

namespace duet::task {

/// The output of a task: that of its attempts, one after the other, so that offsets go on when it is tried again.
/// `tasks` is the folder with the output files. Throws std::system_error if one cannot be read.
/// Without a stream both are read. What is `gone` is told as dropped.
OutputPiece read_task_output(int tasks, TaskId id, std::uint32_t attempts, std::uint64_t offset, std::size_t limit,
                             std::optional<Stream> stream = {}, const GoneOutput& gone = {});

}  // namespace duet::task
