#pragma once

#include <sys/types.h>

#include "duet/base/fd.h"

namespace duet::app {

/// The program, opened, that the daemon's process goes on as when the process `asking` has it restart: the one of
/// whoever asks, if that is this program in whatever version, so that a new one brings the daemon up to date; else the
/// daemon's own. The interpreter of a script or an editor that talks to the socket is no daemon. Empty, with the reason
/// in errno, if nobody can tell what asks.
base::Fd successor_for(pid_t asking);

}  // namespace duet::app
