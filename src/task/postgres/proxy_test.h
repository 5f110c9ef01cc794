#pragma once

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "duet/base/fd.h"
#include "duet/transport/loop.h"

namespace duet::task::postgres {

/// Stands between a client and a server's Unix socket, on the test's own loop, and does to the bytes what networks do.
class Proxy final : private transport::Loop::Watcher {
 public:
  enum class Mode {
    pass,
    hold,  ///< bytes stay where they are
    drop,  ///< bytes are lost, without a word
  };
  struct Direction {
    Mode mode = Mode::pass;
    std::size_t passed = 0;  ///< bytes, of all connections
    std::size_t dropped = 0;
    std::optional<std::size_t> left = {};  ///< after so many more all connections are cut
  };

  Proxy(transport::Loop& loop, const std::string& front, std::string back)
      : loop_(loop), back_(std::move(back)), listener_(open_socket()) {
    const sockaddr_un address = address_of(front);
    if (::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 ||
        ::listen(listener_.get(), 100) != 0) {
      throw std::runtime_error("the proxy has no socket");
    }
    watch_ = loop_.watch(listener_.get(), EPOLLIN, *this);
  }

  Direction to_server;
  Direction to_client;

  std::size_t accepted() const { return accepted_; }
  std::size_t open() const { return pairs_.size(); }

  void cut() {
    pairs_.clear();
    to_server.left.reset();
    to_client.left.reset();
  }
  /// What was held goes on.
  void pass() {
    to_server = {};
    to_client = {};
    for (auto& pair : pairs_) pair->rearm();
  }

 private:
  struct Pair;
  struct Pipe final : transport::Loop::Watcher {
    Pipe(Pair& its_pair, int its_source, int its_target, Direction Proxy::*its_direction)
        : pair(its_pair), source(its_source), target(its_target), direction(its_direction) {}
    void on_ready(std::uint32_t) override { pair.proxy.move(*this); }

    Pair& pair;
    int source;
    int target;
    Direction Proxy::*direction;
    transport::Loop::Watch watch;
  };
  struct Pair {
    Pair(Proxy& its_proxy, base::Fd its_client, base::Fd its_server)
        : proxy(its_proxy), client(std::move(its_client)), server(std::move(its_server)) {
      rearm();
    }
    void rearm() {
      for (Pipe* pipe : {&up, &down}) {
        if (!pipe->watch) pipe->watch = proxy.loop_.watch(pipe->source, EPOLLIN, *pipe);
      }
    }
    Proxy& proxy;
    base::Fd client;
    base::Fd server;
    Pipe up{*this, client.get(), server.get(), &Proxy::to_server};
    Pipe down{*this, server.get(), client.get(), &Proxy::to_client};
  };

  static base::Fd open_socket() { return base::Fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)); }
  static sockaddr_un address_of(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path.c_str(), sizeof(address.sun_path) - 1);
    return address;
  }

  void on_ready(std::uint32_t) override {
    base::Fd client(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    base::Fd server = open_socket();
    const sockaddr_un address = address_of(back_);
    if (!client || ::connect(server.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) return;
    ++accepted_;
    pairs_.push_back(std::make_unique<Pair>(*this, std::move(client), std::move(server)));
  }

  void move(Pipe& pipe) {
    Direction& direction = this->*pipe.direction;
    if (direction.mode == Mode::hold) return pipe.watch.cancel();
    char bytes[65536];
    const ssize_t count = ::read(pipe.source, bytes, sizeof(bytes));
    if (count < 0) return;
    if (count == 0) return end(pipe.pair);
    if (direction.mode == Mode::drop) direction.dropped += static_cast<std::size_t>(count);
    if (direction.mode == Mode::drop) return;
    std::size_t allowed = static_cast<std::size_t>(count);
    if (direction.left) allowed = std::min(allowed, *direction.left);
    send_all(pipe.target, std::string_view(bytes, allowed));
    direction.passed += allowed;
    if (direction.left && (*direction.left -= allowed) == 0) cut();
  }

  // A client on this very loop would not read while we wait, so the kernel must take all of it.
  static void send_all(int target, std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t written = ::send(target, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (written < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) throw std::runtime_error("too much for the proxy");
      if (written <= 0) return;
      bytes.remove_prefix(static_cast<std::size_t>(written));
    }
  }

  void end(const Pair& pair) {
    pairs_.remove_if([&](const std::unique_ptr<Pair>& each) { return each.get() == &pair; });
  }

  transport::Loop& loop_;
  std::string back_;
  base::Fd listener_;
  std::size_t accepted_ = 0;
  std::list<std::unique_ptr<Pair>> pairs_;
  transport::Loop::Watch watch_;
};

}  // namespace duet::task::postgres
