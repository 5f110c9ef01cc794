#include "task/contact.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <system_error>
#include <utility>

#include "task/packing.h"

namespace duet::task {
namespace {

constexpr std::size_t max_descriptors = 8;
constexpr int backlog = 8;
constexpr std::size_t max_problem_bytes = 1024;
constexpr std::size_t max_message_bytes = 68 * 1024;  // a report with a result of 64 KiB

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

// The fixed part of a message. Keepers and daemons of all versions have the same.
struct Head {
  Message::Kind kind;
  std::uint32_t attempt;
  std::uint64_t task;
  std::uint64_t value;
};

std::uint64_t to_number(base::UtcTime time) {
  const auto since = std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch());
  return static_cast<std::uint64_t>(since.count());
}

base::UtcTime to_time(std::uint64_t number) {
  const std::chrono::nanoseconds since(static_cast<std::int64_t>(number));
  return base::UtcTime(std::chrono::duration_cast<base::UtcTime::duration>(since));
}

std::string pack(const Report& report) {
  const Started started = report.started.value_or(Started{});
  const Outcome outcome = report.outcome.value_or(Outcome{});
  Packer out;
  out.put(report.started.has_value());
  out.put(static_cast<std::uint64_t>(started.pid));
  out.put(to_number(started.at));
  out.put(report.outcome.has_value());
  out.put(static_cast<std::uint64_t>(outcome.kind));
  out.put(static_cast<std::uint64_t>(outcome.code));
  out.put(static_cast<std::uint64_t>(outcome.signal));
  out.put(outcome.timed_out);
  out.put(to_number(outcome.ended_at));
  out.put(std::string_view(outcome.problem).substr(0, max_problem_bytes));
  out.put(outcome.result);
  out.put(report.gone);
  out.put(outcome.usage.has_value());
  const Usage usage = outcome.usage.value_or(Usage{});
  out.put(static_cast<std::uint64_t>(usage.cpu.count()));
  out.put(usage.max_memory);
  out.put(usage.output_bytes);
  out.put(outcome.out_of_memory);
  return out.take();
}

void unpack_usage(Unpacker& in, Outcome& outcome) {
  const bool is_known = in.number() != 0;
  Usage usage{.cpu = std::chrono::microseconds(in.number())};
  usage.max_memory = in.number();
  usage.output_bytes = in.number();
  outcome.out_of_memory = in.number() != 0;
  if (is_known) outcome.usage = usage;
}

std::optional<Report> unpack_report(std::string_view bytes) {
  Unpacker in(bytes);
  Report report;
  const bool has_started = in.number() != 0;
  const Started started{static_cast<pid_t>(in.number()), to_time(in.number())};
  if (has_started) report.started = started;
  const bool has_outcome = in.number() != 0;
  Outcome outcome{.kind = static_cast<Outcome::Kind>(in.number()), .started = report.started};
  outcome.code = static_cast<int>(in.number());
  outcome.signal = static_cast<int>(in.number());
  outcome.timed_out = in.number() != 0;
  outcome.ended_at = to_time(in.number());
  outcome.problem = in.text();
  outcome.result = in.text();
  report.gone = in.number() != 0;
  if (!in.is_complete()) unpack_usage(in, outcome);  // else it is a keeper of version 0.1
  if (has_outcome) report.outcome = std::move(outcome);
  if (!in.is_complete()) return std::nullopt;
  return report;
}

std::optional<Message> unpack_message(std::string_view bytes) {
  Head head{};
  if (bytes.size() < sizeof head) return std::nullopt;
  std::memcpy(&head, bytes.data(), sizeof head);
  Message message{.kind = head.kind, .attempt = head.attempt, .task = head.task, .value = head.value};
  if ((head.kind == Message::Kind::report) != (bytes.size() > sizeof head)) return std::nullopt;
  if (head.kind == Message::Kind::report) message.report = unpack_report(bytes.substr(sizeof head));
  if (head.kind == Message::Kind::report && !message.report) return std::nullopt;
  return message;
}

}  // namespace

bool send_message(int socket, const Message& message) {
  const Head head{message.kind, message.attempt, message.task, message.value};
  std::string bytes(reinterpret_cast<const char*>(&head), sizeof head);
  if (message.report) bytes += pack(*message.report);
  return send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT) == static_cast<ssize_t>(bytes.size());
}

Received receive_message(int socket) {
  while (true) {
    std::array<char, max_message_bytes> bytes;  // not initialised: the kernel fills in what is used
    const ssize_t count = recv(socket, bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return {};
    if (count == 0 || (count < 0 && errno != EINTR)) return {.closed = true};
    if (auto message = unpack_message({bytes.data(), static_cast<std::size_t>(std::max<ssize_t>(count, 0))})) {
      return {.message = std::move(message)};
    }
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
  // Descriptors that there was no room for are lost, and with them what the packet asks for.
  if (count == 0 || (header.msg_flags & MSG_CTRUNC) != 0) return std::nullopt;
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
