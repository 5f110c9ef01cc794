#pragma once

#include <chrono>
#include <functional>
#include <memory>
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
/// stops. Asked again it only gets quicker, and ends more: `force` counts at any time, a drain ends when a plain stop
/// comes, tasks that were to be left are ended after all, and a program to go on as is taken back. For the loop's
/// thread.
class DaemonEnd {
 public:
  struct Limits {
    base::Duration last_answers = std::chrono::seconds(2);  // for clients that do not read
  };
  /// Ends or leaves what runs, and calls `done` when that is over. May be called again with `force`, or without
  /// `leave_tasks`; then only the last `done` counts.
  using EndWork = std::function<void(const StopRequest&, std::function<void()> done)>;

  /// Tells all clients of an event.
  using Tell = std::function<void(std::string_view kind, boost::json::object params)>;

  DaemonEnd(transport::Loop& loop, base::Log& log, peer::Server& server, Tell tell, const ServiceManager& manager)
      : DaemonEnd(loop, log, server, std::move(tell), manager, Limits()) {}
  DaemonEnd(transport::Loop& loop, base::Log& log, peer::Server& server, Tell tell, const ServiceManager& manager,
            Limits limits);
  DaemonEnd(const DaemonEnd&) = delete;
  DaemonEnd& operator=(const DaemonEnd&) = delete;

  /// Further doors. They take nobody any more as soon as the end begins, unlike the server, by which a stop can be
  /// watched and hurried; who is there stays until the work has ended.
  struct Doors {
    std::function<std::size_t()> count;  ///< of connections
    std::function<void()> take_nobody;
    std::function<void(bool restarting)> stop;  ///< what is under way is answered
  };
  void set_doors(Doors doors) { doors_ = std::move(doors); }

  /// Without it there is nothing to end.
  void set_work(EndWork end_work) { end_work_ = std::move(end_work); }

  /// `reason` goes to the log, and to clients as the reason of `event.daemonStopping`.
  void begin(std::string_view reason, const StopRequest& request);
  bool has_begun() const { return begun_; }
  /// The last client of the server, or of another door, has gone; whoever builds them sees to it that this is called.
  void clients_gone();
  /// What to go on as; none if it is the end.
  const std::shared_ptr<const base::Fd>& successor() const { return successor_; }

 private:
  void take_successor_back(std::string_view reason);
  void end_work(const StopRequest& request);
  void close_doors();
  bool has_clients() const { return server_.client_count() > 0 || (doors_.count && doors_.count() > 0); }

  transport::Loop& loop_;
  base::Log& log_;
  peer::Server& server_;
  Tell tell_;
  const ServiceManager& manager_;
  Limits limits_;
  EndWork end_work_;
  Doors doors_;
  bool begun_ = false;
  bool forced_ = false;
  bool leaves_tasks_ = false;
  bool drains_ = false;
  int times_work_was_ended_ = 0;
  std::shared_ptr<const base::Fd> successor_;
  bool restarts_ = false;
  bool doors_closed_ = false;
  transport::Loop::Timer timer_;
};

}  // namespace duet::app
