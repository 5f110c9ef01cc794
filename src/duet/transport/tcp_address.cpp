#include "duet/transport/tcp_address.h"

#include <arpa/inet.h>

#include <array>
#include <charconv>
#include <cstddef>
#include <cstring>

#include "duet/base/fd.h"

namespace duet::transport {
namespace {

std::optional<std::uint16_t> port_in(std::string_view text) {
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return port;
}

}  // namespace

std::optional<TcpAddress> TcpAddress::parse(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const std::optional<std::uint16_t> port = port_in(text.substr(colon + 1));
  std::string host(text.substr(0, colon));
  if (!port) return std::nullopt;
  TcpAddress address;
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (bracketed) {
    host = host.substr(1, host.size() - 2);
    address.storage_.sin6_family = AF_INET6;
  }
  void* const into = bracketed ? static_cast<void*>(&address.v6().sin6_addr) : &address.v4().sin_addr;
  if (inet_pton(address.storage_.sin6_family, host.c_str(), into) != 1) return std::nullopt;
  return address.with_port(*port);
}

std::optional<TcpAddress> TcpAddress::from(const sockaddr& address) {
  if (address.sa_family != AF_INET && address.sa_family != AF_INET6) return std::nullopt;
  TcpAddress copy;
  std::memcpy(&copy.storage_, &address, address.sa_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in));
  return copy;
}

TcpAddress TcpAddress::of(int socket) {
  TcpAddress address;
  socklen_t size = sizeof address.storage_;
  base::check_call(getsockname(socket, reinterpret_cast<sockaddr*>(&address.storage_), &size), "getsockname");
  return address;
}

TcpAddress TcpAddress::of_peer(int socket) {
  TcpAddress address;
  socklen_t size = sizeof address.storage_;
  if (getpeername(socket, reinterpret_cast<sockaddr*>(&address.storage_), &size) != 0) return {};
  return address;
}

bool TcpAddress::is_loopback() const {
  constexpr std::uint32_t loopback_net = 127;
  if (!is_v6()) return ntohl(v4().sin_addr.s_addr) >> 24U == loopback_net;
  const in6_addr& address = v6().sin6_addr;
  return IN6_IS_ADDR_LOOPBACK(&address) || (IN6_IS_ADDR_V4MAPPED(&address) && address.s6_addr[12] == loopback_net);
}

std::uint16_t TcpAddress::port() const { return ntohs(is_v6() ? v6().sin6_port : v4().sin_port); }

TcpAddress TcpAddress::with_port(std::uint16_t port) const {
  TcpAddress other = *this;
  (is_v6() ? other.v6().sin6_port : other.v4().sin_port) = htons(port);
  return other;
}

std::string TcpAddress::host() const {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const void* const from = is_v6() ? static_cast<const void*>(&v6().sin6_addr) : &v4().sin_addr;
  inet_ntop(storage_.sin6_family, from, text.data(), text.size());
  return text.data();
}

std::string TcpAddress::text() const { return (is_v6() ? '[' + host() + ']' : host()) + ':' + std::to_string(port()); }

}  // namespace duet::transport
