#pragma once

#include <cstdint>
#include <functional>

#include "duet/base/log.h"
#include "duet/peer/methods.h"

namespace duet::app {

/// What the methods of `duet-rpc rpc` act on, besides the log.
struct StdioActions {
  std::function<void()> shut_down;                      ///< after the answer has been given
  std::function<void(std::int64_t pid)> watch_process;  ///< the client's, from `initialize`
};

/// Adds the six methods every client may call, and `rpc.discover`, which is not listed. The table must stay where it
/// is: the methods that describe it refer to it, and describe it as it is when they are called first.
void add_stdio_methods(peer::Methods& methods, base::Log& log, const StdioActions& actions);

}  // namespace duet::app
