#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "duet/peer/server_fixture_test.h"

namespace duet::peer {
namespace {

TEST(Broadcast, ReachesEveryClient) {
  ServerSetting s;
  s.server.start(s.path);
  const auto first = s.connect();
  const auto second = s.connect();
  EXPECT_EQ(s.server.broadcast("event.tick", rpc::Json::view(R"({"seq":1})")), 0U);
  s.turn();
  EXPECT_EQ(first->take(Framing::lines), Strings{notification("event.tick", R"({"seq":1})")});
  EXPECT_EQ(second->take(Framing::lines), Strings{notification("event.tick", R"({"seq":1})")});
}

TEST(Broadcast, AClientThatDoesNotReadMissesEventsAndNeverItsReplies) {
  ServerLimits limits;
  limits.max_unread_broadcast = 50'000;
  ServerSetting s(limits);
  s.server.start(s.path);
  const auto slow = s.connect();
  const auto quick = s.connect();
  int missed = 0;
  s.events.on_missed = [&](Connection& connection) {
    ++missed;
    EXPECT_EQ(connection.peer().connection, 1U);
  };
  slow->read(false);
  slow->send(request("1", "long") + '\n' + request("2", "long") + '\n');
  s.turn();
  constexpr int events = 3000;
  std::size_t missed_sum = 0;
  for (int i = 0; i < events; ++i) {
    missed_sum += s.server.broadcast("event.tick", rpc::Json::trusted(quoted_text(1000)));
    s.turn(1);
  }
  slow->send(request("3", "long") + '\n');
  ASSERT_TRUE(s.turn_until([&] { return slow->sent_all(); }));
  s.turn();
  EXPECT_GT(missed, 1000);
  EXPECT_EQ(missed_sum, static_cast<std::size_t>(missed));
  EXPECT_EQ(quick->take(Framing::lines).size(), std::size_t{events});
  slow->read(true);
  Strings heard;
  ASSERT_TRUE(s.turn_until([&] {
    for (std::string& message : slow->take(Framing::lines)) heard.push_back(std::move(message));
    return !heard.empty() && heard.back().starts_with(R"({"jsonrpc":"2.0","id":3)");
  }));
  EXPECT_EQ(heard.size(), static_cast<std::size_t>(events - missed) + 3);
  EXPECT_TRUE(slow->is_whole());
}

/// Clients that ask for much and do not read.
struct Crowd : ServerSetting {
  static constexpr std::size_t bound = 2'000'000;
  static ServerLimits limits() {
    ServerLimits bounded;
    bounded.max_waiting = bound;
    return bounded;
  }
  static Protocol protocol() {
    Protocol bounded = Protocol::json_lines();
    bounded.max_waiting = 1'000'000;
    return bounded;
  }
  Crowd() : ServerSetting(limits(), protocol()) { server.start(path); }

  void add_greedy(int requests) {
    greedy.push_back(connect());
    greedy.back()->read(false);
    for (int i = 0; i < requests; ++i) greedy.back()->send(request("1", "long") + '\n');
    turn(200);
  }
  std::vector<std::unique_ptr<FarEnd>> greedy;
};

TEST(ServerBound, HoldsHoweverManyClientsDoNotRead) {
  Crowd s;
  for (int i = 0; i < 20; ++i) {
    s.add_greedy(1000);
    std::size_t sum = 0;
    for (const Conversation* conversation : s.asking) sum += conversation->load();
    EXPECT_LT(sum, Crowd::bound + s.asking.size() * 150'000) << i;  // one answer each is always given
  }
  EXPECT_EQ(s.asking.size(), 20U);
}

TEST(ServerBound, WhoeverReadsIsServedBesideThoseWhoDoNot) {
  Crowd s;
  for (int i = 0; i < 8; ++i) s.add_greedy(1000);
  const auto modest = s.connect();
  for (int i = 0; i < 10; ++i) EXPECT_EQ(s.ask(*modest, request("1", "echo")), Strings{result("1", "null")});
}

TEST(ServerBound, CountsBroadcastsToo) {
  Crowd s;
  for (int i = 0; i < 30; ++i) s.add_greedy(1);
  for (int i = 0; i < 5000; ++i) {
    s.server.broadcast("event.tick", rpc::Json::trusted(quoted_text(1000)));
    s.turn(1);
  }
  std::size_t sum = 0;
  for (const Conversation* conversation : s.asking) sum += conversation->load();
  EXPECT_EQ(s.asking.size(), 30U);
  EXPECT_LT(sum, Crowd::bound + 30 * 2000);
}

TEST(ServerBound, AnHonestClientIsNotPausedForEverBecauseOfTheOthers) {
  Crowd s;
  for (int i = 0; i < 8; ++i) s.add_greedy(1000);
  const auto honest = s.connect();
  for (int i = 0; i < 10; ++i) {
    honest->read(false);
    for (int k = 0; k < 8; ++k) honest->send(request(std::to_string(k), "long") + '\n');
    s.turn(50);
    honest->read(true);
    Strings heard;
    ASSERT_TRUE(s.turn_until([&] {
      for (std::string& answer : honest->take(Framing::lines)) heard.push_back(std::move(answer));
      return heard.size() == 8;
    })) << i;
  }
}

TEST(ServerBound, ThePausedGoOnWhenThereIsRoomAgain) {
  Crowd s;
  for (int i = 0; i < 8; ++i) s.add_greedy(30);
  for (const auto& greedy : s.greedy) greedy->read(true);
  for (const auto& greedy : s.greedy) {
    std::size_t heard = 0;
    ASSERT_TRUE(s.turn_until([&] {
      heard += greedy->take(Framing::lines).size();
      return heard == 30;
    }));
  }
}

TEST(ServerBound, CountsMessagesThatHaveOnlyComeInPart) {
  Crowd s;
  const std::string start = R"({"jsonrpc":"2.0","id":1,"method":"echo","params":[")" + std::string(300'000, 'x');
  std::vector<std::unique_ptr<FarEnd>> clients;
  std::set<Conversation*> conversations;
  s.events.on_opened = [&](Connection& connection) { conversations.insert(&connection.conversation()); };
  for (int i = 0; i < 20; ++i) {
    clients.push_back(s.connect());
    clients.back()->send(start);
    EXPECT_TRUE(s.turn_until([&] { return clients.back()->sent_all(); }));
    s.turn();
    std::size_t sum = 0;
    for (const Conversation* conversation : conversations) sum += conversation->load();
    EXPECT_LT(sum, Crowd::bound + 100'000) << i;
  }
  std::size_t refused = 0;
  for (const auto& client : clients) {
    client->send("\"]}\n" + request("2", "echo") + '\n');
    s.turn(50);
    const Strings answers = client->take(Framing::lines);
    ASSERT_EQ(answers.size(), 2U);
    refused += answers[0] == error("null", -32600, "Invalid Request", R"({"reason":"overload"})") ? 1 : 0;
    EXPECT_EQ(answers[1], result("2", "null"));
  }
  EXPECT_GE(refused, 13U);
  EXPECT_LE(refused, 15U);
}

TEST(ServerBound, BytesThatAreHeldButAreNoMessageHoldNobodyUp) {
  ServerLimits limits;
  limits.max_waiting = 1000;
  ServerSetting s(limits, Protocol::lsp_server());
  s.server.start(s.path);
  const auto framed = [](const std::string& body) {
    return "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
  };
  const auto noisy = s.connect();
  noisy->send("junk\r\n");
  const auto greedy = s.connect();
  greedy->read(false);
  for (int i = 0; i < 10; ++i) greedy->send(framed(request("1", "long")));
  s.turn(50);
  const auto honest = s.connect();
  honest->send(framed(request("2", "echo")));
  s.turn(50);
  EXPECT_EQ(honest->take(Framing::content_length), Strings{result("2", "null")});
}

TEST(ServerBound, ForgetsWhatConnectionsHeldThatAreGone) {
  Crowd s;
  s.server.register_method("vanish", [](const Request& asked) {
    asked.conversation.close();
    return rpc::Json::trusted('"' + std::string(500'000, 'z') + '"');
  });
  for (int i = 0; i < 20; ++i) s.ask(*s.connect(), request("1", "vanish"));
  const auto honest = s.connect();
  for (int i = 0; i < 3; ++i) {
    honest->read(false);
    for (int k = 0; k < 5; ++k) honest->send(request("1", "long") + '\n');
    s.turn(50);
    honest->send(request("2", "echo") + '\n');
    s.turn(50);
    honest->read(true);
    std::size_t heard = 0;
    ASSERT_TRUE(s.turn_until([&] {
      heard += honest->take(Framing::lines).size();
      return heard == 6;
    }));
  }
}

}  // namespace
}  // namespace duet::peer
