#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "duet/peer/server_fixture_test.h"
#include "duet/transport/memory.h"

namespace duet::peer {
namespace {

using namespace std::chrono_literals;

constexpr const char* full =
    R"({"jsonrpc":"2.0","id":null,"error":{"code":-32003,"message":"Too many clients","data":{"limit":5}}})";

/// A server with five places, two of them for visitors.
struct FullServer : testing::Test {
  FullServer() {
    s.events.on_full = [this](bool is) { told.push_back(is ? "full" : "room"); };
    s.server.start(s.path);
  }
  void come(std::size_t count) {
    while (clients.size() < count) clients.push_back(s.connect());
  }
  void pass(base::Duration step) {
    s.clock.advance(step);
    s.turn();
  }
  FarEnd& client(std::size_t number) { return *clients.at(number - 1); }

  ServerSetting s{{.max_clients = 5, .visitors = 2}};
  std::vector<std::unique_ptr<FarEnd>> clients;
  Strings told;
};

TEST_F(FullServer, WhoComesWhileThereIsRoomStays) {
  come(5);
  pass(1h);
  EXPECT_EQ(s.server.client_count(), 5U);
  EXPECT_EQ(told, Strings{});
}

TEST_F(FullServer, AnIdleVisitorMakesWayForTheNextAndIsToldWhy) {
  come(6);
  EXPECT_EQ(s.server.client_count(), 5U);
  EXPECT_EQ(told, Strings{"full"});
  pass(100ms);
  EXPECT_EQ(s.server.client_count(), 5U);
  EXPECT_EQ(client(4).take(Framing::lines), Strings{full});
  EXPECT_TRUE(client(4).ended());
  EXPECT_EQ(s.ask(client(6), request("1", "echo", "[1]")), Strings{result("1", "[1]")});
  for (const std::size_t stays : {1U, 2U, 3U, 5U}) EXPECT_FALSE(client(stays).ended()) << stays;
}

TEST_F(FullServer, EveryoneGetsATurnHoweverManyIdle) {
  come(50);
  for (int i = 0; i < 60; ++i) pass(100ms);
  EXPECT_EQ(s.server.client_count(), 5U);
  auto last = s.connect();
  pass(100ms);
  pass(100ms);
  EXPECT_EQ(s.ask(*last, request("1", "echo", "[1]")), Strings{result("1", "[1]")});
  for (const std::size_t stays : {1U, 2U, 3U}) EXPECT_FALSE(client(stays).ended()) << stays;
}

TEST_F(FullServer, AVisitorThatIsOwedAnAnswerStaysLonger) {
  come(5);
  client(4).send(request("1", "late") + '\n');
  client(5).send(request("1", "late") + '\n');
  s.turn();
  come(6);
  pass(1900ms);
  EXPECT_FALSE(client(4).ended());
  pass(100ms);
  pass(100ms);
  EXPECT_EQ(client(4).take(Framing::lines), Strings{full});
  EXPECT_TRUE(client(4).ended());
  EXPECT_EQ(s.ask(client(6), request("1", "echo", "[1]")), Strings{result("1", "[1]")});
}

TEST_F(FullServer, WhoIsInsideTakesNobodysPlace) {
  std::vector<std::unique_ptr<transport::Channel>> inside;
  const auto somebody = std::make_shared<const Admission>(Admission{.door = "d", .name = "n", .role = "r"});
  for (int i = 0; i < 9; ++i) {
    auto [near, far] = transport::memory_pair(s.loop);
    s.server.admit_inside(std::move(far), somebody);
    inside.push_back(std::move(near));
  }
  EXPECT_EQ(s.server.inside_count(), 9U);
  EXPECT_EQ(s.server.client_count(), 0U);
  come(5);
  EXPECT_EQ(s.ask(client(5), request("1", "echo", "[1]")), Strings{result("1", "[1]")});
  EXPECT_EQ(told, Strings{});
  inside.clear();
  s.turn();
  EXPECT_EQ(s.server.inside_count(), 0U);
  EXPECT_EQ(s.server.client_count(), 5U);
}

TEST_F(FullServer, SaysWhenAllHaveAPlaceAgain) {
  come(6);
  pass(100ms);
  clients.resize(2);
  s.turn();
  EXPECT_EQ(told, (Strings{"full", "room"}));
}

}  // namespace
}  // namespace duet::peer
