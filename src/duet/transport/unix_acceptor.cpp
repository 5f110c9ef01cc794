#include "duet/transport/unix_acceptor.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <utility>

#include "duet/transport/fd_channel.h"
#include "duet/transport/socket_file.h"
#include "duet/transport/unix_socket.h"

namespace duet::transport {
namespace {

constexpr auto retry_after = std::chrono::milliseconds(100);

class UnixAcceptor final : public Acceptor, private Loop::Watcher {
 public:
  UnixAcceptor(Loop& loop, base::Log& log, UnixListener socket)
      : loop_(loop), log_(log), user_(geteuid()), path_(socket.file.path()) {
    use(std::move(socket));
  }
  UnixAcceptor(const UnixAcceptor&) = delete;
  UnixAcceptor& operator=(const UnixAcceptor&) = delete;
  ~UnixAcceptor() override { close(); }

  void open(Listener& listener) override {
    watch_ = loop_.watch(socket_.socket.get(), EPOLLIN, *this);
    listener_ = &listener;
  }
  void resume() override;
  bool is_reachable() const override { return socket_.file.path().empty() || socket_.file.is_in_place(); }
  void restore() override;
  void close() override;

 private:
  void on_ready(std::uint32_t events) override;
  bool accept_one();
  void hand_on(base::Fd client);
  void pause();
  void go_on() { watch_.change(EPOLLIN); }
  void use(UnixListener socket);

  Loop& loop_;
  base::Log& log_;
  uid_t user_;
  std::string path_;  // none: inherited
  UnixListener socket_;
  Listener* listener_ = nullptr;
  Loop::Watch watch_;
  Loop::Timer retry_;  // while it pauses
};

void UnixAcceptor::use(UnixListener socket) {
  base::set_nonblocking(socket.socket.get(), true);
  socket_ = std::move(socket);
}

// One a turn: trying for a second would cost the usual single client a system call.
void UnixAcceptor::on_ready(std::uint32_t) {
  if (!listener_->has_room()) return pause();
  if (accept_one()) return;
  if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) pause();
}

bool UnixAcceptor::accept_one() {
  base::Fd client(accept4(socket_.socket.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!client) return false;
  hand_on(std::move(client));
  return true;
}

void UnixAcceptor::hand_on(base::Fd client) {
  const PeerIdentity identity = identity_of(client.get());
  if (identity.uid != user_ && identity.uid != 0) {
    return log_.warn("Connection of another user refused", {{"uid", identity.uid}, {"pid", identity.pid}});
  }
  listener_->admit(std::make_unique<FdChannel>(loop_, std::move(client)), identity);
}

// The watch stays, for nothing: a new one might be refused.
void UnixAcceptor::pause() {
  if (listener_ == nullptr) return;  // it was closed when it asked for room
  watch_.change(0);
  retry_ = loop_.after(retry_after, [this] { go_on(); });
}

void UnixAcceptor::resume() {
  if (!retry_) return;
  retry_.cancel();
  go_on();
}

void UnixAcceptor::restore() {
  if (path_.empty() || listener_ == nullptr) return;
  UnixListener again = listen_replacing_stale(path_);
  while (accept_one()) {
  }
  Listener* const listener = listener_;
  if (listener == nullptr) return;  // one of them had it closed
  close();
  use(std::move(again));
  open(*listener);
}

// The file goes before the socket is closed: while it listens, nobody else replaces its file.
void UnixAcceptor::close() {
  retry_.cancel();
  watch_.cancel();
  listener_ = nullptr;
  socket_.file.remove();
  socket_.socket.reset();
}

}  // namespace

std::unique_ptr<Acceptor> unix_acceptor(Loop& loop, base::Log& log, const std::string& path) {
  return std::make_unique<UnixAcceptor>(loop, log, listen_replacing_stale(path));
}

std::unique_ptr<Acceptor> inherited_acceptor(Loop& loop, base::Log& log, base::Fd listener) {
  return std::make_unique<UnixAcceptor>(loop, log, UnixListener{std::move(listener), SocketFile()});
}

}  // namespace duet::transport
