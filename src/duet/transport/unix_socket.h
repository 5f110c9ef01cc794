#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <string>

#include "duet/api.h"
#include "duet/base/fd.h"
#include "duet/transport/loop.h"

namespace duet::transport {

/// Who is at the other end of a Unix socket.
struct PeerIdentity {
  pid_t pid = 0;
  uid_t uid = 0;
};
DUET_API PeerIdentity identity_of(int socket);

/// A path of any length: the folder is opened and the socket named below its handle, because an
/// address has room for 107 bytes only. All throw std::system_error, with the path in its text.
/// `patience`: a server that does not accept, with a full backlog, would hold us up for ever (ETIMEDOUT).
DUET_API base::Fd connect_unix(const std::string& path, std::chrono::milliseconds patience = std::chrono::seconds(30));
/// Binds and listens with mode 0600 from the first instant. What is there already is not removed; for a server see
/// listen_replacing_stale() in socket_file.h.
DUET_API base::Fd listen_unix(const std::string& path, int backlog = 1024);

/// Accepts connections on a listening socket and hands them on.
///
/// Running out of descriptors is weather: accepting pauses and is tried again, and again as soon as
/// the owner says that a descriptor became free.
class DUET_API Acceptor final : private Loop::Watcher {
 public:
  using OnAccept = std::function<void(base::Fd)>;
  Acceptor(Loop& loop, base::Fd listener, OnAccept on_accept);
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;

  int descriptor() const { return listener_.get(); }
  void resume();
  /// Asked before each client; false: it waits where it is, and is tried again.
  std::function<bool()> has_room;
  /// Whoever waits already.
  void accept_all();

 private:
  void on_ready(std::uint32_t events) override;
  bool accept_one();
  void pause();
  void go_on();

  Loop& loop_;
  base::Fd listener_;
  OnAccept on_accept_;
  Loop::Watch watch_;
  Loop::Timer retry_;  // while it pauses
};

}  // namespace duet::transport
