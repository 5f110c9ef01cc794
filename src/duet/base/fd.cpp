#include "duet/base/fd.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace duet::base {

void Fd::reset(int fd) noexcept {
  const int old = std::exchange(fd_, fd);
  if (old < 0 || old == fd) return;
  const int saved = errno;
  ::close(old);
  errno = saved;
}

int check_call(int result, const char* what) {
  if (result < 0) throw std::system_error(errno, std::generic_category(), what);
  return result;
}

Fd duplicate(int fd) { return Fd(check_call(::fcntl(fd, F_DUPFD_CLOEXEC, 3), "duplicate a descriptor")); }

Pipe make_pipe(int flags) {
  std::array<int, 2> ends{};
  check_call(::pipe2(ends.data(), flags | O_CLOEXEC), "make a pipe");
  return {Fd(ends[0]), Fd(ends[1])};
}

void set_nonblocking(int fd, bool on) {
  const int flags = check_call(::fcntl(fd, F_GETFL), "read descriptor flags");
  const int wanted = on ? flags | O_NONBLOCK : flags & ~O_NONBLOCK;
  if (wanted != flags) check_call(::fcntl(fd, F_SETFL, wanted), "set descriptor flags");
}

bool await_ready(int fd, short events) {
  pollfd wanted{.fd = fd, .events = events, .revents = 0};
  return ::poll(&wanted, 1, -1) >= 0 || errno == EINTR;
}

bool write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(fd, bytes.data(), bytes.size());
    if (count < 0 && (errno == EINTR || (errno == EAGAIN && await_ready(fd, POLLOUT)))) continue;
    if (count == 0) errno = ENOSPC;
    if (count <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

StandardDescriptors ensure_standard_descriptors() {
  StandardDescriptors found;
  for (int fd = 0; fd <= 2; ++fd) {
    if (::fcntl(fd, F_GETFD) >= 0) continue;
    found.closed_.at(static_cast<std::size_t>(fd)) = true;
    // The lowest free number is `fd` itself: all below it are open by now.
    check_call(::open("/dev/null", O_RDWR), "open /dev/null");
  }
  return found;
}

}  // namespace duet::base
