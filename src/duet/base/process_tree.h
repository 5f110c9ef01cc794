#pragma once

#include <sys/types.h>

#include <cstdint>
#include <vector>

namespace duet::base {

/// The processes that descend from `root`, without itself; parents stand before their children. One that is forked
/// meanwhile may be missing, so whoever wants to end them all looks again until none is left.
std::vector<pid_t> descendants(pid_t root);

/// Resident memory in bytes; 0 if there is no such process. Pages that processes share count for each.
std::uint64_t resident_memory(pid_t pid);

}  // namespace duet::base
