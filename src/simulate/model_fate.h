#pragma once

#include <cstdint>

#include "simulate/model_database.h"

namespace duet::simulate {

/// What becomes of a task whose attempt is told to be over: `verdict` of 0001_6_report.sql. Pure.
enum class Fate { put_back, cancelled, stopped, spared, completed, again, failed };

/// `flags` are those of task::postgres::End; `has_retry`: a pause before another attempt is told.
Fate fate_of(const ModelTask& task, std::int64_t flags, bool is_ok, bool has_retry);
/// The task has ended.
bool is_end(Fate fate);
/// `pause`: it is to wait before it is tried again.
ModelTask::State state_of(Fate fate, bool pause);

}  // namespace duet::simulate
