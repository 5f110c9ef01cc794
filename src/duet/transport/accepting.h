#pragma once

#include "duet/base/fd.h"
#include "duet/transport/acceptor.h"
#include "duet/transport/loop.h"

namespace duet::transport {

/// What all acceptors over listening sockets have in common: one client a turn, and a pause while there is no room or
/// no descriptor.
class Accepting : private Loop::Watcher {
 public:
  explicit Accepting(Loop& loop) : loop_(loop) {}
  Accepting(const Accepting&) = delete;
  Accepting& operator=(const Accepting&) = delete;

 protected:
  ~Accepting() = default;

  /// Also to go on at another socket. Throws std::system_error, and nothing has changed then.
  void begin(int socket, Acceptor::Listener& listener);
  void go_on_now();
  void end();
  /// False: nobody waits, or errno says why not.
  bool accept_one();
  Loop& loop() { return loop_; }
  /// None: it has ended.
  Acceptor::Listener* listener() { return listener_; }

 private:
  virtual void take(base::Fd client) = 0;
  void on_ready(std::uint32_t events) override;
  void pause();
  void go_on() { watch_.change(EPOLLIN); }

  Loop& loop_;
  int socket_ = -1;
  Acceptor::Listener* listener_ = nullptr;
  Loop::Watch watch_;
  Loop::Timer retry_;  // while it pauses
};

}  // namespace duet::transport
