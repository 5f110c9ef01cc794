#pragma once

#include <functional>
#include <memory>

#include <boost/json/object.hpp>

#include "duet/base/clock.h"
#include "duet/base/fd.h"
#include "duet/peer/methods.h"

namespace duet::app {

/// How a daemon is asked to stop.
struct StopRequest {
  bool force = false;                              ///< running tasks are not given time to finish
  bool leave_tasks = false;                        ///< they go on, for the next daemon
  std::shared_ptr<const base::Fd> successor = {};  ///< a program, opened, that this process goes on as
};

/// What the methods need from the daemon.
struct DaemonActions {
  std::function<boost::json::object()> status;
  std::function<void(StopRequest)> stop;  ///< begins once the answer is on its way; throws rpc::Error if it refuses
};

/// `ping`, `daemon.status`, `daemon.stop`, and the methods that describe all methods.
void add_daemon_methods(peer::Methods& methods, const base::Clock& clock, const DaemonActions& actions);

}  // namespace duet::app
