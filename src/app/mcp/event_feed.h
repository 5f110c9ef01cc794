#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <boost/json/object.hpp>

#include "app/mcp/daemon_link.h"
#include "duet/base/lifetime.h"
#include "duet/base/log.h"
#include "duet/peer/connection.h"

namespace duet::app::mcp {

/// What happens in a project, from its daemon's journal, without a gap across the daemon's death: each new daemon is
/// asked for what came since.
///
/// It has one connection, from the first want() on, and asks for another when that goes as long as `is_needed` says so.
/// The end of a daemon is told as the event `daemonGone`. For the loop's thread only.
class EventFeed {
 public:
  struct Events {
    std::function<void(std::string_view kind, const boost::json::object& params)> on_event;
    std::function<void()> on_gap;                     ///< something may have been missed: look at everything again
    std::function<void(const ToolError&)> on_failed;  ///< there is no daemon to be had
    std::function<bool()> is_needed;
    std::function<bool()> may_start;  ///< a daemon; else one that runs is waited for
  };
  EventFeed(transport::Loop& loop, DaemonLink& link, Events events);
  EventFeed(const EventFeed&) = delete;
  EventFeed& operator=(const EventFeed&) = delete;
  ~EventFeed();

  /// Calls back when whatever happens from now on will be told, or when there is no daemon to be had.
  void want(std::function<void()> live);
  /// Of these tasks output is told, too, as `taskOutput`.
  void set_outputs(std::set<std::string> tasks);

 private:
  void connect();
  void connect_if_running();
  void open(DaemonLink::Channel channel);
  void subscribe();
  void take_subscription(const peer::Outcome& outcome);
  void take_event(std::string_view method, std::string_view params);
  void lost();

  transport::Loop& loop_;
  DaemonLink& link_;
  Events events_;
  peer::Methods no_methods_;
  base::Log silent_;
  std::unique_ptr<peer::Connection> connection_;
  bool is_connecting_ = false;
  bool is_live_ = false;
  bool was_away_ = false;  // since it was live
  std::string epoch_;
  std::optional<std::uint64_t> next_;
  std::set<std::string> outputs_;
  std::vector<std::function<void()>> waiting_;
  transport::Loop::Deferred dropping_;
  transport::Loop::Timer retry_;
  base::Lifetime lifetime_;
};

}  // namespace duet::app::mcp
