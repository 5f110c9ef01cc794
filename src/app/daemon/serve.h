#pragma once

#include <optional>
#include <string>

#include "app/cli/command_line.h"
#include "app/project/project.h"
#include "app/project/state_folder.h"
#include "duet/base/fd.h"

namespace duet::app {

/// Runs the project's daemon in this process until it is told to stop; returns the exit code. Throws Failure for a
/// start that is not possible.
///
/// `ready`: a pipe to whoever started a detached daemon. It is told `ready` once the daemon listens, or the reason why
/// it cannot, and the log goes to daemon.log. None: the daemon stays in the foreground.
int serve_project(const CommandLine& line, base::Fd ready);

/// Starts a daemon that is on its own, and returns its pid when it listens. Throws Failure with its reason if it does
/// not.
pid_t start_detached(const CommandLine& line);

/// Throws Failure if the settings or the state folder, as they are now, would keep a daemon from starting, or the files
/// of the TLS door if the settings open it, or `has_tls_door`: the daemon to be replaced has one.
void check_next_start(const CommandLine& line, bool has_tls_door);

/// Goes on as another program with the arguments of this one, as if it had been started again in the same place: its
/// process, and with it the service manager that watches it, stay. Returns if that is not possible, with the reason in
/// errno. `log`: the folder of a detached daemon, which writes to the log there what it has to say; null: it stays in
/// the foreground.
void go_on_as(const base::Fd& program, const Project& project, const StateFolder* log);

/// The pipe that start_detached() left to this process, if it is such a daemon.
base::Fd take_ready_pipe();

}  // namespace duet::app
