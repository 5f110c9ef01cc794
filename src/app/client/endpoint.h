#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "app/project/failure.h"
#include "duet/transport/channel.h"
#include "duet/transport/loop.h"

namespace duet::app {

/// Where a daemon answers, and how to get there: a Unix socket of this machine (ProjectSocket), or TLS (FarDaemon).
///
/// A connection is a channel of the given loop, not open yet, over which lines go. All of it blocks, no longer than
/// `patience`.
class Endpoint {
 public:
  virtual ~Endpoint() = default;

  /// Throws Failure: exit_code::no_daemon, nobody is there; exit_code::no_answer, not in time; exit_code::failed, to
  /// try again would be in vain.
  virtual std::unique_ptr<transport::Channel> connect(transport::Loop& loop, std::chrono::milliseconds patience) = 0;
  /// One attempt that takes a moment only. Null: nobody is there now. Throws Failure if to try again would be in vain.
  virtual std::unique_ptr<transport::Channel> try_connect(transport::Loop& loop) = 0;
  /// Why the last connection has ended, if the daemon would not have us: to try again would be in vain.
  virtual std::optional<Failure> refusal() const { return std::nullopt; }
  /// Which daemon it is, for people.
  virtual std::string place() const = 0;
};

}  // namespace duet::app
