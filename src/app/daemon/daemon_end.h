#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <boost/json/object.hpp>

#include "app/daemon/service_manager.h"
#include "app/methods/daemon_methods.h"
#include "duet/base/log.h"
#include "duet/peer/server.h"
#include "duet/transport/loop.h"

namespace duet::app {

/// How the project's daemon ends: no new work, what runs is given its time, every answer is written, then the loop
/// stops. Asked again it only gets quicker: `force` counts at any time. For the loop's thread.
class DaemonEnd {
 public:
  struct Limits {
    base::Duration last_answers = std::chrono::seconds(2);  // for clients that do not read
  };
  /// Ends or leaves what runs, and calls `done` when that is over. May be called again with `force`.
  using EndWork = std::function<void(const StopRequest&, std::function<void()> done)>;

  /// Tells all clients of an event.
  using Tell = std::function<void(std::string_view kind, boost::json::object params)>;

  DaemonEnd(transport::Loop& loop, base::Log& log, peer::Server& server, Tell tell, const ServiceManager& manager)
      : DaemonEnd(loop, log, server, std::move(tell), manager, Limits()) {}
  DaemonEnd(transport::Loop& loop, base::Log& log, peer::Server& server, Tell tell, const ServiceManager& manager,
            Limits limits);
  DaemonEnd(const DaemonEnd&) = delete;
  DaemonEnd& operator=(const DaemonEnd&) = delete;
  ~DaemonEnd();

  /// Without it there is nothing to end.
  void set_work(EndWork end_work) { end_work_ = std::move(end_work); }

  /// `reason` goes to the log, and to clients as the reason of `event.daemonStopping`.
  void begin(std::string_view reason, const StopRequest& request);
  bool has_begun() const { return begun_; }

 private:
  void close_door();

  transport::Loop& loop_;
  base::Log& log_;
  peer::Server& server_;
  Tell tell_;
  const ServiceManager& manager_;
  Limits limits_;
  EndWork end_work_;
  bool begun_ = false;
  bool forced_ = false;
  bool door_closed_ = false;
  std::optional<transport::Loop::Timer> timer_;
};

}  // namespace duet::app
