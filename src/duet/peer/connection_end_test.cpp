#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "duet/peer/connection_fixture_test.h"
#include "duet/transport/fd_channel.h"

namespace duet::peer {
namespace {

using namespace std::chrono_literals;

TEST(ConnectionStop, WhatRunsMayFinishAndWhatHasNotBegunIsDropped) {
  TestConnection c;
  c.open();
  c.say({request("1", "late"), request("2", "echo"), notification("note")});
  c.connection->stop();
  c.send(request("3", "echo"));
  c.turn();
  EXPECT_EQ(c.endings, Endings{});
  EXPECT_TRUE(c.connection->conversation().owes_answer());
  c.answer_late("1");
  c.turn();
  EXPECT_EQ(c.heard(), Strings{result("1", "1")});
  EXPECT_TRUE(c.far->ended());
  EXPECT_EQ(c.endings, Endings{Ending::stopped});
  EXPECT_EQ(c.notes, Strings{});
  EXPECT_TRUE(c.connection->is_closed());
}

TEST(ConnectionStop, WithNothingRunningItIsOverAtOnce) {
  TestConnection c;
  c.open();
  c.turn();
  c.connection->stop();
  c.connection->stop();
  c.turn(1);
  EXPECT_EQ(c.endings, Endings{Ending::stopped});
  c.connection->stop();
  c.turn();
  EXPECT_EQ(c.endings.size(), 1U);
}

TEST(ConnectionStop, AskedForInsideAHandlerItsAnswerGoesOutAndTheRestIsDropped) {
  for (const bool asks : {true, false}) {
    TestConnection c;
    c.methods.add("shutdown", [&](const Request& asked) -> rpc::Json {
      if (asks) asked.conversation.ask_to_stop();
      if (!asks) asked.conversation.stop();
      return nullptr;
    });
    c.open();
    EXPECT_EQ(c.say({request("1", "echo"), request("2", "shutdown"), request("3", "echo")}),
              (Strings{result("1", "null"), result("2", "null")}));
    EXPECT_EQ(c.endings, Endings{Ending::stopped});
  }
}

TEST(ConnectionStop, TheAnswersThatWaitToBeReadAreWaitedFor) {
  TestConnection c(Protocol::json_lines(), 1024);
  c.open();
  c.far->read(false);
  c.send(request("1", "echo", quoted_text(5000)));
  c.turn();
  c.connection->stop();
  c.turn();
  EXPECT_EQ(c.endings, Endings{});
  c.far->read(true);
  c.turn(100);
  EXPECT_EQ(c.heard(), Strings{result("1", quoted_text(5000))});
  EXPECT_EQ(c.endings, Endings{Ending::stopped});
}

TEST(ConnectionStop, OfABatchTheMembersThatHaveBegunAreAnswered) {
  TestConnection c;
  c.open();
  c.say({"[" + request("1", "echo") + "," + request("2", "late") + "," + request("3", "late") + "]"});
  c.connection->stop();
  c.answer_late("2");
  c.turn();
  EXPECT_EQ(c.heard(), Strings{"[" + result("1", "null") + "," + result("2", "2") + "]"});
  EXPECT_EQ(c.begun, Strings{"2"});
  EXPECT_EQ(c.endings, Endings{Ending::stopped});
}

TEST(ConnectionClose, EndsEverythingAtOnce) {
  TestConnection c;
  c.open();
  c.say({request("1", "late"), request("2", "echo")});
  std::vector<Outcome> outcomes;
  c.connection->call("ask", {}, 30s, [&](Outcome outcome) { outcomes.push_back(std::move(outcome)); });
  c.connection->close();
  c.connection->close();
  EXPECT_EQ(c.endings, Endings{Ending::stopped});
  ASSERT_EQ(outcomes.size(), 1U);
  EXPECT_EQ(outcomes[0].cause, Outcome::Cause::disconnected);
  EXPECT_TRUE(c.replies.front().abandoned());
  EXPECT_EQ(c.connection->load(), 0U);
  EXPECT_FALSE(c.connection->notify("tell", {}));
  c.turn();
  EXPECT_TRUE(c.far->ended());
}

TEST(ConnectionClose, MayHappenInsideAHandler) {
  TestConnection c;
  c.methods.add("vanish", [](const Request& asked) -> rpc::Json {
    asked.conversation.close();
    return "for nobody";
  });
  c.add_late("vanish_later", [](const Request& asked, Reply<> reply) {
    asked.conversation.close();
    reply.ok("for nobody");
    throw std::runtime_error("on top of it");
  });
  c.open();
  EXPECT_EQ(c.say({request("1", "vanish"), request("2", "echo")}), Strings{});
  EXPECT_EQ(c.endings, Endings{Ending::stopped});
  EXPECT_EQ(c.connection->load(), 0U);

  TestConnection late;
  late.add_late("vanish_later", [](const Request& asked, Reply<> reply) {
    asked.conversation.close();
    reply.ok("for nobody");
    throw std::runtime_error("on top of it");
  });
  late.open();
  EXPECT_EQ(late.say({request("1", "vanish_later"), request("2", "echo")}), Strings{});
  EXPECT_EQ(late.connection->load(), 0U);
}

TEST(ConnectionClose, MayHappenInsideABatch) {
  TestConnection c;
  c.methods.add("vanish", [](const Request& asked) -> rpc::Json {
    asked.conversation.close();
    return asked.params.value();
  });
  c.open();
  EXPECT_EQ(c.say({"[" + request("1", "echo") + "," + request("2", "vanish", quoted_text(1000)) + "," +
                   request("3", "echo") + "]"}),
            Strings{});
  EXPECT_EQ(c.endings, Endings{Ending::stopped});
  EXPECT_EQ(c.connection->load(), 0U);
}

TEST(ConnectionClose, APeerThatIsGoneIsToldWithItsError) {
  TestConnection c(Protocol::json_lines(), 1024);
  c.open();
  c.far->read(false);
  c.send(request("1", "echo", quoted_text(5000)));
  c.turn(100);
  c.far->close();
  c.turn();
  EXPECT_EQ(c.endings, Endings{Ending::peer_gone});
  EXPECT_EQ(c.connection->failure(), EPIPE);
}

/// A channel that cannot be read.
class BrokenChannel final : public transport::Channel {
 public:
  void open(Listener& listener) override { listener_ = &listener; }
  void want(bool, bool) override {}
  transport::IoResult read(std::span<char>) override { return {transport::IoResult::State::broken, 0, EIO}; }
  transport::IoResult write(std::string_view bytes) override {
    return {transport::IoResult::State::some, bytes.size()};
  }
  void close() override { listener_ = nullptr; }
  void become_readable() { listener_->on_readable(); }

 private:
  Listener* listener_ = nullptr;
};

TEST(ConnectionClose, InputThatCannotBeReadIsToldWithItsError) {
  TestConnection c;
  auto channel = std::make_unique<BrokenChannel>();
  BrokenChannel& broken = *channel;
  Endings endings;
  ConnectionEvents events;
  events.on_closed = [&](Ending ending) { endings.push_back(ending); };
  Connection connection(c.loop, std::move(channel), Protocol::lsp_server(), c.methods, c.tape.log(), events);
  connection.open();
  broken.become_readable();
  EXPECT_EQ(endings, Endings{Ending::unreadable});
  EXPECT_EQ(connection.failure(), EIO);
}

TEST(ConnectionClose, ADestroyedConnectionTellsItsCallersAndNobodyElse) {
  TestConnection c;
  c.open();
  std::vector<Outcome::Cause> causes;
  const auto keep = [&](const Outcome& outcome) { causes.push_back(outcome.cause); };
  c.connection->call("ask", {}, 30s, keep);
  c.turn();
  c.connection.reset();
  EXPECT_EQ(causes, std::vector{Outcome::Cause::disconnected});
  EXPECT_EQ(c.endings, Endings{});
  c.advance(60s);
}

TEST(ConnectionClose, ACallOfAClosedConnectionGetsItsOutcomeThoughTheConnectionGoes) {
  TestConnection c;
  c.open();
  c.connection->close();
  std::vector<Outcome::Cause> causes;
  const auto keep = [&](const Outcome& outcome) { causes.push_back(outcome.cause); };
  c.connection->call("ask", {}, 30s, keep);
  EXPECT_TRUE(causes.empty());
  c.turn();
  EXPECT_EQ(causes, std::vector{Outcome::Cause::disconnected});
  c.connection->call("ask", {}, 30s, keep);
  c.connection.reset();
  c.turn();
  EXPECT_EQ(causes.size(), 2U);
}

TEST(ConnectionClose, ACallerThatTriesAgainWhenItsCallFailsDoesNotGoRoundForEver) {
  int tries = 0;
  std::function<void(Outcome)> again;
  TestConnection c;
  c.open();
  again = [&](const Outcome&) {
    if (++tries < 1000) c.connection->call("ask", {}, 30s, again);
  };
  c.connection->call("ask", {}, 30s, again);
  c.connection->close();
  EXPECT_EQ(tries, 1);
  c.turn(5);
  EXPECT_LT(tries, 10);
}

struct OverSocket : TestConnection {
  OverSocket() {
    std::array<int, 2> ends{};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
    far_socket = ends[0];
    far.emplace(std::make_unique<transport::FdChannel>(loop, base::Fd(ends[0])));
    events.on_closed = [this](Ending ending) { endings.push_back(ending); };
    connection = std::make_unique<Connection>(loop, std::make_unique<transport::FdChannel>(loop, base::Fd(ends[1])),
                                              Protocol::json_lines(), methods, tape.log(), events);
    connection->open();
  }
  int far_socket = -1;
};

TEST(ConnectionHalfClose, EveryWholeLineIsAnsweredSlowOnesTooThenWeClose) {
  OverSocket s;
  s.send(request("1", "echo"));
  s.send(request("2", "late"));
  s.send(request("3", "echo"));
  s.far->send(request("4", "echo"));  // no newline
  shutdown(s.far_socket, SHUT_WR);
  s.turn();
  EXPECT_EQ(s.heard(), Strings{result("1", "null")});
  EXPECT_FALSE(s.far->ended());
  s.answer_late("2");
  s.turn();
  EXPECT_EQ(s.heard(), (Strings{result("2", "2"), result("3", "null")}));
  EXPECT_TRUE(s.far->ended());
  EXPECT_EQ(s.endings, Endings{Ending::input_ended});
}

TEST(ConnectionHalfClose, ACloseOfTheOtherSideTooIsNoticedWhileAnAnswerIsAwaited) {
  OverSocket s;
  s.send(request("1", "late"));
  shutdown(s.far_socket, SHUT_WR);
  s.turn();
  int told = 0;
  s.replies.front().on_abandoned([&] { ++told; });
  s.far->close();
  s.turn();
  EXPECT_EQ(told, 1);
  EXPECT_EQ(s.endings, Endings{Ending::peer_gone});
}

}  // namespace
}  // namespace duet::peer
