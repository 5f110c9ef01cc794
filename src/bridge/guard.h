#pragma once

#include <span>
#include <string_view>

namespace duet::bridge {

/// The argument that makes this program a guard: `duet-rpc --guard COMMAND…`. Not for people.
inline constexpr std::string_view guard_argument = "--guard";

/// The guard: a small process between us and one language server that sees to it that nothing of the server is left
/// when we are gone, however we went.
///
/// It starts `command` with its own standard streams, environment and folder, adopts whatever the server leaves behind,
/// and ends the whole tree (TERM, 2 s, KILL) when the server has ended, when it is told to, or (TERM, 1 s, KILL) when
/// descriptor 3, a socket to us, has no other end any more. It writes one packet each there: `started PID`, or `failed
/// CAUSE TEXT` with CAUSE a number of process::LaunchError::Cause, and `ended CODE SIGNAL`. It reads `end` and `kill`
/// (no TERM first). For a process that has done nothing else yet; returns its exit code when no process of the tree is
/// left.
int run_guard(std::span<const char* const> command);

/// The descriptor that the guard talks on.
inline constexpr int guard_control = 3;

}  // namespace duet::bridge
