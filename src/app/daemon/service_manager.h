#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "duet/base/fd.h"

namespace duet::app {

/// What a service manager such as systemd offers to the processes it starts, by environment variables: a socket that
/// listens already, a place to tell how we are, and a watchdog that wants to hear from us. The variables are taken out
/// of the environment, so that no child takes them for its own.
class ServiceManager {
 public:
  ServiceManager();

  /// This process is its service: it was given a place to tell how we are, or a socket.
  bool is_there() const { return !address_.empty() || has_listener_; }
  /// The socket, once; none if there is none. Throws Failure for one that is no listening Unix stream socket.
  base::Fd take_listener();
  /// `READY=1` and the like; without a manager nothing happens.
  void tell(std::string_view state) const;
  /// Puts the variables and the socket back, for a program that this process goes on as.
  void hand_on() const;
  /// How often `WATCHDOG=1` is to be told, which is twice as often as it must be; nothing: nobody waits for it.
  std::optional<std::chrono::microseconds> watchdog() const { return watchdog_; }

 private:
  int listeners_ = 0;
  bool has_listener_ = false;
  std::string address_;
  base::Fd passed_;  // the listening socket, once more
  base::Fd socket_;  // kept: when descriptors run out, the watchdog is still told
  std::optional<std::chrono::microseconds> watchdog_;
};

}  // namespace duet::app
