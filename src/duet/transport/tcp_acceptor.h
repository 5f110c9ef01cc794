#pragma once

#include <memory>

#include "duet/api.h"
#include "duet/base/fd.h"
#include "duet/transport/acceptor.h"
#include "duet/transport/loop.h"
#include "duet/transport/tcp_address.h"

namespace duet::transport {

/// Binds and listens; port 0 is any that is free. No other process can listen at the same address, and an IPv6 address
/// is that alone. Throws std::system_error with the address in its text.
DUET_API base::Fd listen_tcp(const TcpAddress& address);

/// Clients of a TCP socket that listens. What we send them goes out at once (TCP_NODELAY). Their identity has the user
/// who owns the other end, if the kernel knows: that is so for clients on this machine, while their socket is open.
DUET_API std::unique_ptr<Acceptor> tcp_acceptor(Loop& loop, base::Fd listener);

}  // namespace duet::transport
