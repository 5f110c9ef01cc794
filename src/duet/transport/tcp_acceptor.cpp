#include "duet/transport/tcp_acceptor.h"

#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>
#include <optional>
#include <system_error>
#include <utility>

#include "duet/transport/accepting.h"
#include "duet/transport/fd_channel.h"
#include "duet/transport/socket_owner.h"

namespace duet::transport {
namespace {

constexpr int backlog = 4096;

void set_option(int socket, int level, int option, const char* name) {
  const int on = 1;
  base::check_call(setsockopt(socket, level, option, &on, sizeof on), name);
}

std::optional<SocketOwners> owners_if_possible() {
  try {
    return SocketOwners();
  } catch (const std::system_error&) {
    return std::nullopt;  // a kernel without sock_diag names nobody
  }
}

class TcpAcceptor final : public Acceptor, private Accepting {
 public:
  TcpAcceptor(Loop& loop, base::Fd socket)
      : Accepting(loop), socket_(std::move(socket)), owners_(owners_if_possible()) {
    base::set_nonblocking(socket_.get(), true);
  }
  TcpAcceptor(const TcpAcceptor&) = delete;
  TcpAcceptor& operator=(const TcpAcceptor&) = delete;
  ~TcpAcceptor() override { close(); }

  void open(Listener& listener) override { begin(socket_.get(), listener); }
  void resume() override { go_on_now(); }
  bool is_reachable() const override { return true; }
  void restore() override {}
  void close() override {
    end();
    socket_.reset();
  }

 private:
  void take(base::Fd client) override;

  base::Fd socket_;
  std::optional<SocketOwners> owners_;
};

void TcpAcceptor::take(base::Fd client) {
  const int on = 1;
  setsockopt(client.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  const TcpAddress there = TcpAddress::of_peer(client.get());
  PeerIdentity identity{.address = there};
  if (owners_ && there.is_loopback())
    identity.uid = owners_->owner_of(there, TcpAddress::of(client.get())).value_or(unknown_user);
  listener()->admit(std::make_unique<FdChannel>(loop(), std::move(client)), identity);
}

}  // namespace

// Without SO_REUSEADDR a daemon could not listen again for a minute where it had clients before. It lets nobody else
// in as long as this socket listens.
base::Fd listen_tcp(const TcpAddress& address) {
  base::Fd fd(base::check_call(
      socket(address.is_v6() ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP), "socket"));
  set_option(fd.get(), SOL_SOCKET, SO_REUSEADDR, "SO_REUSEADDR");
  if (address.is_v6()) set_option(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, "IPV6_V6ONLY");
  if (bind(fd.get(), address.get(), address.size()) != 0 || listen(fd.get(), backlog) != 0)
    throw std::system_error(errno, std::generic_category(), "listening at " + address.text());
  return fd;
}

std::unique_ptr<Acceptor> tcp_acceptor(Loop& loop, base::Fd listener) {
  return std::make_unique<TcpAcceptor>(loop, std::move(listener));
}

}  // namespace duet::transport
