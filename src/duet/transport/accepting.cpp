#include "duet/transport/accepting.h"

#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <utility>

namespace duet::transport {
namespace {

constexpr auto retry_after = std::chrono::milliseconds(100);

}  // namespace

void Accepting::begin(int socket, Acceptor::Listener& listener) {
  watch_ = loop_.watch(socket, EPOLLIN, *this);
  retry_.cancel();
  socket_ = socket;
  listener_ = &listener;
}

// One a turn: trying for a second would cost the usual single client a system call.
void Accepting::on_ready(std::uint32_t) {
  if (!listener_->has_room()) return pause();
  if (accept_one()) return;
  if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) pause();
}

bool Accepting::accept_one() {
  base::Fd client(accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC));
  if (!client) return false;
  take(std::move(client));
  return true;
}

// The watch stays, and waits for no event: the kernel might refuse a new one later.
void Accepting::pause() {
  if (listener_ == nullptr) return;  // it was closed when it asked for room
  watch_.change(0);
  retry_ = loop_.after(retry_after, [this] { go_on(); });
}

void Accepting::go_on_now() {
  if (!retry_) return;
  retry_.cancel();
  go_on();
}

void Accepting::end() {
  retry_.cancel();
  watch_.cancel();
  listener_ = nullptr;
  socket_ = -1;
}

}  // namespace duet::transport
