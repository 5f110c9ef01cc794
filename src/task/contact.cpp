#include "task/contact.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>

namespace duet::task {
namespace {

constexpr std::size_t max_descriptors = 8;
constexpr int backlog = 8;

using DescriptorSpace = std::array<char, CMSG_SPACE(sizeof(int) * max_descriptors)>;

base::Fd new_socket() { return base::Fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)); }

// Through the folder's handle: a socket's address has 108 bytes, a path may have more.
sockaddr_un address_in(int folder, const std::string& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = "/proc/self/fd/" + std::to_string(folder) + '/' + name;
  if (path.size() >= sizeof address.sun_path) throw std::system_error(ENAMETOOLONG, std::generic_category(), "socket");
  std::copy(path.begin(), path.end(), address.sun_path);
  return address;
}

const sockaddr* generic(const sockaddr_un& address) { return reinterpret_cast<const sockaddr*>(&address); }

bool is_ours(int socket) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return false;
  return peer.uid == geteuid() || peer.uid == 0;
}

}  // namespace

bool send_message(int socket, const Message& message) {
  return send(socket, &message, sizeof message, MSG_NOSIGNAL | MSG_DONTWAIT) == static_cast<ssize_t>(sizeof message);
}

Received receive_message(int socket) {
  while (true) {
    Message message;
    const ssize_t count = recv(socket, &message, sizeof message, MSG_DONTWAIT);
    if (count == static_cast<ssize_t>(sizeof message)) return {.message = message};
    if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return {};
    if (count == 0 || (count < 0 && errno != EINTR)) return {.closed = true};
  }
}

base::Fd listen_in(int folder, const std::string& name) {
  base::Fd listener = new_socket();
  base::check_call(listener.get(), "socket");
  base::check_call(fchmod(listener.get(), 0600), "fchmod");  // before bind, which gives the file the socket's mode
  const sockaddr_un address = address_in(folder, name);
  base::check_call(bind(listener.get(), generic(address), sizeof address), "bind");
  base::check_call(listen(listener.get(), backlog), "listen");
  return listener;
}

base::Fd connect_in(int folder, const std::string& name) {
  base::Fd contact = new_socket();
  const sockaddr_un address = address_in(folder, name);
  if (contact && connect(contact.get(), generic(address), sizeof address) != 0) contact.reset();
  return contact;
}

base::Fd accept_contact(int listener) {
  while (true) {
    base::Fd contact(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!contact || is_ours(contact.get())) return contact;
  }
}

bool send_packet(int socket, std::string_view bytes, std::span<const int> descriptors) {
  alignas(cmsghdr) DescriptorSpace space{};
  iovec part{.iov_base = const_cast<char*>(bytes.data()), .iov_len = bytes.size()};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = space.data();
  header.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
  cmsghdr* control = CMSG_FIRSTHDR(&header);
  control->cmsg_level = SOL_SOCKET;
  control->cmsg_type = SCM_RIGHTS;
  control->cmsg_len = CMSG_LEN(descriptors.size_bytes());
  std::memcpy(CMSG_DATA(control), descriptors.data(), descriptors.size_bytes());
  return sendmsg(socket, &header, MSG_NOSIGNAL | MSG_DONTWAIT) == static_cast<ssize_t>(bytes.size());
}

std::optional<Packet> receive_packet(int socket) {
  Packet packet;
  packet.bytes.resize(max_packet_bytes);
  alignas(cmsghdr) DescriptorSpace space{};
  iovec part{.iov_base = packet.bytes.data(), .iov_len = packet.bytes.size()};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = space.data();
  header.msg_controllen = space.size();
  ssize_t count = -1;
  while ((count = recvmsg(socket, &header, MSG_CMSG_CLOEXEC)) < 0) {
    if (errno != EINTR && errno != EAGAIN) return std::nullopt;
    pollfd ready{.fd = socket, .events = POLLIN, .revents = 0};
    poll(&ready, 1, -1);
  }
  if (count == 0) return std::nullopt;
  packet.bytes.resize(static_cast<std::size_t>(count));
  const cmsghdr* control = CMSG_FIRSTHDR(&header);
  if (control == nullptr || control->cmsg_type != SCM_RIGHTS) return packet;
  const std::size_t number = (control->cmsg_len - CMSG_LEN(0)) / sizeof(int);
  for (std::size_t i = 0; i < number; ++i) {
    int fd = -1;
    std::memcpy(&fd, CMSG_DATA(control) + i * sizeof(int), sizeof fd);
    packet.descriptors.emplace_back(fd);
  }
  return packet;
}

}  // namespace duet::task
