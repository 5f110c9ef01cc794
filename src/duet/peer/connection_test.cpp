#include "duet/peer/connection.h"

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "duet/peer/connection_fixture_test.h"

namespace duet::peer {
namespace {

using namespace std::chrono_literals;

class EitherFraming : public testing::TestWithParam<Framing> {};
INSTANTIATE_TEST_SUITE_P(Framings, EitherFraming, testing::Values(Framing::content_length, Framing::lines),
                         framing_name);

TEST_P(EitherFraming, AnswersEveryRequestInAWholeMessageOfItsOwn) {
  TestConnection c(server_protocol(GetParam()));
  c.open();
  EXPECT_EQ(c.say({request("1", "echo", "[1]"), notification("note"), request(R"("two")", "echo")}),
            (Strings{result("1", "[1]"), result(R"("two")", "null")}));
  EXPECT_TRUE(c.far->is_whole());
}

TEST_P(EitherFraming, WorksThroughAPipeOfOneByte) {
  TestConnection c(server_protocol(GetParam()), 1);
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

TEST_P(EitherFraming, AnswersWhatIsBroken) {
  TestConnection c(server_protocol(GetParam()));
  c.open();
  EXPECT_EQ(c.say({"{nope", request("1", "echo")}),
            (Strings{error("null", -32700, "Parse error", R"({"reason":"invalid-json"})"), result("1", "null")}));
  EXPECT_EQ(c.tape.lines(), Strings{R"(warn  Parse error reason="invalid-json" bytes=5)"});
}

TEST_P(EitherFraming, NeverAnswersAStrayResponse) {
  TestConnection c(server_protocol(GetParam()));
  c.open();
  EXPECT_EQ(c.say({result("5", "1"), error(R"("x")", -1, "no"), R"({"jsonrpc":"2.0","result":1})"}), Strings{});
  EXPECT_EQ(c.tape.lines(),
            (Strings{"warn  Stray response id=5", R"(warn  Stray response id="x")", "warn  Stray response"}));
}

TEST_P(EitherFraming, TheEndOfInputComesAfterTheAnswersToEveryWholeMessage) {
  TestConnection c(server_protocol(GetParam()));
  c.open();
  c.send(request("1", "late"));
  c.send(request("2", "echo"));
  c.far->send(GetParam() == Framing::content_length
                  ? ""
                  : R"({"jsonrpc":"2.0","method":"note"})");  // never finished: not executed
  c.far->close();
  // A memory channel is closed both ways, so nobody can read the answers; that they are made shows in what was begun.
  c.turn();
  EXPECT_EQ(c.begun, Strings{"1"});
  EXPECT_EQ(c.notes, Strings{});
  EXPECT_EQ(c.input_ends, 1);
  EXPECT_EQ(c.endings, Endings{Ending::peer_gone});
}

TEST_P(EitherFraming, CallsAndTheirAnswersGoBothWays) {
  TestConnection c(server_protocol(GetParam()));
  c.open();
  std::vector<Outcome> outcomes;
  const auto keep = [&](Outcome outcome) { outcomes.push_back(std::move(outcome)); };
  c.connection->call("ask", rpc::Json::view("[1]"), 30s, keep);
  c.connection->call("ask \"quoted\"", {}, 30s, keep);
  EXPECT_TRUE(c.connection->notify("tell", rpc::Json::view("{}")));
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
  TestConnection c(Protocol::lsp_server());
  c.open();
  EXPECT_EQ(c.say({"[" + request("1", "echo") + "]"}),
            Strings{error("null", -32600, "Batch requests not supported", R"({"reason":"batch-not-supported"})")});
}

TEST(Connection, AWrongContentTypeIsAnsweredWithTheIdOfItsBody) {
  TestConnection c(Protocol::lsp_server());
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
  TestConnection c(Protocol::lsp_server());
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

TEST(Connection, OfTwoLengthsTheLastIsTriedWithoutAnotherWord) {
  TestConnection c(Protocol::lsp_server());
  c.open();
  c.far->send("Content-Length: 7\r\nContent-Length: 3\r\n\r\nabc");
  EXPECT_EQ(c.say({request("1", "echo")}),
            (Strings{error("null", -32700, "Parse error", R"({"reason":"malformed-header"})"), result("1", "null")}));
}

TEST(Connection, AnOversizeLineIsRefusedOnceAndSkipped) {
  Protocol limits = Protocol::json_lines();
  limits.max_message = 1000;
  TestConnection c(limits);
  c.open();
  EXPECT_EQ(c.say({request("1", "echo", quoted_text(5000)), request("2", "echo")}),
            (Strings{error("null", -32600, "Invalid Request", R"({"reason":"oversize"})"), result("2", "null")}));
}

TEST(ConnectionCalls, WhatACallbackThrowsHurtsNobody) {
  TestConnection c;
  c.open();
  for (int i = 0; i < 2; ++i) {
    c.connection->call("ask", {}, 30s, [](const Outcome&) { throw std::runtime_error("oops"); });
  }
  c.turn();
  c.heard();
  EXPECT_EQ(c.say({result("1", "1"), request("9", "echo")}), Strings{result("9", "null")});
  c.advance(30s);
  EXPECT_EQ(c.say({request("10", "echo")}), Strings{result("10", "null")});
  EXPECT_EQ(c.tape.lines(), (Strings{R"(error Callback failed what="oops")", R"(error Callback failed what="oops")"}));
}

TEST(Connection, DrainedByAHandlerOfAnotherLeavesWhatThatHasReadAlone) {
  TestConnection c;
  Methods methods;
  Strings told;
  methods.add("tell", [&](const Request& asked) -> rpc::Json {
    told.emplace_back(asked.params.text());
    return nullptr;
  });
  auto [near_channel, far_channel] = transport::memory_pair(c.loop, 65536);
  Connection other(c.loop, std::move(near_channel), Protocol::json_lines(), methods, c.tape.log());
  FarEnd far(std::move(far_channel));
  std::size_t told_in_handler = 0;
  c.methods.add("drain_other", [&](const Request&) -> rpc::Json {
    other.drain();
    told_in_handler = told.size();
    return nullptr;
  });
  c.open();
  other.open();
  c.far->send(request("1", "drain_other") + '\n' + request("2", "echo", "[2]") + '\n' + request("3", "echo", "[3]") +
              '\n');
  for (int i = 0; i < 20; ++i) far.send(notification("tell", "[1]") + '\n');
  c.turn();
  EXPECT_EQ(told_in_handler, 20U);
  EXPECT_EQ(told, Strings(20, "[1]"));
  EXPECT_EQ(c.heard(), (Strings{result("1", "null"), result("2", "[2]"), result("3", "[3]")}));
}

}  // namespace
}  // namespace duet::peer
