// What a protocol may have different from JSON-RPC's usual servers: answers as they come, strict ids, silent cancels.

#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "duet/peer/conversation_fixture_test.h"
#include "duet/rpc/value.h"

namespace duet::peer {
namespace {

std::string ask(const std::string& id, const std::string& method) {
  return R"({"jsonrpc":"2.0","id":)" + id + R"(,"method":")" + method + R"("})";
}

std::string answer(const std::string& id, const std::string& result) {
  return R"({"jsonrpc":"2.0","id":)" + id + R"(,"result":)" + result + "}\n";
}

std::string cancel(const std::string& id) {
  return R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":)" + id + "}}";
}

struct McpTalk : Talk {
  McpTalk() : Talk(Protocol::mcp_server()) {}
};

TEST(McpProtocol, AnswersLeaveWhenTheyAreKnown) {
  McpTalk t;
  t.receive(ask("1", "late"));
  t.receive(ask("2", "late"));
  t.receive(R"({"jsonrpc":"2.0","id":3,"method":"echo","params":{}})");
  EXPECT_EQ(t.output(), answer("3", "{}"));
  t.replies[1].ok(rpc::Json("second"));
  EXPECT_EQ(t.output(), answer("2", R"("second")"));
  t.replies[0].ok(rpc::Json("first"));
  EXPECT_EQ(t.output(), answer("1", R"("first")"));
}

TEST(McpProtocol, IdsAreStringsAndIntegersByteForByte) {
  McpTalk t;
  for (const char* id : {"7", "-3", "12345678901234567890123", R"("\u0041")", R"("")"}) {
    t.receive(R"({"jsonrpc":"2.0","id":)" + std::string(id) + R"(,"method":"echo","params":[]})");
    EXPECT_EQ(t.output(), answer(id, "[]"));
  }
}

TEST(McpProtocol, AnErrorWhoseIdIsNotKnownHasNone) {
  McpTalk t;
  const std::string wrong_id =
      R"({"jsonrpc":"2.0","error":{"code":-32600,"message":"Invalid Request","data":{"reason":"invalid-id-type"}}})"
      "\n";
  for (const char* id : {"null", "1.5", "1e2", "true", "{}", "[1]"}) {
    t.receive(ask(id, "echo"));
    EXPECT_EQ(t.output(), wrong_id) << id;
  }
  t.receive("{nonsense");
  EXPECT_EQ(t.output(),
            R"({"jsonrpc":"2.0","error":{"code":-32700,"message":"Parse error","data":{"reason":"invalid-json"}}})"
            "\n");
}

TEST(McpProtocol, AMalformedRequestKeepsAnIdThatCanBeKnown) {
  McpTalk t;
  t.receive(R"({"jsonrpc":"1.0","id":4,"method":"echo"})");
  EXPECT_TRUE(t.output().starts_with(R"({"jsonrpc":"2.0","id":4,"error":{"code":-32600)"));
}

TEST(McpProtocol, ACancelledRequestStaysWithoutAnAnswer) {
  McpTalk t;
  bool told = false;
  t.receive(ask("1", "late"));
  t.replies[0].on_abandoned([&] { told = true; });
  t.receive(cancel("1"));
  EXPECT_TRUE(told);
  t.replies[0].ok(rpc::Json(1));
  EXPECT_EQ(t.output(), "");
  EXPECT_FALSE(t.talk->owes_answer());
  t.receive(cancel("99"));
  EXPECT_EQ(t.output(), "");
}

TEST(McpProtocol, AnIdMayBeSpeltOtherwiseInItsCancel) {
  const std::pair<const char*, const char*> spellings[] = {
      {R"("\u0041b")", R"("Ab")"}, {R"("Ab")", R"("\u0041b")"}, {R"("a\/b")", R"("a/b")"}, {"1", "1.0"}, {"10", "1e1"}};
  for (const auto& [id, other] : spellings) {
    McpTalk t;
    t.receive(ask(id, "late"));
    t.receive(cancel(other));
    EXPECT_FALSE(t.talk->owes_answer()) << id << ' ' << other;
    t.receive(ask(id, "late"));
    t.replies[1].ok(rpc::Json(1));
    EXPECT_EQ(t.output(), answer(id, "1")) << "as it was spelt";
  }
}

TEST(McpProtocol, NoOtherIdIsTakenForACancelledOne) {
  const std::pair<const char*, const char*> different[] = {{"1", "1.5"},
                                                           {"1", R"("1")"},
                                                           {R"("1")", "1.0"},
                                                           {R"("\ud800")", R"("\ud801")"},
                                                           {"9007199254740993", "9007199254740992.0"}};
  for (const auto& [id, other] : different) {
    McpTalk t;
    t.receive(ask(id, "late"));
    t.receive(cancel(other));
    EXPECT_TRUE(t.talk->owes_answer()) << id << ' ' << other;
  }
}

TEST(McpProtocol, AWithdrawnReplyStaysWithoutAnAnswer) {
  McpTalk t;
  t.receive(ask("1", "late"));
  t.replies[0].withdraw();
  t.replies.clear();
  EXPECT_EQ(t.output(), "");
  EXPECT_FALSE(t.talk->owes_answer());
}

TEST(McpProtocol, ABatchIsRefusedUnlessTheRevisionHasThem) {
  McpTalk t;
  t.receive("[" + ask("1", "echo") + "]");
  EXPECT_EQ(
      t.output(),
      R"({"jsonrpc":"2.0","error":{"code":-32600,"message":"Batch requests not supported","data":{"reason":"batch-not-supported"}}})"
      "\n");
  t.talk->allow_batches(true);
  t.receive("[" + ask("1", "late") + "," + ask("2", "late") + "]");
  t.receive(ask("3", "late"));
  t.replies[2].ok(rpc::Json(3));
  EXPECT_EQ(t.output(), answer("3", "3")) << "a batch holds up nobody";
  t.replies[1].ok(rpc::Json(2));
  EXPECT_EQ(t.output(), "");
  t.replies[0].ok(rpc::Json(1));
  EXPECT_EQ(t.output(), R"([{"jsonrpc":"2.0","id":1,"result":1},{"jsonrpc":"2.0","id":2,"result":2}])"
                        "\n");
}

TEST(McpProtocol, OfABatchWhoseRequestsAreAllCancelledNothingComes) {
  McpTalk t;
  t.talk->allow_batches(true);
  t.receive("[" + ask("1", "late") + "]");
  t.receive(cancel("1"));
  EXPECT_EQ(t.output(), "");
  EXPECT_FALSE(t.talk->owes_answer());
}

TEST(McpProtocol, ABatchHasAHundredMembersAtMost) {
  McpTalk t;
  t.talk->allow_batches(true);
  std::string batch = "[" + ask("0", "echo");
  for (int i = 1; i <= 100; ++i) batch += "," + ask(std::to_string(i), "echo");
  t.receive(batch + "]");
  EXPECT_NE(t.output().find("batch-too-large"), std::string::npos);
}

TEST(McpProtocol, TheAnswerToABatchIsALineThatClientsRead) {
  constexpr int members = 100;
  McpTalk t;
  t.talk->allow_batches(true);
  std::string batch = "[" + ask("0", "late");
  for (int i = 1; i < members; ++i) batch += "," + ask(std::to_string(i), "late");
  t.receive(batch + "]");
  const std::string long_text(100'000, 'x');
  for (Reply<>& reply : t.replies) reply.ok(rpc::Json(long_text));
  const std::string out = t.output();
  EXPECT_LE(out.size(), std::size_t{1} << 20U);
  const boost::json::array answers = rpc::parse_value(out).as_array();
  ASSERT_EQ(answers.size(), std::size_t{members});
  EXPECT_EQ(answers.front().at("result").as_string().size(), long_text.size());
  EXPECT_EQ(answers.back().at("error").at("data").at("reason"), "answers-too-large");
}

TEST(McpProtocol, WhoKnowsHisMethodsOtherwiseGetsThemAll) {
  Talk t(Protocol::mcp_server());
  t.methods.add_fallback([](const rpc::Json&, const Request& request, Reply<> reply) {
    reply.ok(rpc::Json(std::string(request.method)));
  });
  t.receive(ask("1", "tools/list"));
  EXPECT_EQ(t.output(), answer("1", R"("tools/list")"));
  t.receive(R"({"jsonrpc":"2.0","method":"notifications/unknown"})");
  EXPECT_EQ(t.output(), "");
}

}  // namespace
}  // namespace duet::peer
