#pragma once

#include <memory>
#include <string>

#include "duet/transport/channel.h"
#include "duet/transport/loop.h"

namespace duet::transport {

/// Ends a channel that its owner has no more use for: sends what is left, tells the peer the end, and reads and drops
/// what still comes, until the peer ends as well. It does so for one second, or 64 KiB, at most. A channel that is
/// closed while bytes of the peer are unread would be reset, and the peer would lose our last bytes. `place` is
/// released when the channel is closed. The channel may be open already.
void see_off(Loop& loop, std::unique_ptr<Channel> channel, std::string last_bytes, std::shared_ptr<void> place);

}  // namespace duet::transport
