#pragma once

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <memory>
#include <span>
#include <stdexcept>
#include <string>

#include <openssl/ssl.h>

#include "load_process.h"

namespace load {

/// Where a server listens, and what is said there before the first request.
struct Place {
  std::string unix_path = {};
  int tcp_port = 0;           ///< of 127.0.0.1
  std::string identity = {};  ///< a PEM file with key, certificate and CA: TLS
  std::string opening = {};   ///< a request for a WebSocket, if one is asked for

  bool is_socket() const { return !unix_path.empty() || tcp_port != 0; }
  std::string text() const { return unix_path.empty() ? "port " + std::to_string(tcp_port) : unix_path; }
};

inline std::string websocket_opening(const std::string& token) {
  return "GET /ws HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
         "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nAuthorization: Bearer " +
         token + "\r\n\r\n";
}

/// -1 when nobody listens there yet.
inline Fd connect_once(const Place& place) {
  if (place.unix_path.empty()) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(place.tcp_port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    Fd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const int on = 1;
    setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 ? std::move(fd) : Fd();
  }
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (place.unix_path.size() >= sizeof address.sun_path) throw std::runtime_error("socket path is too long");
  place.unix_path.copy(address.sun_path, place.unix_path.size());
  Fd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  return connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 ? std::move(fd) : Fd();
}

inline Fd connect_within(const Place& place, double seconds) {
  const std::uint64_t deadline = now_ns() + static_cast<std::uint64_t>(seconds * 1e9);
  for (;;) {
    Fd fd = connect_once(place);
    if (fd.get() >= 0) return fd;
    if (now_ns() > deadline) throw std::runtime_error("the server does not listen at " + place.text());
    const timespec pause{0, 100'000};
    nanosleep(&pause, nullptr);
  }
}

/// TLS 1.3 with one identity, without resumption: every connection shows its certificate.
class Tls {
 public:
  explicit Tls(const std::string& identity) : context_(SSL_CTX_new(TLS_client_method())) {
    SSL_CTX_set_min_proto_version(context_.get(), TLS1_3_VERSION);
    SSL_CTX_set_verify(context_.get(), SSL_VERIFY_PEER, nullptr);
    const char* file = identity.c_str();
    if (SSL_CTX_use_certificate_chain_file(context_.get(), file) != 1 ||
        SSL_CTX_use_PrivateKey_file(context_.get(), file, SSL_FILETYPE_PEM) != 1 ||
        SSL_CTX_load_verify_locations(context_.get(), file, nullptr) != 1) {
      throw std::runtime_error("no identity in " + identity);
    }
  }
  SSL_CTX* get() const { return context_.get(); }

 private:
  struct Free {
    void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
  };
  std::unique_ptr<SSL_CTX, Free> context_;
};

/// A connection to a server: a socket, TLS on one, or the pipes of a server on stdio, which are not its own.
class Stream {
 public:
  Stream(int from, int to) : from_(from), to_(to) {}
  Stream(const Place& place, const Tls* tls, double seconds)
      : socket_(connect_within(place, seconds)), from_(socket_.get()), to_(socket_.get()) {
    if (tls != nullptr) shake_hands(tls->get());
    if (!place.opening.empty()) open_websocket(place.opening);
  }

  int read_fd() const { return from_; }
  int write_fd() const { return to_; }
  /// What was received and does not make the descriptor readable.
  bool has_more() const { return tls_ && SSL_pending(tls_.get()) > 0; }

  ssize_t put(const char* bytes, std::size_t size) const {
    if (tls_) return SSL_write(tls_.get(), bytes, static_cast<int>(size));
    return socket_.get() >= 0 ? send(to_, bytes, size, MSG_DONTWAIT | MSG_NOSIGNAL) : write(to_, bytes, size);
  }
  /// Waits for something to come.
  ssize_t get(std::span<char> into) const {
    return tls_ ? SSL_read(tls_.get(), into.data(), static_cast<int>(into.size()))
                : read(from_, into.data(), into.size());
  }

 private:
  struct Free {
    void operator()(SSL* tls) const {
      SSL_shutdown(tls);
      SSL_free(tls);
    }
  };

  void shake_hands(SSL_CTX* context) {
    tls_.reset(SSL_new(context));
    SSL_set_fd(tls_.get(), socket_.get());
    if (SSL_connect(tls_.get()) != 1) throw std::runtime_error("no handshake");
  }

  // Byte by byte: what comes behind the head is the conversation's.
  void open_websocket(const std::string& opening) const {
    put(opening.data(), opening.size());
    std::string head;
    for (char byte = 0; !head.ends_with("\r\n\r\n"); head += byte) {
      if (get({&byte, 1}) != 1) throw std::runtime_error("no WebSocket: " + head);
    }
    if (!head.starts_with("HTTP/1.1 101")) throw std::runtime_error("no WebSocket: " + head.substr(0, 64));
  }

  Fd socket_;
  int from_;
  int to_;
  std::unique_ptr<SSL, Free> tls_;
};

}  // namespace load
