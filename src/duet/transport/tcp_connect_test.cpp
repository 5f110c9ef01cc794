#include "duet/transport/tcp_connect.h"

#include <netinet/tcp.h>
#include <sys/socket.h>

#include <gtest/gtest.h>

#include "duet/transport/tcp_address.h"

namespace duet::transport {
namespace {

using namespace std::chrono_literals;

constexpr auto long_enough = 60s;

base::Fd bound_socket(const char* address, int backlog) {
  const TcpAddress wanted = TcpAddress::parse(address).value();
  base::Fd socket(
      base::check_call(::socket(wanted.is_v6() ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket"));
  base::check_call(bind(socket.get(), wanted.get(), wanted.size()), "bind");
  if (backlog >= 0) base::check_call(listen(socket.get(), backlog), "listen");
  return socket;
}

std::uint16_t port_of(const base::Fd& socket) { return TcpAddress::of(socket.get()).port(); }

Unreachable failure_at(const std::string& host, std::uint16_t port, std::chrono::milliseconds patience = long_enough) {
  try {
    connect_tcp(host, port, patience);
  } catch (const Unreachable& failure) {
    return failure;
  }
  ADD_FAILURE() << "somebody was reached";
  return {"", false};
}

TEST(ConnectTcpTest, ReachesAnAddress) {
  const base::Fd server = bound_socket("127.0.0.1:0", 8);
  const base::Fd client = connect_tcp("127.0.0.1", port_of(server), long_enough);
  EXPECT_EQ(TcpAddress::of_peer(client.get()), TcpAddress::of(server.get()));
  int no_delay = 0;
  socklen_t size = sizeof no_delay;
  getsockopt(client.get(), IPPROTO_TCP, TCP_NODELAY, &no_delay, &size);
  EXPECT_NE(no_delay, 0);
}

TEST(ConnectTcpTest, ReachesTheAddressOfANameThatAnswers) {
  const base::Fd server = bound_socket("127.0.0.1:0", 8);  // `localhost` may be ::1 as well, where nobody listens
  EXPECT_TRUE(connect_tcp("localhost", port_of(server), long_enough));
}

TEST(ConnectTcpTest, SaysWhereNobodyListens) {
  const base::Fd taken = bound_socket("127.0.0.1:0", -1);
  const Unreachable failure = failure_at("127.0.0.1", port_of(taken));
  EXPECT_FALSE(failure.timed_out());
  EXPECT_EQ(failure.what(), TcpAddress::of(taken.get()).text() + ": Connection refused");
}

TEST(ConnectTcpTest, SaysWhichNameIsNotKnown) {
  const Unreachable failure = failure_at("no-such-host.invalid", 1);
  EXPECT_NE(std::string(failure.what()).find("no-such-host.invalid"), std::string::npos);
}

TEST(ConnectTcpTest, GivesUpWhenTheTimeIsOver) {
  const base::Fd server = bound_socket("127.0.0.1:0", 0);
  std::vector<base::Fd> fill;  // a full backlog leaves who comes without an answer
  for (int i = 0; i < 4; ++i) {
    fill.emplace_back(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    const TcpAddress to = TcpAddress::of(server.get());
    connect(fill.back().get(), to.get(), to.size());
  }
  const Unreachable failure = failure_at("127.0.0.1", port_of(server), 50ms);
  EXPECT_TRUE(failure.timed_out());
  EXPECT_NE(std::string(failure.what()).find("no answer"), std::string::npos);
}

}  // namespace
}  // namespace duet::transport
