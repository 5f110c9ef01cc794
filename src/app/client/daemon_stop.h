#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include <boost/json/object.hpp>

#include "app/client/daemon_client.h"
#include "duet/base/clock.h"

namespace duet::app {

/// The ids of the tasks that run, as far as the daemon tells in time.
std::vector<std::string> running_tasks(DaemonClient& daemon);

/// `task-1, task-2 and 3 more`; empty for none.
std::string in_words(const std::vector<std::string>& ids);

/// Asks the daemon to stop and waits until its process has ended; one of another machine, until it cannot be reached
/// any more. Meanwhile it says on stderr what it waits for: every second on a terminal, once elsewhere. Returns the pid
/// it had. Throws Failure, also when `patience` is over.
pid_t stop_daemon(DaemonClient& daemon, const boost::json::object& params, base::Duration patience);

/// The same for one of this machine that somebody else has asked to stop.
void wait_until_stopped(DaemonClient& daemon, pid_t pid, base::Duration patience);

}  // namespace duet::app
