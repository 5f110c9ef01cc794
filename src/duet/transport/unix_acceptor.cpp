#include "duet/transport/unix_acceptor.h"

#include <poll.h>
#include <unistd.h>

#include <chrono>
#include <deque>
#include <system_error>
#include <utility>

#include "duet/transport/accepting.h"
#include "duet/transport/fd_channel.h"
#include "duet/transport/socket_file.h"
#include "duet/transport/unix_socket.h"

namespace duet::transport {
namespace {

constexpr auto retry_after = std::chrono::milliseconds(100);

bool somebody_waits_at(const UnixListener& socket) {
  pollfd waiting{socket.socket.get(), POLLIN, 0};
  return poll(&waiting, 1, 0) > 0;
}

class UnixAcceptor final : public Acceptor, private Accepting {
 public:
  UnixAcceptor(Loop& loop, base::Log& log, UnixListener socket)
      : Accepting(loop), log_(log), user_(geteuid()), path_(socket.file.path()) {
    add(std::move(socket));
  }
  UnixAcceptor(const UnixAcceptor&) = delete;
  UnixAcceptor& operator=(const UnixAcceptor&) = delete;
  ~UnixAcceptor() override { close(); }

  void open(Listener& listener) override { begin(sockets_.front().socket.get(), listener); }
  void resume() override { go_on_now(); }
  bool is_reachable() const override;
  void restore() override;
  void close() override;

 private:
  void take(base::Fd client) override;
  void admit(base::Fd client);
  void add(UnixListener socket);
  void leave_former();

  base::Log& log_;
  uid_t user_;
  std::string path_;  // none: inherited
  // Clients are accepted at the first, new ones come to the last. The others are former ones at which clients wait.
  std::deque<UnixListener> sockets_;
  Loop::Timer leaving_;  // while the next one cannot be watched
};

void UnixAcceptor::add(UnixListener socket) {
  base::set_nonblocking(socket.socket.get(), true);
  sockets_.push_back(std::move(socket));
}

bool UnixAcceptor::is_reachable() const {
  if (sockets_.empty()) return true;  // it is closed
  const SocketFile& file = sockets_.back().file;
  return file.path().empty() || file.is_in_place();
}

void UnixAcceptor::take(base::Fd client) {
  admit(std::move(client));
  leave_former();
}

void UnixAcceptor::admit(base::Fd client) {
  const PeerIdentity identity = identity_of(client.get());
  if (identity.uid != user_ && identity.uid != 0) {
    return log_.warn("Connection of another user refused", {{"uid", identity.uid}, {"pid", identity.pid}});
  }
  listener()->admit(std::make_unique<FdChannel>(loop(), std::move(client)), identity);
}

void UnixAcceptor::restore() {
  if (path_.empty() || listener() == nullptr) return;
  UnixListener again = listen_replacing_stale(path_);
  if (sockets_.size() > 1 && !somebody_waits_at(sockets_.back())) sockets_.pop_back();
  add(std::move(again));
  while (sockets_.size() > 1 && listener()->has_room() && accept_one()) {
  }
  leave_former();
}

// Nobody can come to a former socket any more: once nobody waits there, the next one's turn has come.
void UnixAcceptor::leave_former() {
  try {
    while (sockets_.size() > 1 && !somebody_waits_at(sockets_.front())) {
      begin(sockets_[1].socket.get(), *listener());
      sockets_.pop_front();
    }
  } catch (const std::system_error&) {  // it cannot be watched
    leaving_ = loop().after(retry_after, [this] { leave_former(); });
  }
}

void UnixAcceptor::close() {
  end();
  leaving_.cancel();
  sockets_.clear();  // each file before its socket: while that listens, nobody else replaces the file
}

}  // namespace

std::unique_ptr<Acceptor> unix_acceptor(Loop& loop, base::Log& log, const std::string& path) {
  return std::make_unique<UnixAcceptor>(loop, log, listen_replacing_stale(path));
}

std::unique_ptr<Acceptor> inherited_acceptor(Loop& loop, base::Log& log, base::Fd listener) {
  return std::make_unique<UnixAcceptor>(loop, log, UnixListener{std::move(listener), SocketFile()});
}

}  // namespace duet::transport
