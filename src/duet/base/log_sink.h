#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "duet/api.h"
#include "duet/base/fd.h"

namespace duet::base {

/// Where log lines go. Only the log's writer thread calls `write`, which may block for as long as it likes.
class DUET_API LogSink {
 public:
  virtual ~LogSink() = default;

  /// Writes whole lines, with one write(2) unless the system takes less. Returns how many bytes; the rest is lost, and
  /// errno says why.
  virtual std::size_t write(std::string_view lines) = 0;
  virtual bool coloured() const { return false; }
  /// Lines that wait may share a write, up to PIPE_BUF bytes; else only when there are very many.
  virtual bool joins_lines() const { return false; }
};

/// Writes to a pipe, a terminal, a socket; a non-blocking one is waited for.
DUET_API std::unique_ptr<LogSink> stream_sink(Fd fd, bool coloured);
/// Writes to a duplicate of descriptor 2.
DUET_API std::unique_ptr<LogSink> stderr_sink(bool coloured);

struct LogFileLimits {
  std::uint64_t rotate_at = 10'000'000;  // bytes
  int keep = 3;                          // FILE.1, the newest, to FILE.3; at least one
  std::chrono::milliseconds look_every{250};
  bool joins_lines = false;  // see LogSink
  /// While it is true no file is made: lines go on to the one there was.
  std::shared_ptr<const std::atomic<bool>> makes_no_file = {};
};

struct OpenedLogFile {
  std::unique_ptr<LogSink> sink;  // empty: the file cannot be written, because of `reason`
  std::string reason;
};

/// Appends to `path`, created with mode 0600. Several processes may share the file.
///
/// A regular file that would grow beyond the limit is rotated under a lock on the file itself; whoever does not get the
/// lock at once goes on with the file it has. A file that somebody moved, removed or rotated is opened anew. A FIFO
/// without a reader is not writable. Other kinds of files are only written to. Never throws for what the path is. A
/// path of the kind `/proc/self/fd/7/name` goes on to mean that folder, which is to stay open.
DUET_API OpenedLogFile open_log_file(const std::string& path, LogFileLimits limits = {});

}  // namespace duet::base
