// Listens with many clients to what one of them causes:
//     listeners PLACE CLIENTS REQUESTS WINDOW REQUEST
// One more client sends REQUEST, WINDOW at a time, REQUESTS times in all. Prints the seconds until each of the clients
// has had a message for each request. None has to be read in order, so nothing is looked at but where messages end.
// PLACE is the path of a Unix socket, where messages are lines; ws:PORT for WebSockets; or frames:PORT for a server
// that speaks WebSocket without a handshake.

#include <fcntl.h>
#include <sys/epoll.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <exception>

#include "load_stream.h"
#include "load_wire.h"

namespace {

constexpr int patience_ms = 30'000;

/// How messages begin and end there.
struct Manner {
  load::Place place;
  bool in_frames = false;

  std::string framed(const std::string& message) const {
    return in_frames ? load::websocket_header(message.size()) + message : message + '\n';
  }
};

Manner manner_of(const std::string& place) {
  const auto port_behind = [&](std::string_view prefix) {
    return place.starts_with(prefix) ? std::atoi(place.c_str() + prefix.size()) : 0;
  };
  if (const int port = port_behind("ws:")) {
    return {.place = {.tcp_port = port, .opening = load::websocket_opening("")}, .in_frames = true};
  }
  if (const int port = port_behind("frames:")) return {.place = {.tcp_port = port}, .in_frames = true};
  return {.place = {.unix_path = place}};
}

/// One client, and how many messages it has had. Messages are shorter than 64 KiB.
class Listener {
 public:
  explicit Listener(const Manner& manner) : stream_(manner.place, nullptr, 20), in_frames_(manner.in_frames) {}

  int fd() const { return stream_.read_fd(); }
  std::size_t messages() const { return messages_; }
  void forget() { messages_ = 0; }

  void read_some() {
    static std::array<char, 1U << 18U> room;
    const ssize_t count = stream_.get(room);
    if (count <= 0) load::fail("read");
    const std::string_view bytes(room.data(), static_cast<std::size_t>(count));
    in_frames_ ? count_frames(bytes) : count_lines(bytes);
  }

 private:
  void count_lines(std::string_view bytes) {
    messages_ += static_cast<std::size_t>(std::count(bytes.begin(), bytes.end(), '\n'));
  }

  // A frame's header may be cut; its payload is passed over.
  void count_frames(std::string_view bytes) {
    while (!bytes.empty()) {
      const std::size_t passed = std::min(payload_left_, bytes.size());
      bytes.remove_prefix(passed);
      payload_left_ -= passed;
      if (passed > 0 && payload_left_ == 0) ++messages_;
      if (payload_left_ > 0 || bytes.empty()) return;
      header_ += bytes.front();
      bytes.remove_prefix(1);
      end_header();
    }
  }

  void end_header() {
    if (header_.size() < 2) return;
    const auto byte = [this](std::size_t at) {
      return static_cast<std::size_t>(static_cast<unsigned char>(header_[at]));
    };
    if (byte(1) == 126 && header_.size() < 4) return;
    payload_left_ = byte(1) == 126 ? byte(2) << 8U | byte(3) : byte(1);
    header_.clear();
  }

  load::Stream stream_;
  bool in_frames_;
  std::size_t messages_ = 0;
  std::string header_;  // of the frame that begins
  std::size_t payload_left_ = 0;
};

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
  Audience(Manner manner, std::size_t clients, std::size_t requests)
      : manner_(std::move(manner)), requests_(requests), epoll_(epoll_create1(EPOLL_CLOEXEC)) {
    for (std::size_t i = 0; i <= clients; ++i) {
      listeners_.push_back(std::make_unique<Listener>(manner_));
      epoll_event event{.events = EPOLLIN, .data = {.u64 = i}};
      if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, listeners_.back()->fd(), &event) != 0) load::fail("epoll_ctl");
    }
    // When the last one has its answer, all others are accepted.
    say(speaker().fd(), manner_.framed(R"({"jsonrpc":"2.0","id":0,"method":"ping"})"));
    while (speaker().messages() == 0) speaker().read_some();
    speaker().forget();
  }

  void run(const std::string& request, std::size_t window) {
    const std::string framed = manner_.framed(request);
    std::size_t left = listeners_.size();
    std::size_t sent = 0;
    while (left > 0) {
      const std::size_t answered = speaker().messages() / 2;
      std::string more;
      for (; sent < std::min(answered + window, requests_); ++sent) more += framed;
      say(speaker().fd(), more);
      left -= take_what_comes();
    }
  }

 private:
  Listener& speaker() const { return *listeners_.back(); }

  // How many have had all.
  std::size_t take_what_comes() {
    std::array<epoll_event, 256> events{};
    const int count = epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), patience_ms);
    if (count <= 0) throw std::runtime_error("nothing comes any more");
    std::size_t done = 0;
    for (int i = 0; i < count; ++i) {
      Listener& listener = *listeners_[events[static_cast<std::size_t>(i)].data.u64];
      const std::size_t wanted = &listener == &speaker() ? 2 * requests_ : requests_;
      const std::size_t before = listener.messages();
      listener.read_some();
      if (before < wanted && listener.messages() >= wanted) ++done;
    }
    return done;
  }

  Manner manner_;
  std::size_t requests_;
  load::Fd epoll_;
  std::vector<std::unique_ptr<Listener>> listeners_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) return 2;
  try {
    const auto number = [argv](int at) { return std::strtoul(argv[at], nullptr, 10); };
    Audience audience(manner_of(argv[1]), number(2), number(3));
    const std::uint64_t started = load::now_ns();
    audience.run(argv[5], number(4));
    std::printf("%.6f\n", static_cast<double>(load::now_ns() - started) / 1e9);
  } catch (const std::exception& fault) {
    std::fprintf(stderr, "listeners: %s\n", fault.what());
    return 1;
  }
}
