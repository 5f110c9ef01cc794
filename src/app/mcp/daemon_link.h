#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/json/object.hpp>
#include <tl/expected.hpp>

#include "app/client/project_socket.h"
#include "app/mcp/tool_result.h"
#include "duet/base/clock.h"
#include "duet/base/log.h"
#include "duet/transport/channel.h"
#include "duet/transport/loop.h"
#include "process/piped_child.h"

namespace duet::app::mcp {

/// The way to one project's daemon: finds it, starts it if none runs, and knows whether a person has stopped it.
///
/// It makes channels and has none itself. A daemon is started as `daemon start --idle 30m` does, by one process for
/// all who wait; whoever else starts one at the same time gets the same. For the loop's thread only.
class DaemonLink {
 public:
  static constexpr std::chrono::seconds start_patience{10};

  using Channel = std::unique_ptr<transport::Channel>;
  /// The daemon that this process is, if it is one: it is reached without a socket.
  struct Inside {
    std::string root;
    std::function<Channel()> connect;  ///< null: it ends
  };
  struct Rules {
    bool may_start = true;
    bool is_traced = false;
    std::optional<Inside> inside = {};
  };
  using Connected = std::function<void(tl::expected<Channel, ToolError>)>;

  DaemonLink(transport::Loop& loop, base::Log& log, std::string root, Rules rules);
  DaemonLink(const DaemonLink&) = delete;
  DaemonLink& operator=(const DaemonLink&) = delete;
  ~DaemonLink() = default;

  /// Now or later, exactly once, unless this is destroyed before. A daemon is started if that may be.
  void connect(Connected connected);
  /// Only to one that runs: null if none does.
  Channel try_connect();

  /// Why none would be started now; none: it would be.
  std::optional<ToolError> refusal_to_start() const;

  /// The params of an `event.daemonStopping`.
  void note_stopping(const boost::json::object& params);
  const std::string& root() const { return root_; }

 private:
  bool is_inside() const { return rules_.inside && rules_.inside->root == root_; }
  void start();
  void start_ended(const process::ExitStatus& status);
  void look_again();
  void give(const ToolError& error);
  ToolError not_started(const std::string& said) const;
  void give_channels();
  std::optional<pid_t> pid() const;

  transport::Loop& loop_;
  base::Log& log_;
  std::string root_;
  Rules rules_;
  std::unique_ptr<ProjectSocket> socket_;
  bool was_stopped_ = false;      // by a person
  std::optional<pid_t> stopped_;  // which; it takes connections until it ends
  bool is_restarting_ = false;
  std::vector<Connected> waiting_;
  base::TimePoint deadline_;
  std::unique_ptr<process::PipedChild> starter_;
  transport::Loop::Timer timer_;
  transport::Loop::Deferred forgetting_;
};

}  // namespace duet::app::mcp
