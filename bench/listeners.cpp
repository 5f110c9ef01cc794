// Listens with many clients to what one of them causes:
//     listeners PATH CLIENTS REQUESTS WINDOW REQUEST
// One more client sends the line REQUEST, WINDOW at a time, REQUESTS times in all. Prints the seconds until each of the
// clients has had a line for each request. None has to be read in order, so nothing is looked at but the line ends.

#include <fcntl.h>
#include <sys/epoll.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <exception>

#include "load_process.h"

namespace {

constexpr int patience_ms = 30'000;

load::Fd connect(const std::string& path) {
  load::Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) throw std::runtime_error("the path of the socket is too long");
  std::copy(path.begin(), path.end(), address.sun_path);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) load::fail("connect");
  return socket;
}

std::size_t read_lines(int socket) {
  static std::array<char, 1U << 18U> room;
  const ssize_t count = read(socket, room.data(), room.size());
  if (count <= 0) load::fail("read");
  return static_cast<std::size_t>(std::count(room.data(), room.data() + count, '\n'));
}

void say(int socket, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = write(socket, text.data(), text.size());
    if (count < 0) load::fail("write");
    text.remove_prefix(static_cast<std::size_t>(count));
  }
}

// The one who asks is a listener too: it has an answer and an event for each request.
class Audience {
 public:
  Audience(const std::string& path, std::size_t clients, std::size_t requests)
      : requests_(requests), epoll_(epoll_create1(EPOLL_CLOEXEC)) {
    for (std::size_t i = 0; i <= clients; ++i) {
      sockets_.push_back(connect(path));
      epoll_event event{.events = EPOLLIN, .data = {.u64 = i}};
      if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, sockets_.back().get(), &event) != 0) load::fail("epoll_ctl");
    }
    lines_.resize(sockets_.size());
    // When the last one has its answer, all others are accepted.
    say(speaker(), "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"ping\"}\n");
    while (lines_.back() == 0) lines_.back() += read_lines(speaker());
    lines_.back() = 0;
  }

  void run(const std::string& request, std::size_t window) {
    std::size_t left = sockets_.size();
    std::size_t sent = 0;
    while (left > 0) {
      const std::size_t answered = lines_.back() / 2;
      std::string more;
      for (; sent < std::min(answered + window, requests_); ++sent) more += request;
      say(speaker(), more);
      left -= take_what_comes();
    }
  }

 private:
  int speaker() const { return sockets_.back().get(); }

  // How many have had all.
  std::size_t take_what_comes() {
    std::array<epoll_event, 256> events{};
    const int count = epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), patience_ms);
    if (count <= 0) throw std::runtime_error("nothing comes any more");
    std::size_t done = 0;
    for (int i = 0; i < count; ++i) {
      const std::size_t client = events[static_cast<std::size_t>(i)].data.u64;
      const std::size_t wanted = client + 1 == sockets_.size() ? 2 * requests_ : requests_;
      const std::size_t before = lines_[client];
      lines_[client] += read_lines(sockets_[client].get());
      if (before < wanted && lines_[client] >= wanted) ++done;
    }
    return done;
  }

  std::size_t requests_;
  load::Fd epoll_;
  std::vector<load::Fd> sockets_;
  std::vector<std::size_t> lines_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) return 2;
  try {
    const auto number = [argv](int at) { return std::strtoul(argv[at], nullptr, 10); };
    Audience audience(argv[1], number(2), number(3));
    const std::uint64_t started = load::now_ns();
    audience.run(std::string(argv[5]) + '\n', number(4));
    std::printf("%.6f\n", static_cast<double>(load::now_ns() - started) / 1e9);
  } catch (const std::exception& fault) {
    std::fprintf(stderr, "listeners: %s\n", fault.what());
    return 1;
  }
}
