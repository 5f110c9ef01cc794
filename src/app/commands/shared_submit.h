#pragma once

#include <string>

namespace duet::app {

class DaemonClient;

/// The name that the daemon has in the queue that it shares with others; empty: it shares none. A daemon of this
/// project has written it into its state folder; one that is known by its socket only, or is of another machine, is
/// asked.
std::string shared_worker(DaemonClient& daemon);

/// One that nobody else has.
std::string new_submit_key();

/// What task.submit answers to params that have a key. While the daemon cannot say whether the task was taken
/// (`data.outcome` is "unknown") it is asked again, until the command's time is over. Throws Failure.
std::string submit_until_certain(DaemonClient& daemon, const std::string& params);

}  // namespace duet::app
