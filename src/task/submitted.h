#pragma once

#include <functional>

#include <tl/expected.hpp>

#include "duet/rpc/error.h"
#include "task/committer.h"
#include "task/task.h"

namespace duet::task {

/// A task that was taken.
struct Accepted {
  TaskId id = 0;
  State state = State::queued;
  bool is_new = true;  ///< else its key had been given before
};

/// What is written together with a new task, or not at all.
struct Companion {
  std::function<void(StoreWriter&, TaskId)> write = {};
  Change::Kind kind = Change::Kind::request;  ///< a fact is no longer refused when the disk is
};

using Submitted = std::function<void(const tl::expected<Accepted, rpc::Error>&)>;

}  // namespace duet::task
