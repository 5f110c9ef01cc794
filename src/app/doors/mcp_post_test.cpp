#include "app/doors/mcp_post.h"

#include <gtest/gtest.h>

#include "duet/framing/http_request.h"

namespace duet::app {
namespace {

McpPost post_with(const std::string& fields) {
  const std::string text = "POST /mcp HTTP/1.1\r\nHost: localhost\r\n" + fields + "\r\n";
  framing::HttpRequestDecoder decoder;
  decoder.feed(text);
  return mcp_post_of(*decoder.next()->head);
}

TEST(McpPost, TakesItsFieldsWhateverTheCaseOfTheirNames) {
  const McpPost post = post_with("mcp-PROTOCOL-version: 2026-07-28\r\nMCP-METHOD:  tools/call \r\nMcp-Name: a b\r\n");
  EXPECT_EQ(post.fields.version, "2026-07-28");
  EXPECT_EQ(post.fields.method, "tools/call");
  EXPECT_EQ(post.fields.name, "a b");
  EXPECT_FALSE(post.fields.has_repeated);
  EXPECT_TRUE(post.takes_json && post.takes_stream);
  EXPECT_EQ(post_with("").fields.method, std::nullopt);
}

TEST(McpPost, NoticesWhatIsThereTwice) {
  EXPECT_TRUE(post_with("Mcp-Name: a\r\nmcp-name: a\r\n").fields.has_repeated);
  EXPECT_FALSE(post_with("X: a\r\nX: a\r\n").fields.has_repeated);
}

TEST(McpPost, KnowsWhatIsTaken) {
  const McpPost json = post_with("Accept: application/json\r\n");
  EXPECT_TRUE(json.takes_json && !json.takes_stream);
  const McpPost stream = post_with("Accept: text/event-stream\r\n");
  EXPECT_TRUE(!stream.takes_json && stream.takes_stream);
}

TEST(McpPost, SomeErrorsHaveAStatus) {
  const auto status_of = [](const std::string& code) {
    return mcp_status(R"({"jsonrpc":"2.0","id":"\"error\":","error":{"code":)" + code + R"(,"message":"x"}})");
  };
  for (const char* code : {"-32700", "-32600", "-32602", "-32020", "-32021", "-32022"})
    EXPECT_EQ(status_of(code), 400U);
  EXPECT_EQ(status_of("-32601"), 404U);
  for (const char* code : {"-32603", "-32002", "1"}) EXPECT_EQ(status_of(code), 200U) << code;
  EXPECT_EQ(mcp_status(R"({"jsonrpc":"2.0","id":")" + std::string(100'000, 'x') +
                       R"(","error":{"code":-32601,"message":"x"}})"),
            404U)
      << "the id is long";
  EXPECT_EQ(mcp_status(R"({"jsonrpc":"2.0","error":{"code":-32700,"message":"x"}})"), 400U);
  EXPECT_EQ(mcp_status(R"({"jsonrpc":"2.0","id":1,"result":{"error":{"code":-32601}}})"), 200U);
  EXPECT_EQ(mcp_status(R"([{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"x"}}])"), 200U);
  EXPECT_EQ(mcp_status(R"({"jsonrpc":"2.0","id":1,"result":")" + std::string(100'000, 'x') + "\"}"), 200U);
}

TEST(McpPost, ARefusalOfWhatHasNoIdHasNone) {
  EXPECT_EQ(mcp_refusal(rpc::Error(-32020, "x")), R"({"jsonrpc":"2.0","error":{"code":-32020,"message":"x"}})");
}

TEST(McpPost, AMessageIsAnEvent) { EXPECT_EQ(mcp_event(R"({"a":1})"), "event: message\ndata: {\"a\":1}\n\n"); }

}  // namespace
}  // namespace duet::app
