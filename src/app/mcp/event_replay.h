#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include <boost/json/object.hpp>

#include "app/mcp/daemon_link.h"
#include "duet/base/log.h"
#include "duet/peer/connection.h"

namespace duet::app::mcp {

/// What has happened from an event on, asked for once. The events come as `{seq, kind, task_id?}`. For the loop's
/// thread only; destroy it in a later turn than it answers in.
class EventReplay {
 public:
  static constexpr std::size_t most_events = 1000;
  static constexpr std::chrono::seconds patience{5};

  struct Result {
    std::vector<boost::json::object> events = {};
    std::uint64_t next = 0;  ///< the one that comes behind them
    bool missed = false;     ///< some are not kept any more
  };
  using Done = std::function<void(std::optional<Result>)>;

  /// `since`: none asks only for the next number. The answer comes once: none if there is none in time.
  EventReplay(transport::Loop& loop, DaemonLink::Channel channel, std::optional<std::uint64_t> since, Done done);
  EventReplay(const EventReplay&) = delete;
  EventReplay& operator=(const EventReplay&) = delete;
  ~EventReplay();

 private:
  void take_subscription(const peer::Outcome& outcome);
  void take_event(std::string_view method, std::string_view params);
  void finish(std::optional<Result> result);

  std::optional<std::uint64_t> since_;
  Done done_;
  peer::Methods no_methods_;
  base::Log silent_;
  std::optional<std::uint64_t> end_;
  Result result_;
  std::unique_ptr<peer::Connection> connection_;
  transport::Loop::Timer timer_;
};

}  // namespace duet::app::mcp
