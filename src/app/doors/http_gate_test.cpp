#include "app/doors/http_gate.h"

#include <string>

#include <gtest/gtest.h>

#include "duet/framing/http_request.h"

namespace duet::app {
namespace {

using framing::HttpFault;
using Fault = std::optional<HttpFault>;

class HttpGateTest : public testing::Test {
 protected:
  /// What becomes of a request with this head, from its first line on.
  HttpPass pass(const std::string& line, const std::string& fields = "") {
    framing::HttpRequestDecoder decoder(framing::max_body, pool);
    const std::string request = line + " HTTP/1.1\r\nHost: localhost\r\n" + fields + "\r\n";
    decoder.feed(request);
    const auto part = decoder.next();
    EXPECT_TRUE(part && part->head) << line << fields;
    return pass_of(*part->head, {.names = {}, .scheme = "http", .admit = admit, .shown = shown, .has_mcp = has_mcp});
  }
  static std::string body(std::size_t size) {
    return "Content-Type: application/json\r\nContent-Length: " + std::to_string(size) + "\r\n";
  }

  framing::BlockPool pool;
  bool has_mcp = true;
  std::shared_ptr<const peer::Admission> shown;
  std::shared_ptr<const peer::Admission> who =
      std::make_shared<const peer::Admission>(peer::Admission{.door = "http", .name = "ci", .role = "own"});
  const HttpAdmit admit = [this](std::string_view token) { return token == "good" ? who : nullptr; };
  const std::string with_token = "Authorization: Bearer good\r\n";
};

TEST_F(HttpGateTest, EachPathHasItsRouteAndItsMethods) {
  const struct {
    const char* line;
    HttpRoute route;
    const char* allow;
  } cases[] = {{"GET /", HttpRoute::page, "GET, HEAD"},     {"HEAD /", HttpRoute::page, "GET, HEAD"},
               {"POST /logout", HttpRoute::logout, "POST"}, {"POST /login", HttpRoute::login, "POST"},
               {"POST /rpc", HttpRoute::rpc, "POST"},       {"GET /events", HttpRoute::events, "GET"},
               {"GET /ws", HttpRoute::websocket, "GET"},    {"GET /metrics", HttpRoute::metrics, "GET"},
               {"POST /mcp", HttpRoute::mcp, "POST"}};
  for (const auto& each : cases) {
    const HttpPass found = pass(each.line, with_token);
    EXPECT_EQ(found.fault, Fault()) << each.line;
    EXPECT_EQ(found.route, each.route) << each.line;
    EXPECT_EQ(found.allow, each.allow) << each.line;
  }
  for (const char* const line : {"DELETE /", "OPTIONS /rpc", "GET /rpc", "HEAD /events", "POST /metrics", "get /",
                                 "GET /mcp", "DELETE /mcp", "OPTIONS /mcp"}) {
    EXPECT_EQ(pass(line, with_token).fault, HttpFault::method) << line;
  }
  for (const char* const line : {"GET /x", "GET /rpc/", "GET //", "GET /assets/x", "GET /Rpc"}) {
    EXPECT_EQ(pass(line, with_token).fault, HttpFault::path) << line;
  }
}

TEST_F(HttpGateTest, ATokenIsWantedWhereThereIsData) {
  for (const char* const line : {"GET /", "POST /login"}) EXPECT_EQ(pass(line).fault, Fault()) << line;
  for (const char* const line : {"POST /rpc", "GET /events", "GET /ws", "GET /metrics", "POST /logout", "POST /mcp"}) {
    EXPECT_EQ(pass(line).fault, HttpFault::token) << line;
    EXPECT_EQ(pass(line, "Authorization: Bearer bad\r\n").fault, HttpFault::token) << line;
    EXPECT_EQ(pass(line, "Authorization: Basic good\r\n").fault, HttpFault::token) << line;
    EXPECT_EQ(pass(line, with_token + with_token).fault, HttpFault::token) << line;
    EXPECT_EQ(pass(line, "aUTHORIZATION: bEARER   good \r\n").admission, who) << line;
  }
  EXPECT_EQ(pass("GET /metrics?token=good").fault, HttpFault::token) << "in a URL it does not count";
}

TEST_F(HttpGateTest, ABrowsersWebSocketShowsItAsASubprotocol) {
  const std::string offered = "Sec-WebSocket-Protocol: duet-rpc.1, duet-rpc.token.good\r\n";
  EXPECT_EQ(pass("GET /ws", offered).admission, who);
  EXPECT_EQ(pass("GET /metrics", offered).fault, HttpFault::token);
  EXPECT_EQ(pass("GET /ws", offered + with_token).fault, HttpFault::bad_upgrade) << "two tokens";
}

TEST_F(HttpGateTest, TheFirstFaultCounts) {
  const std::string foreign = "Origin: http://elsewhere\r\n";
  EXPECT_EQ(pass("GET /x", foreign).fault, HttpFault::origin);
  EXPECT_EQ(pass("POST /rpc", foreign + with_token).fault, HttpFault::origin);
  EXPECT_EQ(pass("POST /rpc", body(20'000'000)).fault, HttpFault::token);
  EXPECT_EQ(pass("POST /rpc", with_token + body(20'000'000)).fault, HttpFault::too_large);
  EXPECT_EQ(pass("POST /rpc", with_token + "Content-Length: 2\r\n").fault, HttpFault::content_type);
}

TEST_F(HttpGateTest, AnswersOfMcpMustBeTaken) {
  EXPECT_EQ(pass("POST /mcp", with_token + "Accept: text/event-stream\r\n").fault, Fault());
  EXPECT_EQ(pass("POST /mcp", with_token + "Accept: text/html\r\n").fault, HttpFault::accept);
  EXPECT_EQ(pass("POST /rpc", with_token + "Accept: text/html\r\n").fault, Fault());
  has_mcp = false;
  EXPECT_EQ(pass("POST /mcp", with_token).fault, HttpFault::path);
}

TEST_F(HttpGateTest, LoginsAreSmall) {
  EXPECT_EQ(pass("POST /login", body(1024)).fault, Fault());
  EXPECT_EQ(pass("POST /login", body(1025)).fault, HttpFault::too_large);
  EXPECT_EQ(pass("POST /rpc", with_token + body(1025)).fault, Fault());
}

TEST_F(HttpGateTest, WhoHasShownACertificateNeedsNoTokenAndHasNoSession) {
  shown = std::make_shared<const peer::Admission>(peer::Admission{.door = "tls", .name = "x", .role = "observe"});
  EXPECT_EQ(pass("POST /rpc").admission, shown);
  EXPECT_EQ(pass("GET /").fault, Fault());
  EXPECT_EQ(pass("POST /rpc", "Authorization: Bearer bad\r\n").admission, shown);
  for (const char* const line : {"POST /login", "POST /logout"}) EXPECT_EQ(pass(line).fault, HttpFault::path);
  shown = std::make_shared<const peer::Admission>(peer::Admission{.door = "tls", .name = "x", .role = ""});
  EXPECT_EQ(pass("GET /").fault, HttpFault::role);
}

}  // namespace
}  // namespace duet::app
