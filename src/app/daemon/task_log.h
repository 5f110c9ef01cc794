#pragma once

#include "duet/base/log.h"
#include "task/store.h"

namespace duet::app {

/// Tells the log, at level info, what became of a task: queued again, started, ended and how; and that an agent is held
/// or released. A reader of the journal.
/// Of what a task was asked to do, and of what it wrote, nothing is logged. A new task is not its business: the
/// supervisor, which knows it without reading an event, logs that it was accepted.
void log_task_event(base::Log& log, const task::Event& event);

}  // namespace duet::app
