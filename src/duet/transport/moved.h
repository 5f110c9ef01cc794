#pragma once

#include <sys/types.h>

#include <cerrno>

#include "duet/transport/channel.h"

namespace duet::transport {

/// What the result of read(2) or recv(2) means, errno included.
inline IoResult moved_by_read(ssize_t count) {
  if (count > 0) return {IoResult::State::some, static_cast<std::size_t>(count)};
  if (count == 0) return {IoResult::State::ended};
  if (errno == EAGAIN || errno == EINTR) return {IoResult::State::blocked};
  return {IoResult::State::broken, 0, errno};
}

/// The same for write(2) or send(2). One that takes nothing, as some devices may, is to be tried later.
inline IoResult moved_by_write(ssize_t count) {
  if (count > 0) return {IoResult::State::some, static_cast<std::size_t>(count)};
  if (count == 0) return {IoResult::State::blocked};
  if (errno == EAGAIN || errno == EINTR) return {IoResult::State::blocked};
  return {IoResult::State::broken, 0, errno};
}

}  // namespace duet::transport
