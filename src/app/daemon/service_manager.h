#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "duet/base/fd.h"

namespace duet::app {

/// What a service manager such as systemd offers to the processes it starts, by environment variables: sockets that
/// listen already, a place to tell how we are, and a watchdog that wants to hear from us. The variables are taken out
/// of the environment, so that no child takes them for its own.
class ServiceManager {
 public:
  ServiceManager();

  /// This process is its service: it was given a place to tell how we are, or a socket.
  bool is_there() const { return !address_.empty() || !names_.empty(); }
  struct Listeners {
    base::Fd unix;  ///< by whatever name
    base::Fd http;  ///< TCP, by that name, as the next one
    base::Fd tls;
  };
  /// The sockets, once. Throws Failure for one that is neither, and for a second one of a kind.
  Listeners take_listeners();
  /// `READY=1` and the like; without a manager nothing happens.
  void tell(std::string_view state) const;
  /// Puts the variables and the sockets back, for a program that this process goes on as.
  void hand_on() const;
  /// How often `WATCHDOG=1` is to be told, which is twice as often as it must be; nothing: nobody waits for it.
  std::optional<std::chrono::microseconds> watchdog() const { return watchdog_; }

 private:
  std::vector<std::string> names_;  // of the sockets that were passed, in their order
  bool taken_ = false;
  std::string address_;
  std::vector<base::Fd> passed_;  // these sockets, once more
  base::Fd socket_;               // kept: when descriptors run out, the watchdog is still told
  std::optional<std::chrono::microseconds> watchdog_;
};

}  // namespace duet::app
