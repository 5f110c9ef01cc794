#pragma once

#include <cstddef>
#include <memory>
#include <utility>

#include "duet/api.h"
#include "duet/transport/channel.h"
#include "duet/transport/loop.h"

namespace duet::transport {

/// Two channels joined in memory, each direction a pipe of `capacity` bytes. What one writes the
/// other reads in a later turn of the loop. For tests and for peers in one process.
DUET_API std::pair<std::unique_ptr<Channel>, std::unique_ptr<Channel>> memory_pair(Loop& loop,
                                                                                   std::size_t capacity = 64 * 1024);

}  // namespace duet::transport
