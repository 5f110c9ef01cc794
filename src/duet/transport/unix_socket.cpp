#include "duet/transport/unix_socket.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <system_error>
#include <utility>

namespace duet::transport {
namespace {

using std::chrono::milliseconds;

// An address for `path`; the folder's handle must live as long as the address is used.
struct Address {
  sockaddr_un socket{};
  base::Fd folder;

  explicit Address(const std::string& path) {
    socket.sun_family = AF_UNIX;
    // With a zero byte it would name another file, or none at all.
    if (path.empty() || path.find('\0') != std::string::npos) refuse(EINVAL, path);
    std::string name = path;
    if (name.size() >= sizeof socket.sun_path) name = shortened(path);
    if (name.size() >= sizeof socket.sun_path) refuse(ENAMETOOLONG, path);
    std::copy(name.begin(), name.end(), socket.sun_path);
  }

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&socket); }

 private:
  [[noreturn]] static void refuse(int error, const std::string& path) {
    throw std::system_error(error, std::generic_category(), "socket path '" + path + "'");
  }

  std::string shortened(const std::string& path) {
    const std::size_t slash = path.rfind('/');
    if (slash == std::string::npos) return path;
    folder.reset(open(path.substr(0, slash + 1).c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!folder) refuse(errno, path);
    return "/proc/self/fd/" + std::to_string(folder.get()) + path.substr(slash);
  }
};

base::Fd unix_socket() { return base::Fd(base::check_call(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket")); }

void limit_waiting(int fd, milliseconds patience) {
  const auto count = std::max<std::int64_t>(patience.count(), 1);  // zero would mean for ever
  const timeval limit{.tv_sec = count / 1000, .tv_usec = count % 1000 * 1000};
  base::check_call(setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit), "SO_SNDTIMEO");
}

}  // namespace

PeerIdentity identity_of(int socket) {
  ucred credentials{};
  socklen_t size = sizeof credentials;
  base::check_call(getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &size), "SO_PEERCRED");
  return {.pid = credentials.pid, .uid = credentials.uid};
}

base::Fd connect_unix(const std::string& path, milliseconds patience) {
  const Address address(path);
  base::Fd fd = unix_socket();
  const auto started = std::chrono::steady_clock::now();
  auto left = patience;
  do {
    limit_waiting(fd.get(), left);
    if (connect(fd.get(), address.get(), sizeof address.socket) == 0) return fd;
    left = patience - std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() - started);
  } while (errno == EINTR);
  const int error = errno == EAGAIN ? ETIMEDOUT : errno;
  throw std::system_error(error, std::generic_category(), "connecting to " + path);
}

base::Fd listen_unix(const std::string& path, int backlog) {
  const Address address(path);
  base::Fd fd = unix_socket();
  // Linux gives the file the mode of the unbound socket, so it never has another one.
  base::check_call(fchmod(fd.get(), 0600), "fchmod");
  if (bind(fd.get(), address.get(), sizeof address.socket) != 0 || listen(fd.get(), backlog) != 0) {
    throw std::system_error(errno, std::generic_category(), "listening at " + path);
  }
  return fd;
}

}  // namespace duet::transport
