#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "task/store_tables.h"
#include "task/task.h"
#include "task/task_queue.h"

namespace duet::task {

/// A task goes from one state to another, or stays in it with something changed.
struct Transition {
  TaskId id = 0;
  std::string agent = {};
  State from = State::queued;
  Progress to = {};
  std::optional<std::string> result = {};
  std::optional<Usage> usage = {};              ///< of the attempt that has ended
  bool is_news = false;                         ///< it is told, also if its state stays
  std::function<void(StoreWriter&)> also = {};  ///< what is written before it, in the same transaction
};

/// What writes it down and, in the same transaction, tells of it. A decision that is still to be carried out changes
/// nothing that anybody sees, and is not told.
std::function<void(StoreWriter&)> write_of(Transition transition);

/// Whether the event is that of a task that begins to run, or that has ended.
bool tells_start(const Event& event);
bool tells_end(const Event& event);

/// The event of a queued task in which something was changed that is not its state.
void tell_change(StoreWriter& writer, std::string_view kind, TaskId id, const QueuedTask& task,
                 const std::vector<std::string>& changed = {});

/// The event of a task that was taken, as write_of() tells the others.
void tell_queued(StoreWriter& writer, const NewTask& task);

}  // namespace duet::task
