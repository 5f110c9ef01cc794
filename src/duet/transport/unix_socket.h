#pragma once

#include <chrono>
#include <string>

#include "duet/api.h"
#include "duet/base/fd.h"
#include "duet/transport/acceptor.h"

namespace duet::transport {

/// Who is at the other end of a Unix socket.
DUET_API PeerIdentity identity_of(int socket);

/// A path of any length: the folder is opened and the socket named below its handle, because an
/// address has room for 107 bytes only. All throw std::system_error, with the path in its text.
/// `patience`: a server that does not accept, with a full backlog, would hold us up for ever (ETIMEDOUT).
DUET_API base::Fd connect_unix(const std::string& path, std::chrono::milliseconds patience = std::chrono::seconds(30));
/// Binds and listens with mode 0600 from the first instant. What is there already is not removed; a server takes a
/// unix_acceptor(), which replaces a stale socket.
DUET_API base::Fd listen_unix(const std::string& path, int backlog = 1024);

}  // namespace duet::transport
