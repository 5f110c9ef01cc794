#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "app/mcp/event_feed.h"

namespace duet::app::mcp {

/// Tells whoever waits for tasks of home that one may have ended, and whoever listens what has happened. It holds one
/// connection to the daemon, however many wait. For the loop's thread only.
class TaskWatch {
 public:
  using Ticket = std::uint64_t;
  /// `failure`: null, or why nothing more can be told.
  using Changed = std::function<void(const ToolError* failure)>;
  /// What has happened, for listeners. An empty kind: it is not known what, look at everything.
  using Happened = std::function<void(std::string_view kind, std::string_view task)>;

  explicit TaskWatch(std::function<std::unique_ptr<EventFeed>(EventFeed::Events)> make_feed)
      : make_feed_(std::move(make_feed)) {}
  TaskWatch(const TaskWatch&) = delete;
  TaskWatch& operator=(const TaskWatch&) = delete;

  /// `changed` is called when the watch has begun, and then whenever the task may have ended: whoever waits looks.
  Ticket wait(std::string task, Changed changed);
  void forget(Ticket ticket) { waits_.erase(ticket); }

  /// Whatever happens from now on, and that nothing is known for a while when the daemon comes. There is one listener.
  /// Unless it `starts_daemon`, one that runs is waited for. `live` is called when that holds, or there is no daemon to
  /// be had.
  void listen(Happened happened, bool starts_daemon, std::function<void()> live);
  void stop_listening() { happened_ = {}; }
  void set_outputs(std::set<std::string> tasks);

 private:
  EventFeed& feed();
  void take(std::string_view kind, const boost::json::object& params);
  void look_at_all(const ToolError* failure);

  struct Wait {
    std::string task;
    Changed changed;
  };
  std::function<std::unique_ptr<EventFeed>(EventFeed::Events)> make_feed_;
  std::unique_ptr<EventFeed> feed_;
  std::map<Ticket, Wait> waits_;
  Ticket last_ = 0;
  Happened happened_;
  bool starts_daemon_ = false;
};

}  // namespace duet::app::mcp
