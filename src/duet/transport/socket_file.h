#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>

#include "duet/api.h"
#include "duet/base/fd.h"

namespace duet::transport {

/// The file of a Unix socket that this process listens on. It removes itself, unless another one has taken its place.
///
/// Remove it before the socket is closed: while the socket listens, nobody else replaces its file.
class DUET_API SocketFile {
 public:
  SocketFile() = default;
  /// The one that is at `path` now. Throws std::system_error if there is none.
  explicit SocketFile(std::string path);
  SocketFile(SocketFile&& other) noexcept { swap(other); }
  SocketFile& operator=(SocketFile&& other) noexcept {
    SocketFile(std::move(other)).swap(*this);
    return *this;
  }
  ~SocketFile() { remove(); }

  /// False for an empty value.
  bool is_in_place() const;
  const std::string& path() const { return path_; }
  void remove() noexcept;

 private:
  void swap(SocketFile& other) noexcept;

  std::string path_;
  std::uint64_t device_ = 0;
  std::uint64_t inode_ = 0;
};

struct UnixListener {
  base::Fd socket;
  SocketFile file;  // behind the socket, so that it goes first
};

/// Listens at `path`, mode 0600. A socket that nobody listens on any more is replaced.
///
/// Any number of processes and threads may try at once: one of them gets the path. The others get EADDRINUSE, as they
/// do if a server answers there already, or if something else than a socket is there. They take turns by a lock on the
/// folder, which must be readable; no file is left behind. Throws std::system_error with the path in its text;
/// ETIMEDOUT: somebody has held the folder's lock for as long as `patience`.
DUET_API UnixListener listen_replacing_stale(const std::string& path,
                                             std::chrono::milliseconds patience = std::chrono::seconds(5));

}  // namespace duet::transport
