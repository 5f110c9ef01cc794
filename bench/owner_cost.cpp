// What it costs to ask the kernel whose a TCP connection of this machine is, as the HTTP door does for each client.
// Prints the median in microseconds as JSON.

#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

#include "duet/transport/socket_owner.h"
#include "duet/transport/tcp_acceptor.h"

int main() {
  using namespace duet;
  using Clock = std::chrono::steady_clock;
  const base::Fd listener = transport::listen_tcp(transport::TcpAddress::parse("127.0.0.1:0").value());
  const transport::TcpAddress here = transport::TcpAddress::of(listener.get());
  const base::Fd client(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (::connect(client.get(), here.get(), here.size()) != 0) return 1;
  const transport::TcpAddress there = transport::TcpAddress::of(client.get());
  transport::SocketOwners owners;
  std::vector<double> times(2000);
  for (double& time : times) {
    const auto began = Clock::now();
    if (!owners.owner_of(there, here)) return 1;
    time = std::chrono::duration<double, std::micro>(Clock::now() - began).count();
  }
  std::nth_element(times.begin(), times.begin() + 1000, times.end());
  std::printf("{\"p50_us\":%.2f}\n", times[1000]);
}
