#include "app/daemon/daemon_end.h"

#include <utility>

#include <boost/json/object.hpp>

namespace duet::app {

DaemonEnd::DaemonEnd(transport::Loop& loop, base::Log& log, peer::Server& server, Tell tell,
                     const ServiceManager& manager, Limits limits)
    : loop_(loop), log_(log), server_(server), tell_(std::move(tell)), manager_(manager), limits_(limits) {}

void DaemonEnd::begin(std::string_view reason, const StopRequest& request) {
  const bool first = !std::exchange(begun_, true);
  if (first) {
    successor_ = request.successor;
    leaves_tasks_ = request.leave_tasks;
    drains_ = request.drain;
    restarts_ = request.restarting || request.successor;
    log_.info("stopping", {{"reason", reason}});
    manager_.tell(successor_ ? "RELOADING=1" : "STOPPING=1");
  } else if (!request.successor) {
    take_successor_back(reason);
  }
  // A drain ends when somebody has less patience.
  const bool has_less_patience = drains_ && (!request.drain || request.patience);
  const bool is_quicker = (request.force && !forced_) || has_less_patience;
  const bool ends_more = leaves_tasks_ && !request.leave_tasks;
  if (!first && !is_quicker && !ends_more) return;
  forced_ = forced_ || request.force;
  drains_ = drains_ && request.drain;
  leaves_tasks_ = request.leave_tasks;
  // Not here: the answer to whoever asked comes first.
  loop_.defer([this, request, first, why = std::string(reason)] {
    if (first) {
      if (doors_.take_nobody) doors_.take_nobody();
      boost::json::object params{{"reason", why}};
      if (request.restarting) params["restarting"] = true;
      if (request.drain) params["draining"] = true;
      tell_("daemonStopping", std::move(params));
    }
    end_work(request);
  });
}

// Whoever asked for the stop was told that it stops.
void DaemonEnd::take_successor_back(std::string_view reason) {
  if (!successor_) return;
  successor_.reset();
  restarts_ = false;
  log_.info("stopping for good", {{"reason", reason}});
  manager_.tell("STOPPING=1");
}

void DaemonEnd::end_work(const StopRequest& request) {
  if (!end_work_) return close_doors();
  end_work_(request, [this, time = ++times_work_was_ended_] {
    if (time == times_work_was_ended_) close_doors();
  });
}

void DaemonEnd::close_doors() {
  if (std::exchange(doors_closed_, true)) return;
  server_.stop();
  if (doors_.stop) doors_.stop(restarts_);
  if (!has_clients()) return loop_.stop();
  timer_ = loop_.after(limits_.last_answers, [this] {
    log_.warn("a client did not read its last answers");
    loop_.stop();
  });
}

void DaemonEnd::clients_gone() {
  if (doors_closed_ && !has_clients()) loop_.stop();
}

}  // namespace duet::app
