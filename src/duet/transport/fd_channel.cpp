#include "duet/transport/fd_channel.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "duet/transport/moved.h"

namespace duet::transport {

FdChannel::FdChannel(Loop& loop, base::Fd socket)
    : loop_(loop), input_(std::move(socket)), reading_(*this, input_.get()), writing_(*this, -1) {}

FdChannel::FdChannel(Loop& loop, base::Fd input, base::Fd output)
    : loop_(loop),
      input_(std::move(input)),
      output_(std::move(output)),
      reading_(*this, input_.get()),
      writing_(*this, output_.get()) {
  base::set_nonblocking(input_.get(), true);
  base::set_nonblocking(output_.get(), true);
}

FdChannel::~FdChannel() { close(); }

void FdChannel::open(Listener& listener) {
  listener_ = &listener;
  want(true, false);
}

void FdChannel::want(bool reading, bool writing) {
  if (listener_ == nullptr) return;
  if (is_socket()) {
    set_events(reading_, (reading ? EPOLLIN : 0U) | (writing ? EPOLLOUT : 0U));
  } else {
    set_events(reading_, reading ? EPOLLIN : 0U);
    set_events(writing_, writing ? EPOLLOUT : 0U);
  }
}

// A pipe that is wanted for nothing is not watched at all, because its hang-up would be told for ever.
void FdChannel::set_events(Side& side, std::uint32_t events) {
  if (side.watch && side.events == events) return;
  side.events = events;
  if (events == 0 && !is_socket()) return side.watch.cancel();
  if (side.watch) return side.watch.change(events);
  watch(side);
}

// A channel that cannot be watched is of no use to anybody, but no reason to end the program: others are.
void FdChannel::watch(Side& side) {
  try {
    side.watch = loop_.watch(side.descriptor, side.events, side);
  } catch (const std::system_error& error) {
    if (error.code().value() != ENOSPC && error.code().value() != ENOMEM) throw;
    hangup_ = loop_.deferred([this] { listener_->on_hangup(); });
  }
}

void FdChannel::on_ready(Side& side, std::uint32_t events) {
  const bool dead = (events & (EPOLLHUP | EPOLLERR)) != 0;
  if ((side.events & EPOLLOUT) != 0 && (events & EPOLLOUT || dead)) {
    listener_->on_writable();
    if (listener_ == nullptr) return;
  }
  if ((side.events & EPOLLIN) != 0 && (events & EPOLLIN || dead)) {
    listener_->on_readable();
  } else if (dead && side.events == 0) {
    listener_->on_hangup();
  }
}

IoResult FdChannel::read(std::span<char> into) {
  const ssize_t count = is_socket() ? recv(input_.get(), into.data(), into.size(), MSG_DONTWAIT)
                                    : ::read(input_.get(), into.data(), into.size());
  return moved_by_read(count);
}

IoResult FdChannel::write(std::string_view bytes) {
  const ssize_t count = is_socket() ? send(input_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL)
                                    : writer_.write(output_.get(), bytes);
  return moved_by_write(count);
}

void FdChannel::end_output() {
  if (is_socket()) {
    shutdown(input_.get(), SHUT_WR);
  } else {
    writing_.watch.cancel();
    output_.reset();
  }
}

void FdChannel::acknowledge() {
  const int on = 1;
  if (is_socket()) setsockopt(input_.get(), IPPROTO_TCP, TCP_QUICKACK, &on, sizeof on);
}

void FdChannel::close() {
  reading_.watch.cancel();
  writing_.watch.cancel();
  hangup_.cancel();
  listener_ = nullptr;
  input_.reset();
  if (output_) output_.reset();
}

}  // namespace duet::transport
