#include "duet/transport/socket_owner.h"

#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>

namespace duet::transport {
namespace {

struct Question {
  nlmsghdr header{};
  inet_diag_req_v2 asked{};
};

void copy_address(const TcpAddress& address, __be16& port, std::span<__be32, 4> words) {
  port = htons(address.port());
  if (address.is_v6()) {
    std::memcpy(words.data(), &reinterpret_cast<const sockaddr_in6*>(address.get())->sin6_addr, sizeof(in6_addr));
  } else {
    words[0] = reinterpret_cast<const sockaddr_in*>(address.get())->sin_addr.s_addr;
  }
}

Question question_for(const TcpAddress& there, const TcpAddress& here) {
  Question question;
  question.header = {.nlmsg_len = sizeof question,
                     .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                     .nlmsg_flags = NLM_F_REQUEST,
                     .nlmsg_seq = 0,
                     .nlmsg_pid = 0};
  question.asked.sdiag_family = there.is_v6() ? AF_INET6 : AF_INET;
  question.asked.sdiag_protocol = IPPROTO_TCP;
  question.asked.idiag_states = std::numeric_limits<std::uint32_t>::max();
  inet_diag_sockid& id = question.asked.id;
  copy_address(there, id.idiag_sport, id.idiag_src);
  copy_address(here, id.idiag_dport, id.idiag_dst);
  std::ranges::fill(id.idiag_cookie, INET_DIAG_NOCOOKIE);
  return question;
}

}  // namespace

SocketOwners::SocketOwners()
    : netlink_(base::check_call(socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_SOCK_DIAG),
                                "NETLINK_SOCK_DIAG")) {}

// The kernel answers while the question is sent. What an earlier question left behind would stand before it.
std::optional<uid_t> SocketOwners::owner_of(const TcpAddress& there, const TcpAddress& here) {
  alignas(nlmsghdr) std::array<char, 1024> answer{};
  while (recv(netlink_.get(), answer.data(), answer.size(), 0) > 0) {
  }
  const Question question = question_for(there, here);
  if (send(netlink_.get(), &question, sizeof question, 0) != sizeof question) return std::nullopt;
  const ssize_t size = recv(netlink_.get(), answer.data(), answer.size(), 0);
  if (size < static_cast<ssize_t>(NLMSG_LENGTH(sizeof(inet_diag_msg)))) return std::nullopt;
  const auto* const header = reinterpret_cast<const nlmsghdr*>(answer.data());
  if (header->nlmsg_type != SOCK_DIAG_BY_FAMILY) return std::nullopt;
  inet_diag_msg found{};
  std::memcpy(&found, answer.data() + NLMSG_HDRLEN, sizeof found);
  // A socket without an inode is on its way out: the kernel says root of it, whoever had it.
  if (found.idiag_inode == 0) return std::nullopt;
  return found.idiag_uid;
}

}  // namespace duet::transport
