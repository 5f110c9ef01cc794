#pragma once

#include <memory>
#include <string>

#include "duet/transport/channel.h"
#include "duet/transport/loop.h"

namespace duet::transport {

/// Sees a channel off whose owner has no more use for it: sends what is left, tells the end, and reads past what still
/// comes until the peer ends, too. For a second, or 64 KiB, at most: a peer whose bytes were never read would lose the
/// last ones of ours. `place` is let go of when the channel is closed. The channel may be open already.
void see_off(Loop& loop, std::unique_ptr<Channel> channel, std::string last_bytes, std::shared_ptr<void> place);

}  // namespace duet::transport
