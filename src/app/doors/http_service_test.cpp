#include "app/doors/http_service.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>

#include <gtest/gtest.h>

#include "app/project/temporary_project_test.h"
#include "duet/base/log_tape_test.h"
#include "duet/rpc/error.h"

namespace duet::app {
namespace {

using namespace std::chrono_literals;
using transport::TcpAddress;

struct NoEvents final : EventSource {
  bool open_stream(std::uint64_t, EventStream&, const StreamWish&) override { return true; }
  void go_on(std::uint64_t) override {}
  void close_stream(std::uint64_t) override {}
};

class HttpServiceTest : public testing::Test {
 protected:
  HttpServiceTest() {
    server.methods().add("ping", "", [] { return 1; });
    service.start(on_demand, std::nullopt);
  }

  HttpService::Context context() {
    return {.loop = loop,
            .log = tape.log(),
            .server = server,
            .events = events,
            .folder = folder,
            .most_connections = 100,
            .set_problem = [this](const std::string&, std::string problem) { last_problem = std::move(problem); },
            .end_caller = [](std::uint64_t) {},
            .metrics = [] { return std::string(); },
            .on_empty = [] {}};
  }
  void turn() {
    for (int i = 0; i < 20; ++i) loop.turn(loop.now());
  }
  /// Connected to the door where it was opened last; or not.
  base::Fd connect() {
    base::Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const auto* const general = reinterpret_cast<const sockaddr*>(&address);
    if (::connect(socket.get(), general, sizeof address) != 0) return {};
    fcntl(socket.get(), F_SETFL, O_NONBLOCK);
    return socket;
  }
  void open() { port = TcpAddress::parse(service.open_on_demand().substr(7)).value().port(); }
  std::string ask(const base::Fd& socket, const std::string& token) {
    const std::string request =
        "GET /metrics HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + token + "\r\n\r\n";
    EXPECT_TRUE(base::write_all(socket.get(), request));
    std::array<char, 4096> room{};
    for (int i = 0; i < 30'000; ++i) {
      turn();
      const ssize_t count = read(socket.get(), room.data(), room.size());
      if (count > 0) return {room.data() + 9, 3};
      usleep(1000);
    }
    return "none";
  }
  bool ends(const base::Fd& socket) {
    std::array<char, 4096> room{};
    turn();
    return read(socket.get(), room.data(), room.size()) == 0;
  }
  std::string token(const std::string& name, std::optional<base::Duration> life) {
    const base::UtcTime now = clock.utc();
    const auto end = life ? std::optional<base::UtcTime>(now + *life) : std::nullopt;
    return service.tokens().create(name, "own", end, now).value().token;
  }

  const HttpSettings on_demand{};
  TemporaryProject place;
  StateFolder folder = StateFolder::make(place.project());
  base::VirtualClock clock{base::UtcTime(1'800'000'000s)};
  transport::Loop loop{clock};
  base::LogTape tape;
  NoEvents events;
  peer::Server server{loop, tape.log()};
  std::string last_problem;
  std::uint16_t port = 0;
  HttpService service{context()};
};

TEST_F(HttpServiceTest, IsClosedUntilSomebodyAsks) {
  EXPECT_EQ(service.url(), std::nullopt);
  open();
  EXPECT_EQ(service.url(), "http://127.0.0.1:" + std::to_string(port));
  EXPECT_TRUE(connect());
  const std::uint16_t first = port;
  open();
  EXPECT_EQ(port, first);
}

TEST_F(HttpServiceTest, StaysClosedIfTheSettingsSaySo) {
  HttpSettings off;
  off.on_demand = false;
  service.reload(off);
  EXPECT_THROW(service.open_on_demand(), rpc::Error);
}

TEST_F(HttpServiceTest, IsMovedAndClosedByTheSettings) {
  HttpSettings somewhere;
  somewhere.listen = TcpAddress::parse("127.0.0.1:0");
  service.reload(somewhere);
  EXPECT_TRUE(service.url());
  const std::string at = *service.url();
  service.reload(somewhere);
  EXPECT_EQ(service.url(), at) << "port 0 is also the one that it has";
  service.reload(on_demand);
  EXPECT_EQ(service.url(), std::nullopt);
  EXPECT_EQ(last_problem, "");
}

TEST_F(HttpServiceTest, TakesNobodyWhenTheDaemonEndsAndKeepsWhoIsThere) {
  open();
  const std::string secret = token("ci", std::nullopt);
  const base::Fd before = connect();
  EXPECT_EQ(ask(before, secret), "200");
  service.take_nobody();
  turn();
  EXPECT_FALSE(connect());
  EXPECT_EQ(service.url(), std::nullopt);
  EXPECT_THROW(service.open_on_demand(), rpc::Error);
  EXPECT_EQ(ask(before, secret), "200");
  HttpSettings somewhere;
  somewhere.listen = TcpAddress::parse("127.0.0.1:0");
  service.reload(somewhere);
  EXPECT_FALSE(connect()) << "it is not opened again";
}

TEST_F(HttpServiceTest, ATokenEndsInTimeWhoeverElseIsThere) {
  open();
  const std::string for_ever = token("a", std::nullopt);
  const std::string for_days = token("b", 24h * 30);
  const std::string for_seconds = token("c", 8s);
  const base::Fd first = connect();
  const base::Fd second = connect();
  const base::Fd third = connect();
  EXPECT_EQ(ask(first, for_ever), "200");
  EXPECT_EQ(ask(second, for_days), "200");
  clock.advance(4s);
  EXPECT_EQ(ask(third, for_seconds), "200") << "the next look at the tokens is sooner than its end";
  clock.advance(3s);
  EXPECT_EQ(ask(third, for_seconds), "200");
  EXPECT_FALSE(ends(third));
  clock.advance(1s);
  EXPECT_TRUE(ends(third));
  EXPECT_EQ(ask(first, for_ever), "200");
  EXPECT_EQ(ask(second, for_days), "200");
}

TEST_F(HttpServiceTest, ATokenThatEndsSoonerThanTheNextLookIsNotForgotten) {
  open();
  const base::Fd first = connect();
  EXPECT_EQ(ask(first, token("a", 1h)), "200");  // the next look is in 5 s
  const base::Fd second = connect();
  EXPECT_EQ(ask(second, token("b", 2s)), "200");
  clock.advance(2s);
  EXPECT_TRUE(ends(second));
}

}  // namespace
}  // namespace duet::app
