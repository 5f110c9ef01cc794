#include "duet/transport/stdio.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>

#include "duet/transport/moved.h"

namespace duet::transport {
namespace {

bool can_take_some(int fd) {
  pollfd ready{fd, POLLOUT, 0};
  return poll(&ready, 1, 0) > 0;
}

}  // namespace

StdioChannel::StdioChannel(Loop& loop, base::Fd input, base::Fd output)
    : loop_(loop),
      input_(std::move(input)),
      output_(std::move(output)),
      is_terminal_(isatty(input_.get()) == 1),
      writable_(*this) {
  choose_output();
}

StdioChannel::~StdioChannel() { close(); }

void StdioChannel::choose_output() {
  struct stat status {};
  base::check_call(fstat(output_.get(), &status), "fstat");
  if (S_ISSOCK(status.st_mode)) {
    kind_ = Output::socket;
  } else if (S_ISFIFO(status.st_mode) || S_ISCHR(status.st_mode)) {
    const std::string same = "/proc/self/fd/" + std::to_string(output_.get());
    base::Fd own(::open(same.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
    kind_ = own ? Output::own_description : Output::shared_description;
    if (own) output_ = std::move(own);
  }
}

void StdioChannel::open(Listener& listener) {
  listener_ = &listener;
  loop_.set_blocking_input(input_.get(), *this);
}

void StdioChannel::want(bool reading, bool writing) {
  if (listener_ == nullptr) return;
  loop_.want_blocking_input(reading);
  if (writing == writing_) return;
  if (writing) {
    loop_.want_blocked_output(output_.get(), writable_);
    writing_ = true;
  } else {
    stop_waiting_for_output();
  }
}

void StdioChannel::stop_waiting_for_output() {
  if (writing_) loop_.clear_blocked_output();
  writing_ = false;
}

// A terminal that was closed on its other side says EIO, once, to whoever is reading then, and is none from then on.
IoResult StdioChannel::read(std::span<char> into) {
  const IoResult moved = moved_by_read(loop_.read_blocking_input(into));
  const bool closed = is_terminal_ && moved.state == IoResult::State::broken && moved.error == EIO;
  return closed ? IoResult{IoResult::State::ended} : moved;
}

IoResult StdioChannel::write(std::string_view bytes) {
  switch (kind_) {
    case Output::socket:
      return moved_by_write(send(output_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL));
    case Output::shared_description:
      if (!can_take_some(output_.get())) return {IoResult::State::blocked};
      return moved_by_write(writer_.write(output_.get(), bytes.substr(0, PIPE_BUF)));
    case Output::never_blocks:
    case Output::own_description:
      break;
  }
  return moved_by_write(writer_.write(output_.get(), bytes));
}

void StdioChannel::close() {
  if (listener_ != nullptr) loop_.clear_blocking_input();
  stop_waiting_for_output();
  listener_ = nullptr;
  input_.reset();
  output_.reset();
}

base::Fd take_stdout() {
  base::Fd real = base::duplicate(STDOUT_FILENO);
  base::check_call(dup2(STDERR_FILENO, STDOUT_FILENO), "dup2");
  return real;
}

}  // namespace duet::transport
