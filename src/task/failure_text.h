#pragma once

#include "task/run.h"
#include "task/task.h"

namespace duet::task {

/// Why a run that did not succeed has failed, for the record of its task.
Failure failure_of(const Outcome& outcome);

/// The same of one that the daemon ended when it was stopped, whatever it made of that.
Failure failure_by_stop();

}  // namespace duet::task
