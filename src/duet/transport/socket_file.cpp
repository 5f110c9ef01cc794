#include "duet/transport/socket_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <thread>

#include "duet/transport/unix_socket.h"

namespace duet::transport {
namespace {

using std::chrono::milliseconds;

[[noreturn]] void fail(int error, const std::string& path) {
  throw std::system_error(error, std::generic_category(), "listening at " + path);
}

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash + 1);
}

// Held while a socket file is looked at, removed and made.
class FolderLock {
 public:
  FolderLock(const std::string& path, milliseconds patience)
      : folder_(open(folder_of(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    if (!folder_) fail(errno, path);
    const auto deadline = std::chrono::steady_clock::now() + patience;
    while (flock(folder_.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK && errno != EINTR) fail(errno, path);
      if (std::chrono::steady_clock::now() >= deadline) fail(ETIMEDOUT, path);
      std::this_thread::sleep_for(milliseconds(1));
    }
  }
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;
  // Not by closing alone: a child that is just being started may still hold the descriptor.
  ~FolderLock() { flock(folder_.get(), LOCK_UN); }

 private:
  base::Fd folder_;
};

bool somebody_listens(const std::string& path) {
  try {
    connect_unix(path, milliseconds(1));  // a server that has no time to accept listens all the same
    return true;
  } catch (const std::system_error& error) {
    const int code = error.code().value();
    return code != ECONNREFUSED && code != ENOENT;  // the latter: its server has just removed it
  }
}

// A socket that its server left behind when it was killed.
void remove_stale(const std::string& path) {
  struct stat status {};
  if (lstat(path.c_str(), &status) != 0) return;
  if (!S_ISSOCK(status.st_mode) || somebody_listens(path)) fail(EADDRINUSE, path);
  if (unlink(path.c_str()) != 0 && errno != ENOENT) fail(errno, path);
}

}  // namespace

SocketFile::SocketFile(std::string path) : path_(std::move(path)) {
  struct stat status {};
  if (lstat(path_.c_str(), &status) != 0) fail(errno, path_);
  device_ = status.st_dev;
  inode_ = status.st_ino;
}

bool SocketFile::is_in_place() const {
  struct stat status {};
  return !path_.empty() && lstat(path_.c_str(), &status) == 0 && status.st_dev == device_ && status.st_ino == inode_;
}

void SocketFile::remove() noexcept {
  if (is_in_place()) unlink(path_.c_str());
  path_.clear();
}

void SocketFile::swap(SocketFile& other) noexcept {
  path_.swap(other.path_);
  std::swap(device_, other.device_);
  std::swap(inode_, other.inode_);
}

UnixListener listen_replacing_stale(const std::string& path, milliseconds patience) {
  const FolderLock lock(path, patience);
  remove_stale(path);
  base::Fd socket = listen_unix(path);
  return {std::move(socket), SocketFile(path)};
}

}  // namespace duet::transport
