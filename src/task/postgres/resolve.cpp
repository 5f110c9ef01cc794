#include "task/postgres/resolve.h"

#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <memory>

namespace duet::task::postgres {
namespace {

struct AddressDelete {
  void operator()(addrinfo* list) const { ::freeaddrinfo(list); }
};

std::string numeric(const addrinfo& found) {
  char text[NI_MAXHOST];
  const int failed =
      ::getnameinfo(found.ai_addr, found.ai_addrlen, text, sizeof(text), nullptr, 0, NI_NUMERICHOST | NI_NUMERICSERV);
  return failed == 0 ? text : "";
}

void look_up(const Host& host, Resolved& into) {
  addrinfo wanted{};
  wanted.ai_family = AF_UNSPEC;
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const int failed = ::getaddrinfo(host.name.c_str(), nullptr, &wanted, &list);
  if (failed != 0) {
    into.error = "no address of " + host.name + ": " + ::gai_strerror(failed);
    return;
  }
  const std::unique_ptr<addrinfo, AddressDelete> owned(list);
  for (const addrinfo* found = list; found != nullptr; found = found->ai_next) {
    const std::string address = numeric(*found);
    if (address.empty() || (host.is_here() && !is_loopback(address))) continue;
    into.candidates.push_back({host.name, address, host.port});
  }
}

}  // namespace

std::string Candidate::text() const {
  const std::string place = Host{host, address, port}.text();
  return address.empty() || host.empty() || host == address ? place : place + " (" + address + ")";
}

Resolved resolve(const std::vector<Host>& hosts) {
  Resolved all;
  for (const Host& host : hosts) {
    if (host.is_unix_socket() || !host.address.empty()) {
      all.candidates.push_back({host.name, host.address, host.port});
    } else {
      look_up(host, all);
    }
  }
  return all;
}

}  // namespace duet::task::postgres
