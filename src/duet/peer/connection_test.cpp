#include "duet/peer/connection.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "duet/peer/conversation_test.h"
#include "duet/peer/memory_use_test.h"
#include "duet/transport/fd_channel.h"

namespace duet::peer {
namespace {

using namespace std::chrono_literals;
using Endings = std::vector<Ending>;

std::string quoted_text(std::size_t size) { return "[\"" + std::string(size, 'x') + "\"]"; }

class ConnectionDoor : public testing::TestWithParam<Door> {};
INSTANTIATE_TEST_SUITE_P(Doors, ConnectionDoor, testing::Values(Door::stdio, Door::socket),
                         [](const auto& door) { return door.param == Door::stdio ? "stdio" : "socket"; });

TEST_P(ConnectionDoor, AnswersEveryRequestInAWholeMessageOfItsOwn) {
  Conversation c(GetParam());
  c.open();
  EXPECT_EQ(c.say({request("1", "echo", "[1]"), notification("note"), request(R"("two")", "echo")}),
            (Strings{result("1", "[1]"), result(R"("two")", "null")}));
  EXPECT_TRUE(c.far->is_whole());
}

TEST_P(ConnectionDoor, WorksThroughAPipeOfOneByte) {
  Conversation c(GetParam(), {}, 1);
  c.open();
  c.send(request("1", "echo", "[1]"));
  c.send(request("2", "echo", "[2]"));
  Strings heard;
  ASSERT_TRUE(c.turn_until([&] {
    for (std::string& answer : c.heard()) heard.push_back(std::move(answer));
    return heard.size() == 2;
  }));
  EXPECT_EQ(heard, (Strings{result("1", "[1]"), result("2", "[2]")}));
}

TEST_P(ConnectionDoor, AnswersWhatIsBroken) {
  Conversation c(GetParam());
  c.open();
  EXPECT_EQ(c.say({"{nope", request("1", "echo")}),
            (Strings{error("null", -32700, "Parse error", R"({"reason":"invalid-json"})"), result("1", "null")}));
  EXPECT_EQ(c.tape.lines(), Strings{R"(warn  Parse error reason="invalid-json")"});
}

TEST_P(ConnectionDoor, NeverAnswersAStrayResponse) {
  Conversation c(GetParam());
  c.open();
  EXPECT_EQ(c.say({result("5", "1"), error(R"("x")", -1, "no"), R"({"jsonrpc":"2.0","result":1})"}), Strings{});
  EXPECT_EQ(c.tape.lines(),
            (Strings{"warn  Stray response id=5", R"(warn  Stray response id="x")", "warn  Stray response"}));
}

TEST_P(ConnectionDoor, TheEndOfInputComesAfterTheAnswersToEveryWholeMessage) {
  Conversation c(GetParam());
  c.open();
  c.send(request("1", "late"));
  c.send(request("2", "echo"));
  c.far->send(GetParam() == Door::stdio ? "" : R"({"jsonrpc":"2.0","method":"note"})");  // never finished: not executed
  c.far->close();
  // A memory channel is closed both ways, so nobody can read the answers; that they are made shows in what was begun.
  c.turn();
  EXPECT_EQ(c.begun, Strings{"1"});
  EXPECT_EQ(c.notes, Strings{});
  EXPECT_EQ(c.input_ends, 1);
  EXPECT_EQ(c.endings, Endings{Ending::peer_gone});
}

TEST_P(ConnectionDoor, CallsAndTheirAnswersGoBothWays) {
  Conversation c(GetParam());
  c.open();
  std::vector<Outcome> outcomes;
  const auto keep = [&](Outcome outcome) { outcomes.push_back(std::move(outcome)); };
  c.connection->call("ask", "[1]", 30s, keep);
  c.connection->call("ask \"quoted\"", "", 30s, keep);
  EXPECT_TRUE(c.connection->notify("tell", "{}"));
  EXPECT_TRUE(outcomes.empty());
  c.turn();
  EXPECT_EQ(c.heard(),
            (Strings{request("1", "ask", "[1]"), request("2", R"(ask \"quoted\")"), notification("tell", "{}")}));
  EXPECT_EQ(c.say({error("2", -7, "no"), request("9", "echo"), result("1", "\"yes\"")}), Strings{result("9", "null")});
  ASSERT_EQ(outcomes.size(), 2U);
  EXPECT_EQ(outcomes[0].cause, Outcome::Cause::refused);
  EXPECT_EQ(outcomes[1].result, "\"yes\"");
}

TEST(Connection, OnStdioThereAreNoBatches) {
  Conversation c(Door::stdio);
  c.open();
  EXPECT_EQ(c.say({"[" + request("1", "echo") + "]"}),
            Strings{error("null", -32600, "Batch requests not supported", R"({"reason":"batch-not-supported"})")});
}

TEST(Connection, AWrongContentTypeIsAnsweredWithTheIdOfItsBody) {
  Conversation c(Door::stdio);
  c.open();
  const auto typed = [](const std::string& type, const std::string& body) {
    return "Content-Type: " + type + "\r\n" + framed(body);
  };
  c.far->send(typed("text/plain", request(R"("a")", "echo")) +
              typed("application/vscode-jsonrpc; charset=latin1", request("2", "echo")) +
              typed("text/plain", notification("note")) + typed("text/plain", "nonsense") +
              framed(request("3", "echo")));
  c.turn();
  const std::string type_fault = R"({"reason":"unsupported-content-type"})";
  EXPECT_EQ(c.heard(), (Strings{error(R"("a")", -32600, "Invalid Request", type_fault),
                                error("2", -32600, "Invalid Request", R"({"reason":"bad-charset"})"),
                                error("null", -32600, "Invalid Request", type_fault),
                                error("null", -32600, "Invalid Request", type_fault), result("3", "null")}));
  EXPECT_EQ(c.notes, Strings{});
}

TEST(Connection, AFramingFaultCostsOneMessage) {
  Conversation c(Door::stdio);
  c.open();
  c.far->send("Content-Length: x\r\n\r\n{}" + framed(request("1", "echo")) + "Content-Length: 99999999\r\n\r\n" +
              framed(request("2", "echo")) + "Content-Length: 300\r\n\r\n{\"a\":" + framed(request("3", "echo")));
  c.turn();
  EXPECT_EQ(
      c.heard(),
      (Strings{error("null", -32700, "Parse error", R"({"reason":"malformed-header"})"), result("1", "null"),
               error("null", -32600, "Invalid Request", R"({"reason":"oversize"})"), result("2", "null"),
               error("null", -32700, "Parse error", R"({"reason":"content-length-mismatch"})"), result("3", "null")}));
}

TEST(Connection, AnOversizeLineIsRefusedOnceAndSkipped) {
  ConnectionLimits limits;
  limits.max_message = 1000;
  Conversation c(Door::socket, limits);
  c.open();
  EXPECT_EQ(c.say({request("1", "echo", quoted_text(5000)), request("2", "echo")}),
            (Strings{error("null", -32600, "Invalid Request", R"({"reason":"oversize"})"), result("2", "null")}));
}

// ---- the clock of a partial frame ----

struct PartialFrame : Conversation {
  explicit PartialFrame(std::size_t capacity = 65536) : Conversation(Door::stdio, {}, capacity) { open(); }
  void send_bytes(std::string_view bytes) {
    far->send(bytes);
    turn();
  }
  std::size_t drops() {
    const Strings lines = tape.lines();
    return static_cast<std::size_t>(std::count_if(lines.begin(), lines.end(), [](const std::string& line) {
      return line.starts_with("warn  Partial frame dropped");
    }));
  }
  const std::string message = framed(request("1", "echo"));
};

TEST(ReadTimeout, APartialFrameIsDroppedThirtySecondsAfterItsFirstByte) {
  PartialFrame p;
  p.send_bytes("Content-");
  p.advance(20s);
  p.send_bytes("Length: 100\r\n\r\n{");
  p.advance(9999ms);
  EXPECT_EQ(p.drops(), 0U);
  p.advance(1ms);
  EXPECT_EQ(p.tape.lines(), Strings{"warn  Partial frame dropped bytes=1 waited_ms=30000"});
  EXPECT_EQ(p.heard(), Strings{});
  p.send_bytes("\"late\":\"bytes of the same frame\"}");
  p.send_bytes(p.message);
  EXPECT_EQ(p.heard(), Strings{result("1", "null")});
}

TEST(ReadTimeout, WaitingBetweenFramesNeverTimesOut) {
  PartialFrame p;
  p.send_bytes(p.message);
  p.advance(1h);
  p.send_bytes(p.message);
  EXPECT_EQ(p.heard().size(), 2U);
  EXPECT_EQ(p.drops(), 0U);
}

TEST(ReadTimeout, RunsAnewForEveryFrame) {
  PartialFrame p;
  const std::string half = p.message.substr(0, 30);
  const std::string rest = p.message.substr(30);
  p.send_bytes(half);
  for (int i = 0; i < 5; ++i) {
    p.advance(20s);
    p.send_bytes(rest + half);
  }
  EXPECT_EQ(p.heard().size(), 5U);
  EXPECT_EQ(p.drops(), 0U);
  p.advance(30s);
  EXPECT_EQ(p.drops(), 1U);
}

TEST(ReadTimeout, EveryPartialFrameHasItsOwn) {
  PartialFrame p;
  for (std::size_t i = 1; i <= 3; ++i) {
    p.send_bytes("Content-Length: 100\r\n\r\n{");
    p.advance(29s);
    EXPECT_EQ(p.drops(), i - 1);
    p.advance(1s);
    EXPECT_EQ(p.drops(), i);
    p.advance(100s);
    EXPECT_EQ(p.drops(), i);
  }
  p.send_bytes(p.message);
  EXPECT_EQ(p.heard(), Strings{result("1", "null")});
}

TEST(ReadTimeout, WhatIsInThePipeAlreadyIsReadFirst) {
  PartialFrame p(4'000'000);
  const std::string large = framed(request("1", "echo", quoted_text(3'000'000)));
  p.send_bytes(large.substr(0, 20));
  p.clock.advance(40s);
  p.far->send(large.substr(20));
  ASSERT_TRUE(p.turn_until([&] { return p.heard().size() == 1; }));
  EXPECT_EQ(p.drops(), 0U);
}

TEST(ReadTimeout, DoesNotRunWhileWeDoNotRead) {
  PartialFrame p;
  p.send_bytes(p.message.substr(0, 10));
  p.advance(10s);
  p.connection->limit_waiting(0);
  p.turn();
  p.advance(100s);
  p.connection->limit_waiting(std::string::npos);
  p.turn();
  p.advance(5s);
  p.connection->limit_waiting(0);
  p.turn();
  p.advance(100s);
  p.connection->limit_waiting(std::string::npos);
  p.turn();
  p.advance(14s);
  EXPECT_EQ(p.drops(), 0U);
  p.advance(1s);
  EXPECT_EQ(p.drops(), 1U);
}

TEST(ReadTimeout, AFrameBegunWhileWePausedHasAllItsTime) {
  ConnectionLimits limits;
  limits.max_waiting = 10'000;
  Conversation c(Door::stdio, limits, 4096);
  c.open();
  c.far->read(false);
  for (int i = 0; i < 20; ++i) c.send(request("1", "echo", quoted_text(1000)));
  c.far->send("Content-Length: 100\r\n\r\n{");
  c.turn(200);
  EXPECT_GE(c.connection->load(), 10'000U);
  c.advance(100s);
  c.far->read(true);
  ASSERT_TRUE(c.turn_until([&] { return c.far->sent_all() && c.connection->load() == 0; }));
  c.advance(29s);
  EXPECT_EQ(c.tape.lines(), Strings{});
  c.advance(1s);
  EXPECT_EQ(c.tape.lines().size(), 1U);
}

TEST(ReadTimeout, IsASetting) {
  ConnectionLimits limits;
  limits.read_timeout = 1500ms;
  Conversation c(Door::stdio, limits);
  c.open();
  c.far->send("Content");
  c.turn();
  c.advance(1499ms);
  EXPECT_EQ(c.tape.lines().size(), 0U);
  c.advance(1ms);
  EXPECT_EQ(c.tape.lines().size(), 1U);
}

TEST(ReadTimeout, MayHaveNoEnd) {
  ConnectionLimits limits;
  limits.read_timeout = base::Duration::max();
  Conversation c(Door::stdio, limits);
  c.clock.advance(1s);
  c.open();
  const std::string message = framed(request("1", "echo"));
  c.far->send(message.substr(0, 10));
  c.turn();
  c.advance(24h);
  c.far->send(message.substr(10));
  c.turn();
  EXPECT_EQ(c.heard().size(), 1U);
}

TEST(ReadTimeout, DoesNotConcernLines) {
  Conversation c;
  c.open();
  const std::string message = request("1", "echo") + "\n";
  c.far->send(message.substr(0, 10));
  c.turn();
  c.advance(1h);
  c.far->send(message.substr(10));
  c.turn();
  EXPECT_EQ(c.heard().size(), 1U);
}

TEST(ReadTimeout, TheMemoryOfADroppedFrameIsGivenBack) {
  PartialFrame p;
  p.far->send(framed(quoted_text(3'000'000)).substr(0, 2'000'000));
  ASSERT_TRUE(p.turn_until([&] { return p.far->sent_all(); }));
  p.turn();
  p.advance(30s);
  ASSERT_EQ(p.drops(), 1U);
  EXPECT_TRUE(p.pool->keeps_any());
  p.advance(1s);
  EXPECT_FALSE(p.pool->keeps_any());
}

// ---- ending ----

TEST(ConnectionStop, WhatRunsMayFinishAndWhatHasNotBegunIsDropped) {
  Conversation c;
  c.open();
  c.say({request("1", "late"), request("2", "echo"), notification("note")});
  c.connection->stop();
  c.send(request("3", "echo"));
  c.turn();
  EXPECT_EQ(c.endings, Endings{});
  EXPECT_TRUE(c.connection->owes_answer());
  c.answer_late("1");
  c.turn();
  EXPECT_EQ(c.heard(), Strings{result("1", "1")});
  EXPECT_TRUE(c.far->ended());
  EXPECT_EQ(c.endings, Endings{Ending::stopped});
  EXPECT_EQ(c.notes, Strings{});
  EXPECT_TRUE(c.connection->is_closed());
}

TEST(ConnectionStop, WithNothingRunningItIsOverAtOnce) {
  Conversation c;
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
    Conversation c;
    c.methods.add("shutdown", [&](const Request& asked) -> Answer {
      if (asks) asked.connection.ask_to_stop();
      if (!asks) asked.connection.stop();
      return nullptr;
    });
    c.open();
    EXPECT_EQ(c.say({request("1", "echo"), request("2", "shutdown"), request("3", "echo")}),
              (Strings{result("1", "null"), result("2", "null")}));
    EXPECT_EQ(c.endings, Endings{Ending::stopped});
  }
}

TEST(ConnectionStop, TheAnswersThatWaitToBeReadAreWaitedFor) {
  Conversation c(Door::socket, {}, 1024);
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
  Conversation c;
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
  Conversation c;
  c.open();
  c.say({request("1", "late"), request("2", "echo")});
  std::vector<Outcome> outcomes;
  c.connection->call("ask", "", 30s, [&](Outcome outcome) { outcomes.push_back(std::move(outcome)); });
  c.connection->close();
  c.connection->close();
  EXPECT_EQ(c.endings, Endings{Ending::stopped});
  ASSERT_EQ(outcomes.size(), 1U);
  EXPECT_EQ(outcomes[0].cause, Outcome::Cause::disconnected);
  EXPECT_TRUE(c.replies.front().abandoned());
  EXPECT_EQ(c.connection->load(), 0U);
  EXPECT_FALSE(c.connection->notify("tell", ""));
  c.turn();
  EXPECT_TRUE(c.far->ended());
}

TEST(ConnectionClose, MayHappenInsideAHandler) {
  Conversation c;
  c.methods.add("vanish", [](const Request& asked) -> Answer {
    asked.connection.close();
    return "for nobody";
  });
  c.add_late("vanish_later", [](const Request& asked, Reply reply) {
    asked.connection.close();
    reply.ok("for nobody");
    throw std::runtime_error("on top of it");
  });
  c.open();
  EXPECT_EQ(c.say({request("1", "vanish"), request("2", "echo")}), Strings{});
  EXPECT_EQ(c.endings, Endings{Ending::stopped});
  EXPECT_EQ(c.connection->load(), 0U);

  Conversation late;
  late.add_late("vanish_later", [](const Request& asked, Reply reply) {
    asked.connection.close();
    reply.ok("for nobody");
    throw std::runtime_error("on top of it");
  });
  late.open();
  EXPECT_EQ(late.say({request("1", "vanish_later"), request("2", "echo")}), Strings{});
  EXPECT_EQ(late.connection->load(), 0U);
}

TEST(ConnectionClose, MayHappenInsideABatch) {
  Conversation c;
  c.methods.add("vanish", [](const Request& asked) -> Answer {
    asked.connection.close();
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
  Conversation c(Door::socket, {}, 1024);
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
  transport::Moved read(std::span<char>) override { return {transport::Moved::State::broken, 0, EIO}; }
  transport::Moved write(std::string_view bytes) override { return {transport::Moved::State::some, bytes.size()}; }
  void close() override { listener_ = nullptr; }
  void become_readable() { listener_->on_readable(); }

 private:
  Listener* listener_ = nullptr;
};

TEST(ConnectionClose, InputThatCannotBeReadIsToldWithItsError) {
  Conversation c;
  auto channel = std::make_unique<BrokenChannel>();
  BrokenChannel& broken = *channel;
  Endings endings;
  ConnectionEvents events;
  events.on_closed = [&](Ending ending) { endings.push_back(ending); };
  Connection connection(c.loop, std::move(channel), Door::stdio, c.methods, c.tape.log(), events);
  connection.open();
  broken.become_readable();
  EXPECT_EQ(endings, Endings{Ending::unreadable});
  EXPECT_EQ(connection.failure(), EIO);
}

TEST(ConnectionClose, ADestroyedConnectionTellsItsCallersAndNobodyElse) {
  Conversation c;
  c.open();
  std::vector<Outcome::Cause> causes;
  const auto keep = [&](const Outcome& outcome) { causes.push_back(outcome.cause); };
  c.connection->call("ask", "", 30s, keep);
  c.turn();
  c.connection.reset();
  EXPECT_EQ(causes, std::vector{Outcome::Cause::disconnected});
  EXPECT_EQ(c.endings, Endings{});
  c.advance(60s);
}

TEST(ConnectionClose, ACallOfAClosedConnectionGetsItsOutcomeThoughTheConnectionGoes) {
  Conversation c;
  c.open();
  c.connection->close();
  std::vector<Outcome::Cause> causes;
  const auto keep = [&](const Outcome& outcome) { causes.push_back(outcome.cause); };
  c.connection->call("ask", "", 30s, keep);
  EXPECT_TRUE(causes.empty());
  c.turn();
  EXPECT_EQ(causes, std::vector{Outcome::Cause::disconnected});
  c.connection->call("ask", "", 30s, keep);
  c.connection.reset();
  c.turn();
  EXPECT_EQ(causes.size(), 2U);
}

TEST(ConnectionClose, ACallerThatTriesAgainWhenItsCallFailsDoesNotGoRoundForEver) {
  int tries = 0;
  std::function<void(Outcome)> again;
  Conversation c;
  c.open();
  again = [&](const Outcome&) {
    if (++tries < 1000) c.connection->call("ask", "", 30s, again);
  };
  c.connection->call("ask", "", 30s, again);
  c.connection->close();
  EXPECT_EQ(tries, 1);
  c.turn(5);
  EXPECT_LT(tries, 10);
}

TEST(ConnectionCalls, WhatACallbackThrowsHurtsNobody) {
  Conversation c;
  c.open();
  for (int i = 0; i < 2; ++i) {
    c.connection->call("ask", "", 30s, [](const Outcome&) { throw std::runtime_error("oops"); });
  }
  c.turn();
  c.heard();
  EXPECT_EQ(c.say({result("1", "1"), request("9", "echo")}), Strings{result("9", "null")});
  c.advance(30s);
  EXPECT_EQ(c.say({request("10", "echo")}), Strings{result("10", "null")});
  EXPECT_EQ(c.tape.lines(), (Strings{R"(error Callback failed what="oops")", R"(error Callback failed what="oops")"}));
}

// ---- over a real socket, which can be closed on one side ----

struct OverSocket : Conversation {
  OverSocket() {
    std::array<int, 2> ends{};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
    far_socket = ends[0];
    far.emplace(std::make_unique<transport::FdChannel>(loop, base::Fd(ends[0])));
    events.on_closed = [this](Ending ending) { endings.push_back(ending); };
    connection = std::make_unique<Connection>(loop, std::make_unique<transport::FdChannel>(loop, base::Fd(ends[1])),
                                              Door::socket, methods, tape.log(), events);
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

// ---- bounds ----

struct SlowReader : Conversation {
  static constexpr std::size_t bound = 200'000;
  static ConnectionLimits limits() {
    ConnectionLimits bounded;
    bounded.max_waiting = bound;
    return bounded;
  }
  explicit SlowReader(Door door = Door::socket) : Conversation(door, limits(), 4096) {
    open();
    far->read(false);
  }
};

TEST_P(ConnectionDoor, ThatIsNotReadPausesReadingAtItsBoundAndGoesOnWhenItIsRead) {
  SlowReader s(GetParam());
  constexpr int count = 2000;
  std::size_t most = 0;
  for (int i = 0; i < count; ++i) s.send(request(std::to_string(i), "echo", quoted_text(500)));
  for (int i = 0; i < 2000; ++i) {
    s.turn(1);
    most = std::max(most, s.connection->load());
  }
  EXPECT_FALSE(s.far->sent_all());
  EXPECT_GE(most, SlowReader::bound);
  EXPECT_LT(most, SlowReader::bound + 100'000);
  s.far->read(true);
  Strings answers;
  ASSERT_TRUE(s.turn_until([&] {
    most = std::max(most, s.connection->load());
    for (std::string& answer : s.heard()) answers.push_back(std::move(answer));
    return answers.size() == count;
  }));
  for (int i = 0; i < count; ++i)
    EXPECT_EQ(answers[static_cast<std::size_t>(i)], result(std::to_string(i), quoted_text(500)));
  EXPECT_LT(most, SlowReader::bound + 100'000);
  EXPECT_EQ(s.connection->load(), 0U);
}

TEST(ConnectionBound, HoldsForRequestsThatWaitForALateAnswerHoweverSmallTheyAre) {
  SlowReader s;
  s.send(request("1", "late"));
  std::string flood;
  for (int i = 0; i < 400'000; ++i) flood += "1\n";
  s.far->send(flood);
  s.turn(10);
  const std::size_t before = allocated_bytes();
  s.turn(2000);
  EXPECT_FALSE(s.far->sent_all());
  EXPECT_LT(allocated_bytes() - before, 3 * SlowReader::bound);
  EXPECT_LT(s.connection->load(), 3 * SlowReader::bound);  // the smallest messages cost the most beside their bytes
}

TEST(ConnectionBound, HoldsForCancelsToo) {
  SlowReader s;
  s.send(request("1", "late"));
  std::string flood;
  for (int i = 0; i < 50'000; ++i) flood += cancel('"' + std::string(30, 'x') + std::to_string(i) + '"') + "\n";
  s.far->send(flood);
  s.turn(10);
  const std::size_t before = allocated_bytes();
  s.turn(5000);
  EXPECT_FALSE(s.far->sent_all());
  EXPECT_LT(allocated_bytes() - before, 4 * SlowReader::bound);
  s.far->read(true);
  s.answer_late("1");
  ASSERT_TRUE(s.turn_until([&] { return s.far->sent_all(); }));
  s.turn();
  EXPECT_EQ(s.connection->load(), 0U);
}

TEST(ConnectionBound, OwnMessagesAreRefusedWhenTooMuchWaits) {
  SlowReader s;
  std::size_t sent = 0;
  while (s.connection->notify("tell", quoted_text(1000)) && sent < 1000) ++sent;
  EXPECT_GT(sent, 10U);
  EXPECT_LT(s.connection->load(), SlowReader::bound);
  std::vector<Outcome::Cause> causes;
  s.connection->call("ask", "", 30s, [&](const Outcome& outcome) { causes.push_back(outcome.cause); });
  EXPECT_TRUE(causes.empty());
  s.turn();
  EXPECT_EQ(causes, std::vector{Outcome::Cause::overloaded});
  s.far->read(true);
  ASSERT_TRUE(s.turn_until([&] { return s.connection->load() == 0; }));
  s.turn();
  EXPECT_EQ(s.heard().size(), sent);
  EXPECT_TRUE(s.connection->notify("tell", ""));
}

TEST(ConnectionBound, LargeMessagesLeaveNoMemoryBehind) {
  Conversation c;
  c.open();
  for (int i = 0; i < 3; ++i) {
    c.send(request("1", "echo", quoted_text(5'000'000)));
    ASSERT_TRUE(c.turn_until([&] { return !c.heard().empty(); }));
  }
  EXPECT_TRUE(c.pool->keeps_any());
  c.advance(500ms);
  c.send(request("1", "echo", quoted_text(5'000'000)));  // used again: kept for another second
  ASSERT_TRUE(c.turn_until([&] { return !c.heard().empty(); }));
  c.advance(500ms);
  EXPECT_TRUE(c.pool->keeps_any());
  c.advance(1s);
  c.advance(1s);
  EXPECT_FALSE(c.pool->keeps_any());
}

TEST(ConnectionBound, ChangesOfTheLoadAreTold) {
  Conversation c(Door::socket, {}, 1024);
  std::vector<std::size_t> loads;
  c.events.on_load_changed = [&] { loads.push_back(c.connection->load()); };
  c.open();
  c.far->read(false);
  EXPECT_EQ(c.say({request("1", "echo")}).size(), 0U);
  EXPECT_TRUE(loads.empty());  // written at once
  c.say({request("2", "echo", quoted_text(3000))});
  ASSERT_FALSE(loads.empty());
  EXPECT_GT(loads.back(), 2000U);
  c.far->read(true);
  c.turn();
  EXPECT_EQ(loads.back(), 0U);
  c.far->read(false);
  c.say({request("3", "echo", quoted_text(3000))});
  EXPECT_GT(loads.back(), 2000U);
  c.connection->close();
  EXPECT_EQ(loads.back(), 0U);
}

TEST(ConnectionBound, LimitedToNothingItReadsNothing) {
  Conversation c;
  c.open();
  c.connection->limit_waiting(0);
  c.turn();
  EXPECT_EQ(c.say({request("1", "echo")}), Strings{});
  c.connection->limit_waiting(std::string::npos);
  c.turn();
  EXPECT_EQ(c.heard(), Strings{result("1", "null")});
}

}  // namespace
}  // namespace duet::peer
