#pragma once

#include <memory>
#include <string>

#include "duet/api.h"
#include "duet/base/fd.h"
#include "duet/base/log.h"
#include "duet/transport/acceptor.h"
#include "duet/transport/loop.h"

namespace duet::transport {

/// Listens at a Unix socket, mode 0600, for clients of the same user (and root); others are refused, and logged.
///
/// A socket that nobody listens on any more is replaced; of any number that start at once, one gets the path: see
/// listen_replacing_stale(), also for what it throws. The file goes with the acceptor if it is still ours.
DUET_API std::unique_ptr<Acceptor> unix_acceptor(Loop& loop, base::Log& log, const std::string& path);

/// The same for a Unix socket that listens already, such as one that a service manager made. Its file is not ours: it
/// stays, and the acceptor counts as reachable.
DUET_API std::unique_ptr<Acceptor> inherited_acceptor(Loop& loop, base::Log& log, base::Fd listener);

}  // namespace duet::transport
