// The limit for a server on a socket, any number of connections: epoll_wait, recv, send, nothing looked at.
// echo_socket unix PATH
// echo_socket tcp PORT    of 127.0.0.1

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>

namespace {

std::array<char, 256 * 1024> buffer;

template <typename Address>
int listen_at(const Address& address, int family) {
  const int listener = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  const bool bound = bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  return bound && listen(listener, 4096) == 0 ? listener : -1;
}

int listen_at_path(const char* path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path, sizeof address.sun_path - 1);
  return listen_at(address, AF_UNIX);
}

int listen_at_port(const char* port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(std::atoi(port)));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return listen_at(address, AF_INET);
}

class Echo {
 public:
  explicit Echo(int listener) : listener_(listener), epoll_(epoll_create1(EPOLL_CLOEXEC)) {
    watch(EPOLL_CTL_ADD, listener_, EPOLLIN);
  }

  void turn() {
    std::array<epoll_event, 256> events;
    const int count = epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), -1);
    for (const epoll_event* event = events.data(); event < events.data() + count; ++event) {
      if (event->data.fd == listener_) {
        accept_one();
      } else if ((event->events & EPOLLOUT) != 0) {
        send_rest(event->data.fd);
      } else {
        echo(event->data.fd);
      }
    }
  }

 private:
  void accept_one() const {
    const int client = accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    const int on = 1;
    setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);  // means nothing to a Unix socket
    watch(EPOLL_CTL_ADD, client, EPOLLIN);
  }

  void watch(int operation, int fd, std::uint32_t events) const {
    epoll_event event{events, {.fd = fd}};
    epoll_ctl(epoll_, operation, fd, &event);
  }

  void echo(int fd) {
    const ssize_t got = recv(fd, buffer.data(), buffer.size(), 0);
    if (got <= 0) return drop(fd);
    const ssize_t sent = std::max<ssize_t>(send(fd, buffer.data(), static_cast<std::size_t>(got), MSG_NOSIGNAL), 0);
    if (sent == got) return;
    rest_[fd].assign(buffer.data() + sent, static_cast<std::size_t>(got - sent));
    watch(EPOLL_CTL_MOD, fd, EPOLLOUT);  // reads no more until that is out
  }

  void send_rest(int fd) {
    std::string& rest = rest_[fd];
    const ssize_t sent = send(fd, rest.data(), rest.size(), MSG_NOSIGNAL);
    if (sent < 0) return drop(fd);
    rest.erase(0, static_cast<std::size_t>(sent));
    if (rest.empty()) watch(EPOLL_CTL_MOD, fd, EPOLLIN);
  }

  void drop(int fd) {
    rest_.erase(fd);
    close(fd);
  }

  int listener_;
  int epoll_;
  std::map<int, std::string> rest_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const int listener = std::strcmp(argv[1], "tcp") == 0 ? listen_at_port(argv[2]) : listen_at_path(argv[2]);
  if (listener < 0) return 1;
  Echo echo(listener);
  for (;;) echo.turn();
}
