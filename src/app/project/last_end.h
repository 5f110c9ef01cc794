#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "app/project/state_folder.h"

namespace duet::app {

/// How a daemon ended that was not stopped.
struct LastEnd {
  pid_t pid = 0;
  std::string how;  ///< `ended by SIGSEGV`, `was killed or the machine went down`
  std::string at;   ///< empty: not known
};

/// Of the daemon before: nothing if it was stopped, or never was. For whoever knows that none runs. A daemon that stops
/// removes daemon.pid; one that was not stopped leaves it, and its last words in daemon.last if it could say any.
std::optional<LastEnd> read_last_end(const StateFolder& folder);

/// `the last one, pid 7, ended by SIGSEGV at 2026-11-15T09:30:00.123Z`
std::string to_text(const LastEnd& end);

}  // namespace duet::app
