#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "duet/api.h"

namespace duet::transport {

/// An address of IPv4 or IPv6 with a port, in the kernel's form.
class DUET_API TcpAddress {
 public:
  /// 0.0.0.0:0
  TcpAddress() { storage_.sin6_family = AF_INET; }
  /// `127.0.0.1:8123` or `[::1]:8123`: numbers only, nobody is asked for a name. None: it is no such text.
  static std::optional<TcpAddress> parse(std::string_view text);
  /// None: it is of another family.
  static std::optional<TcpAddress> from(const sockaddr& address);
  /// Of this end of a socket. Throws std::system_error.
  static TcpAddress of(int socket);
  /// Of the other end; the unspecified address if there is none any more.
  static TcpAddress of_peer(int socket);

  /// What only this machine reaches: 127.0.0.0/8 and ::1, also where IPv6 wraps the former.
  bool is_loopback() const;
  bool is_v6() const { return storage_.sin6_family == AF_INET6; }
  std::uint16_t port() const;
  TcpAddress with_port(std::uint16_t port) const;
  /// As parse() takes it.
  std::string text() const;
  /// Without the port, and without brackets.
  std::string host() const;

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage_); }
  socklen_t size() const { return is_v6() ? sizeof(sockaddr_in6) : sizeof(sockaddr_in); }

  friend bool operator==(const TcpAddress& left, const TcpAddress& right) { return left.text() == right.text(); }

 private:
  sockaddr_in& v4() { return reinterpret_cast<sockaddr_in&>(storage_); }
  const sockaddr_in& v4() const { return reinterpret_cast<const sockaddr_in&>(storage_); }
  sockaddr_in6& v6() { return storage_; }
  const sockaddr_in6& v6() const { return storage_; }

  sockaddr_in6 storage_{};  // has room for both
};

}  // namespace duet::transport
