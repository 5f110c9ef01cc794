#pragma once

#include <functional>
#include <list>
#include <memory>
#include <vector>

#include "simulate/daemon.h"
#include "simulate/event_client.h"

namespace duet::simulate {

/// The clients that listen to events. Each has a pace at which it reads; when the daemon is gone, so are their
/// connections, and they come again to the next one.
class Audience {
 public:
  /// Does something as the daemon's process.
  using AsDaemon = std::function<void(const std::function<void()>&)>;

  Audience(Population& population, Model& model, AsDaemon as_daemon);
  Audience(const Audience&) = delete;
  Audience& operator=(const Audience&) = delete;
  ~Audience() = default;

  /// One of them does something: comes, goes, subscribes.
  void act(Daemon& daemon);
  /// What was sent to them may still be read, unless the power is cut.
  void daemon_is_gone(bool power_cut);
  /// All of them, now.
  void read_all();
  void check_complete();

 private:
  struct Listener {
    std::unique_ptr<EventClient> client;
    base::Duration slowest = {};
    std::size_t most_bytes = 0;
    std::shared_ptr<bool> reading = {};  // a read is on the agenda
  };

  void connect(Listener& listener, Daemon& daemon);
  void read_later(Listener& listener);

  Population& population_;
  AsDaemon as_daemon_;
  Random chance_;
  std::vector<Listener> listeners_;
};

}  // namespace duet::simulate
