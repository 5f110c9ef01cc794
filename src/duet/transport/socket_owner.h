#pragma once

#include <sys/types.h>

#include <optional>

#include "duet/api.h"
#include "duet/base/fd.h"
#include "duet/transport/tcp_address.h"

namespace duet::transport {

/// Asks the kernel whose a TCP socket of this machine is, by one exact question (sock_diag(7)).
class DUET_API SocketOwners {
 public:
  /// Throws std::system_error where such questions are not possible.
  SocketOwners();

  /// The user who owns the socket at `there` that is connected to `here`. None: the kernel knows no such socket, or one
  /// that its process has closed already, which nobody owns.
  std::optional<uid_t> owner_of(const TcpAddress& there, const TcpAddress& here);

 private:
  base::Fd netlink_;
};

}  // namespace duet::transport
