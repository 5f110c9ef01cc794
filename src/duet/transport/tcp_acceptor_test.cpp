#include "duet/transport/tcp_acceptor.h"

#include <fcntl.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "duet/transport/fd_channel.h"
#include "duet/transport/socket_owner.h"

namespace duet::transport {
namespace {

TcpAddress address(std::string_view text) { return TcpAddress::parse(text).value(); }

base::Fd connected_to(const TcpAddress& there) {
  base::Fd fd(socket(there.is_v6() ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  base::check_call(connect(fd.get(), there.get(), there.size()), "connect");
  return fd;
}

struct Host final : Acceptor::Listener {
  bool has_room() override { return true; }
  void admit(std::unique_ptr<Channel> channel, const PeerIdentity& identity) override {
    channels.push_back(std::move(channel));
    last = identity;
  }
  std::vector<std::unique_ptr<Channel>> channels;
  PeerIdentity last;
};

struct Door {
  explicit Door(const std::string& where = "127.0.0.1:0") {
    base::Fd listener = listen_tcp(address(where));
    here = TcpAddress::of(listener.get());
    acceptor = tcp_acceptor(loop, std::move(listener));
    acceptor->open(host);
  }
  Loop loop;
  Host host;
  TcpAddress here;
  std::unique_ptr<Acceptor> acceptor;
};

TEST(TcpAddress, IsReadAndWrittenAlike) {
  for (const char* text : {"127.0.0.1:0", "127.0.0.1:65535", "0.0.0.0:7443", "[::1]:0", "[::]:7443", "[fe80::1]:1"})
    EXPECT_EQ(address(text).text(), text);
}

TEST(TcpAddress, IsNothingElse) {
  for (const char* text : {"",
                           ":",
                           "127.0.0.1",
                           "127.0.0.1:",
                           ":80",
                           "localhost:80",
                           "127.0.0.1:65536",
                           "127.0.0.1:-1",
                           "127.0.0.1:+1",
                           "127.0.0.1: 1",
                           "127.0.0.1:1 ",
                           "127.1:80",
                           "::1:80",
                           "[::1]",
                           "[::1]80",
                           "[127.0.0.1]:80",
                           "[]:80",
                           "[::1:80",
                           "127.0.0.01:80",
                           "0x7f.0.0.1:80"})
    EXPECT_FALSE(TcpAddress::parse(text)) << text;
}

TEST(TcpAddress, KnowsWhatOnlyThisMachineReaches) {
  for (const char* text : {"127.0.0.1:1", "127.255.255.254:1", "[::1]:1", "[::ffff:127.0.0.1]:1"})
    EXPECT_TRUE(address(text).is_loopback()) << text;
  for (const char* text : {"0.0.0.0:1", "128.0.0.1:1", "126.255.255.255:1", "192.0.2.7:1", "[::]:1", "[::2]:1",
                           "[fe80::1]:1", "[::ffff:10.0.0.1]:1"})
    EXPECT_FALSE(address(text).is_loopback()) << text;
}

TEST(TcpAcceptor, TellsWhoComes) {
  Door door;
  const base::Fd client = connected_to(door.here);
  door.loop.turn(std::chrono::seconds(5));
  ASSERT_EQ(door.host.channels.size(), 1U);
  EXPECT_EQ(door.host.last.uid, geteuid());
  EXPECT_EQ(door.host.last.address, TcpAddress::of(client.get()));
}

TEST(TcpAcceptor, TellsTheSameOverIpv6) {
  std::optional<Door> door;
  try {
    door.emplace("[::1]:0");
  } catch (const std::system_error&) {
    GTEST_SKIP() << "there is no IPv6 here";
  }
  const base::Fd client = connected_to(door->here);
  door->loop.turn(std::chrono::seconds(5));
  ASSERT_EQ(door->host.channels.size(), 1U);
  EXPECT_EQ(door->host.last.uid, geteuid());
}

TEST(TcpAcceptor, SendsAtOnceAndLeavesNothingToChildren) {
  Door door;
  const base::Fd client = connected_to(door.here);
  door.loop.turn(std::chrono::seconds(5));
  const int served = static_cast<FdChannel&>(*door.host.channels.at(0)).input();
  int value = 0;
  socklen_t size = sizeof value;
  ASSERT_EQ(getsockopt(served, IPPROTO_TCP, TCP_NODELAY, &value, &size), 0);
  EXPECT_EQ(value, 1);
  EXPECT_EQ(fcntl(served, F_GETFD), FD_CLOEXEC);
}

TEST(TcpAcceptor, HasItsAddressForItself) {
  const Door door;
  EXPECT_THROW(listen_tcp(door.here), std::system_error);
}

TEST(TcpAcceptor, ListensAgainWhereItHadClients) {
  std::optional<Door> door(std::in_place);
  const TcpAddress here = door->here;
  const base::Fd client = connected_to(here);
  door->loop.turn(std::chrono::seconds(5));
  door.reset();
  EXPECT_NO_THROW(listen_tcp(here));
}

TEST(SocketOwners, KnowNothingOfASocketThatIsNotThere) {
  SocketOwners owners;
  const Door door;
  EXPECT_EQ(owners.owner_of(door.here.with_port(1), door.here), std::nullopt);
}

// The kernel says root of a socket that was closed, whoever had it.
TEST(SocketOwners, NameNobodyForASocketThatItsProcessHasClosed) {
  SocketOwners owners;
  Door door;
  base::Fd client = connected_to(door.here);
  const TcpAddress there = TcpAddress::of(client.get());
  EXPECT_EQ(owners.owner_of(there, door.here), geteuid());
  client.reset();
  EXPECT_EQ(owners.owner_of(there, door.here), std::nullopt);
}

TEST(SocketOwners, KnowAnotherUser) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can be another user";
  constexpr uid_t other = 65534;
  SocketOwners owners;
  Door door;
  base::Pipe told = base::make_pipe();
  base::Pipe go = base::make_pipe();
  const pid_t child = fork();
  if (child == 0) {
    const bool changed = setresuid(other, other, other) == 0;
    const base::Fd client = connected_to(door.here);
    const std::uint16_t port = TcpAddress::of(client.get()).port();
    const bool written = changed && write(told.write_end.get(), &port, sizeof port) == sizeof port;
    char end = 0;
    go.write_end.reset();
    _exit(written && read(go.read_end.get(), &end, 1) == 0 ? 0 : 1);
  }
  std::uint16_t port = 0;
  ASSERT_EQ(read(told.read_end.get(), &port, sizeof port), static_cast<ssize_t>(sizeof port));
  EXPECT_EQ(owners.owner_of(door.here.with_port(port), door.here), other);
  go.write_end.reset();
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace duet::transport
