#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <utility>

#include "duet/api.h"

namespace duet::base {

/// Owns one file descriptor and closes it. -1 means none. Move-only; not for sharing between threads.
class DUET_API Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(other.release()) {}
  Fd& operator=(Fd&& other) noexcept {
    reset(other.release());
    return *this;
  }
  ~Fd() { reset(); }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  [[nodiscard]] int release() { return std::exchange(fd_, -1); }
  void reset(int fd = -1) noexcept;

 private:
  int fd_ = -1;
};

struct Pipe {
  Fd read_end;
  Fd write_end;
};

/// Returns `result` unless it is negative; then throws `std::system_error` with errno and `what`.
DUET_API int check_call(int result, const char* what);

/// Close-on-exec, and never one of 0-2.
DUET_API Fd duplicate(int fd);
/// Both ends close-on-exec; `flags` as for pipe2, e.g. O_NONBLOCK.
DUET_API Pipe make_pipe(int flags = 0);
/// Acts on the open file description, which other processes may share.
DUET_API void set_nonblocking(int fd, bool on);

/// Waits until a non-blocking descriptor takes or has something; `events` as for poll(). It may be woken too early.
/// False: errno says why not.
DUET_API bool await_ready(int fd, short events);

/// Writes to the end of `bytes`, over signals and in as many portions as it takes; a non-blocking descriptor is waited
/// for. False: errno says why not; some of them may have been written.
DUET_API [[nodiscard]] bool write_all(int fd, std::string_view bytes);

/// Which of the descriptors 0-2 the process was started without.
class DUET_API StandardDescriptors {
 public:
  bool was_closed(int fd) const { return closed_.at(static_cast<std::size_t>(fd)); }

 private:
  friend StandardDescriptors ensure_standard_descriptors();
  std::array<bool, 3> closed_{};
};

/// Puts /dev/null on those of 0-2 that are closed, so that no file opened later is taken for stdin, stdout or stderr.
/// For the first line of main, before anything opens a descriptor.
DUET_API StandardDescriptors ensure_standard_descriptors();

}  // namespace duet::base
