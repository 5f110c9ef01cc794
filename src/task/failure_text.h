#pragma once

#include "task/run.h"
#include "task/task.h"

namespace duet::task {

/// Why a run that did not succeed has failed, for the record of its task.
Failure failure_of(const Outcome& outcome);

}  // namespace duet::task
