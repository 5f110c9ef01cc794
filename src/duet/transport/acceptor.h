#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>

#include "duet/api.h"
#include "duet/transport/channel.h"
#include "duet/transport/tcp_address.h"

namespace duet::transport {

/// Nobody's number: chown(2) and the like take it for none.
inline constexpr uid_t unknown_user = static_cast<uid_t>(-1);

/// Who is at the other end of a channel, as far as the transport can tell.
struct PeerIdentity {
  pid_t pid = 0;  ///< 0: not known
  uid_t uid = unknown_user;
  std::optional<TcpAddress> address = {};  ///< of a client that came over TCP
};

/// The seam between a server and where its clients come from: a Unix socket, or whatever else gives channels.
///
/// An acceptor decides who may come in at all, and tells its listener of those only. While the listener has no room, or
/// while descriptors run out, accepting pauses, clients wait outside, and it is tried again a little later. For the
/// loop's thread only.
class DUET_API Acceptor {
 public:
  class Listener {
   public:
    /// Asked before each client.
    virtual bool has_room() = 0;
    /// A client, over a channel that is not open yet.
    virtual void admit(std::unique_ptr<Channel> channel, const PeerIdentity& identity) = 0;

   protected:
    ~Listener() = default;
  };

  virtual ~Acceptor() = default;
  /// Accepts from now on. Throws std::system_error.
  virtual void open(Listener& listener) = 0;
  /// There may be room again: no need to pause any longer.
  virtual void resume() = 0;
  /// False: new clients do not find the way any more, because its address was taken away.
  virtual bool is_reachable() const = 0;
  /// Takes its address again. Who waited at the former one is accepted first, as there is room. Throws
  /// std::system_error.
  virtual void restore() = 0;
  /// Accepts no more, and gives up its address; the listener is not called after that.
  virtual void close() = 0;
};

}  // namespace duet::transport
