#pragma once

#include <concepts>
#include <string>

#include "simulate/model_database.h"
#include "task/task.h"

namespace duet::simulate {

/// What things of a cluster are called.
inline std::string name_of(std::integral auto task) { return "task-" + std::to_string(task); }
inline std::string worker_name(std::size_t host) { return "worker-" + std::to_string(host); }
inline std::string prompt_of(const ModelTask& task) { return task::from_body(task.body).prompt; }

}  // namespace duet::simulate
