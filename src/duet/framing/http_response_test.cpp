#include "duet/framing/http_response.h"

#include <cstddef>
#include <iterator>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

namespace duet::framing {
namespace {

const std::string fixed =
    "X-Content-Type-Options: nosniff\r\n"
    "Referrer-Policy: no-referrer\r\n"
    "Cross-Origin-Opener-Policy: same-origin\r\n"
    "Cross-Origin-Resource-Policy: same-origin\r\n"
    "X-Frame-Options: DENY\r\n"
    "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src "
    "'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types "
    "'none'\r\n";

std::string head(const HttpResponse& response) {
  std::string out;
  append_head(out, response);
  return out;
}

std::string refusal(HttpFault fault, const HttpRefused& refused = {}) {
  std::string out;
  append_refusal(out, fault, refused);
  return out;
}

TEST(HttpResponse, HasItsLengthAndIsNotKept) {
  EXPECT_EQ(head({.content_type = "application/json", .content_length = 12}),
            "HTTP/1.1 200 OK\r\n" + fixed +
                "Cache-Control: no-store\r\nContent-Type: application/json\r\nContent-Length: 12\r\n\r\n");
  EXPECT_EQ(
      head({.content_type = "text/plain", .closes = true}),
      "HTTP/1.1 200 OK\r\n" + fixed +
          "Cache-Control: no-store\r\nContent-Type: text/plain\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
}

TEST(HttpResponse, FilesOfThePageMayBeAskedForAgain) {
  EXPECT_EQ(head({.content_type = "text/css", .content_length = 5, .etag = "\"abc\""}),
            "HTTP/1.1 200 OK\r\n" + fixed +
                "Cache-Control: no-cache\r\nETag: \"abc\"\r\nContent-Type: text/css\r\nContent-Length: 5\r\n\r\n");
  std::string out;
  append_not_modified(out, "\"abc\"", false);
  EXPECT_EQ(out, "HTTP/1.1 304 Not Modified\r\n" + fixed + "Cache-Control: no-cache\r\nETag: \"abc\"\r\n\r\n");
}

TEST(HttpResponse, WithoutContentHasNoLength) {
  std::string out;
  append_no_content(out, true);
  EXPECT_EQ(out, "HTTP/1.1 204 No Content\r\n" + fixed + "Cache-Control: no-store\r\nConnection: close\r\n\r\n");
}

TEST(HttpResponse, AStreamOfEventsEndsWithTheConnection) {
  std::string out;
  append_event_stream(out);
  EXPECT_EQ(out, "HTTP/1.1 200 OK\r\n" + fixed +
                     "Cache-Control: no-store\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n");
}

TEST(HttpResponse, UpgradesAndContinues) {
  std::string out;
  append_continue(out);
  EXPECT_EQ(out, "HTTP/1.1 100 Continue\r\n\r\n");
  out.clear();
  append_switching(out, "KEY=", "duet-rpc.1");
  const std::string start = "HTTP/1.1 101 Switching Protocols\r\n" + fixed +
                            "Cache-Control: no-store\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                            "Sec-WebSocket-Accept: KEY=\r\n";
  EXPECT_EQ(out, start + "Sec-WebSocket-Protocol: duet-rpc.1\r\n\r\n");
  out.clear();
  append_switching(out, "KEY=", "");
  EXPECT_EQ(out, start + "\r\n");
}

TEST(HttpResponse, ARefusalHasABodyOfFixedTexts) {
  const std::string body = R"({"error":"malformed","message":"The request is malformed."})";
  EXPECT_EQ(refusal(HttpFault::malformed),
            "HTTP/1.1 400 Bad Request\r\n" + fixed +
                "Cache-Control: no-store\r\nContent-Type: application/json\r\nContent-Length: " +
                std::to_string(body.size()) + "\r\nConnection: close\r\n\r\n" + body);
}

TEST(HttpResponse, ARefusalOfHeadHasTheLengthAndNoBody) {
  const std::string full = refusal(HttpFault::path);
  const std::string bare = refusal(HttpFault::path, {.is_head = true});
  EXPECT_TRUE(bare.ends_with("\r\n\r\n"));
  EXPECT_TRUE(full.starts_with(bare));
  EXPECT_TRUE(full.ends_with("\"}"));
}

TEST(HttpResponse, ARefusalSaysWhatWouldDo) {
  const auto has = [](const std::string& text, const std::string& line) {
    return text.find("\r\n" + line + "\r\n") != std::string::npos;
  };
  EXPECT_TRUE(has(refusal(HttpFault::method, {.allow = "GET, HEAD"}), "Allow: GET, HEAD"));
  EXPECT_TRUE(has(refusal(HttpFault::token), "WWW-Authenticate: Bearer"));
  EXPECT_TRUE(has(refusal(HttpFault::busy), "Retry-After: 1"));
  EXPECT_TRUE(has(refusal(HttpFault::too_many_codes, {.retry_after = 37}), "Retry-After: 37"));
  EXPECT_TRUE(has(refusal(HttpFault::upgrade), "Upgrade: websocket"));
  EXPECT_TRUE(has(refusal(HttpFault::upgrade), "Sec-WebSocket-Version: 13"));
  EXPECT_FALSE(has(refusal(HttpFault::token), "Connection: close"));
  EXPECT_TRUE(has(refusal(HttpFault::token, {.closes = true}), "Connection: close"));
}

TEST(HttpResponse, EveryFaultHasItsStatusAndWord) {
  struct Row {
    HttpFault fault;
    unsigned status;
    std::string word;
    bool closes;
  };
  const Row rows[] = {
      {HttpFault::other_user, 403, "other-user", true},
      {HttpFault::busy, 503, "busy", true},
      {HttpFault::too_slow, 408, "too-slow", true},
      {HttpFault::target_too_long, 414, "target-too-long", true},
      {HttpFault::head_too_large, 431, "head-too-large", true},
      {HttpFault::malformed, 400, "malformed", true},
      {HttpFault::version, 505, "version", true},
      {HttpFault::length_required, 411, "length-required", true},
      {HttpFault::host, 403, "host", false},
      {HttpFault::origin, 403, "origin", false},
      {HttpFault::path, 404, "not-found", false},
      {HttpFault::method, 405, "method", false},
      {HttpFault::token, 401, "token", false},
      {HttpFault::role, 403, "role", false},
      {HttpFault::content_type, 415, "content-type", false},
      {HttpFault::too_large, 413, "too-large", true},
      {HttpFault::expectation, 417, "expectation", true},
      {HttpFault::accept, 406, "accept", false},
      {HttpFault::query, 400, "query", false},
      {HttpFault::code, 401, "code", false},
      {HttpFault::used_code, 401, "used", false},
      {HttpFault::too_many_codes, 429, "too-many-codes", false},
      {HttpFault::upgrade, 426, "upgrade", false},
      {HttpFault::bad_upgrade, 400, "upgrade", false},
      {HttpFault::failed, 500, "failed", true},
  };
  for (const Row& row : rows) {
    const HttpRefusal& told = refusal_of(row.fault);
    EXPECT_EQ(told.status, row.status) << row.word;
    EXPECT_EQ(told.word, row.word);
    EXPECT_EQ(told.closes, row.closes) << row.word;
    EXPECT_EQ(told.message.find_first_of("\"\\\r\n"), std::string_view::npos) << row.word;
    // A phrase stands behind each status.
    EXPECT_EQ(refusal(row.fault).find(std::to_string(row.status) + " \r\n"), std::string::npos) << row.word;
    EXPECT_EQ(refusal(row.fault).find("\r\nServer:"), std::string::npos);
    EXPECT_EQ(refusal(row.fault).find("Access-Control"), std::string::npos);
  }
  EXPECT_EQ(std::size(rows), static_cast<std::size_t>(HttpFault::failed) + 1);
}

}  // namespace
}  // namespace duet::framing
