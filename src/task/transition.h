#pragma once

#include <functional>
#include <optional>
#include <string>

#include "task/store_tables.h"
#include "task/task.h"

namespace duet::task {

/// A task goes from one state to another, or stays in it with something changed.
struct Transition {
  TaskId id = 0;
  std::string agent = {};
  State from = State::queued;
  Progress to = {};
  std::optional<std::string> result = {};
};

/// What writes it down and, in the same transaction, tells of it. A decision that is still to be carried out changes
/// nothing that anybody sees, and is not told.
std::function<void(StoreWriter&)> write_of(Transition transition);

/// Whether the event is that of a task that begins to run, or that has ended.
bool tells_start(const Event& event);
bool tells_end(const Event& event);

/// The event of a task that was taken, as write_of() tells the others.
void tell_queued(StoreWriter& writer, TaskId id, const std::string& agent);

}  // namespace duet::task
