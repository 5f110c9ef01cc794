#pragma once

#include <sys/types.h>

#include <string_view>

#include "duet/api.h"

namespace duet::base {

/// Writes without raising SIGPIPE: a reader that is gone is EPIPE and nothing else, whether the process ignores the
/// signal, handles it or leaves it alone.
///
/// Whether the process ignores the signal is asked once, when this is made; then a write is one system call, and the
/// process must go on ignoring it. Otherwise the signal is blocked for the calling thread during each write, which
/// costs two more, and the process may do with it what it likes.
class DUET_API QuietWriter {
 public:
  QuietWriter();

  /// As write(2).
  ssize_t write(int fd, std::string_view bytes) const;

 private:
  bool signal_is_ignored_;
};

}  // namespace duet::base
