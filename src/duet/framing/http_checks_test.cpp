#include "duet/framing/http_checks.h"

#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "duet/framing/http_request.h"

namespace duet::framing {
namespace {

/// A head that the decoder has taken.
class Request {
 public:
  explicit Request(std::string text) : text_(std::move(text)) {
    decoder_.feed(text_);
    part_ = decoder_.next();
  }
  const HttpHead& operator*() const { return part_->head.value(); }

 private:
  std::string text_;
  HttpRequestDecoder decoder_;
  std::optional<HttpPart> part_;
};

Request with_host(const std::string& host) { return Request("GET / HTTP/1.1\r\nHost: " + host + "\r\n\r\n"); }
Request with_fields(const std::string& start, const std::string& lines) {
  return Request(start + " HTTP/1.1\r\nHost: localhost:80\r\n" + lines + "\r\n");
}
Request with_body(const std::string& lines) { return with_fields("POST /rpc", "Content-Length: 2\r\n" + lines); }

std::string word_of(std::optional<HttpFault> fault) { return fault ? std::string(refusal_of(*fault).word) : ""; }

bool takes(const std::string& accept, std::string_view type) {
  return accepts(*with_fields("POST /mcp", accept.empty() ? "" : "Accept: " + accept + "\r\n"), type);
}

TEST(HttpChecks, AcceptNamesTypesFamiliesOrEverything) {
  const std::string_view json = "application/json";
  for (const char* accept : {"", "*/*", "application/*", "application/json", "Application/JSON;q=0.1",
                             "text/html, application/json;v=1", "a/b;q=0,*/*;q=0.001"}) {
    EXPECT_TRUE(takes(accept, json)) << accept;
  }
  for (const char* accept : {"text/event-stream", "application/jsonx", "text/*", "application", "/*", "*", ",",
                             "application/json;q=0", "application/json; q = 0.000", "*/*;q=0"}) {
    EXPECT_FALSE(takes(accept, json)) << accept;
  }
  EXPECT_TRUE(takes("application/json, text/event-stream", "text/event-stream"));
  EXPECT_TRUE(accepts(*with_fields("POST /mcp", "Accept: a/b\r\nACCEPT: text/event-stream\r\n"), "text/event-stream"));
}

TEST(HttpChecks, LoopbackHasItsNamesWithAnyPort) {
  for (const char* host : {"localhost", "LOCALHOST", "Localhost:8080", "127.0.0.1", "127.0.0.1:0",
                           "127.255.255.255:65535", "127.1.2.3:80", "[::1]", "[::1]:8123"}) {
    EXPECT_EQ(word_of(host_fault(*with_host(host), {})), "") << host;
    EXPECT_EQ(word_of(host_fault(*with_host(host), {.loopback = false})), "host") << host;
  }
}

TEST(HttpChecks, OtherHostsAreRefused) {
  for (const char* host : {"",
                           ":80",
                           "localhost.",
                           "localhost.evil.example",
                           "evil.example",
                           "evil.example:80",
                           "xlocalhost",
                           "localhost:",
                           "localhost:x",
                           "localhost:65536",
                           "localhost:-1",
                           "localhost:80:80",
                           "localhost:080808",
                           "localhost 80",
                           "user@localhost",
                           "localhost/",
                           "localhost,localhost",
                           "127.1",
                           "127.0.1",
                           "127.0.0.1.",
                           "127.0.0.256",
                           "127.0.0.01",
                           "127.0.0",
                           "127.0.0.0.1",
                           "127..0.1",
                           "127.0.0.",
                           "127.0.0.1x",
                           "0127.0.0.1",
                           "0x7f.0.0.1",
                           "2130706433",
                           "128.0.0.1",
                           "0.0.0.0",
                           "10.0.0.1",
                           "::1",
                           "[::1",
                           "[::1]x",
                           "[::1]:",
                           "[::1]:x",
                           "[0:0:0:0:0:0:0:1]",
                           "[::1%lo]",
                           "[::ffff:127.0.0.1]",
                           "[::]",
                           "[]",
                           "[",
                           "]",
                           "[::1]:80:80"}) {
    EXPECT_EQ(word_of(host_fault(*with_host(host), {})), "host") << host;
  }
}

TEST(HttpChecks, AStarStandsForOneNameBelow) {
  const std::vector<std::string> names = {"*.box.lan"};
  for (const char* host : {"a.box.lan", "A.BOX.lan:443"})
    EXPECT_EQ(word_of(host_fault(*with_host(host), {.loopback = false, .others = names})), "") << host;
  for (const char* host : {"box.lan", ".box.lan", "a.b.box.lan", "abox.lan", "*"})
    EXPECT_EQ(word_of(host_fault(*with_host(host), {.loopback = false, .others = names})), "host") << host;
}

TEST(HttpChecks, FurtherNamesMayBeGiven) {
  const std::vector<std::string> names = {"Box.Lan", "192.0.2.7", "[2001:db8::1]"};
  for (const char* host : {"box.lan", "BOX.LAN:443", "192.0.2.7", "192.0.2.7:1", "[2001:DB8::1]:2"})
    EXPECT_EQ(word_of(host_fault(*with_host(host), {.loopback = false, .others = names})), "") << host;
  for (const char* host : {"box.lan.", "box", "xbox.lan", "box.lanx", "192.0.2.70", "2001:db8::1", "localhost"})
    EXPECT_EQ(word_of(host_fault(*with_host(host), {.loopback = false, .others = names})), "host") << host;
  EXPECT_EQ(word_of(host_fault(*with_host("localhost"), {.loopback = true, .others = names})), "");
}

TEST(HttpChecks, TheOriginIsTheHostAsItCame) {
  struct Row {
    std::string lines;
    std::string word;
  };
  const std::vector<Row> rows = {
      {"", ""},
      {"Origin: http://localhost:80\r\n", ""},
      {"origin: http://localhost:80\r\n", ""},
      {"Origin: http://localhost\r\n", "origin"},
      {"Origin: http://LOCALHOST:80\r\n", "origin"},
      {"Origin: https://localhost:80\r\n", "origin"},
      {"Origin: http://localhost:81\r\n", "origin"},
      {"Origin: http://localhost:80/\r\n", "origin"},
      {"Origin: http://127.0.0.1:80\r\n", "origin"},
      {"Origin: http:/xlocalhost:80\r\n", "origin"},
      {"Origin: http://evil.example\r\n", "origin"},
      {"Origin: null\r\n", "origin"},
      {"Origin:\r\n", "origin"},
      {"Origin: http://localhost:80\r\nOrigin: null\r\n", "origin"},
      {"Origin: null\r\nOrigin: http://localhost:80\r\n", "origin"},
      {"Sec-Fetch-Site: same-origin\r\n", ""},
      {"Sec-Fetch-Site: none\r\n", ""},
      {"Sec-Fetch-Site: same-site\r\n", "origin"},
      {"Sec-Fetch-Site: cross-site\r\n", "origin"},
      {"Sec-Fetch-Site:\r\n", "origin"},
      {"Sec-Fetch-Site: NONE\r\n", "origin"},
      {"Sec-Fetch-Site: none\r\nSec-Fetch-Site: cross-site\r\n", "origin"},
      {"Origin: http://localhost:80\r\nSec-Fetch-Site: cross-site\r\n", "origin"},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(word_of(origin_fault(*with_fields("POST /rpc", row.lines), "http")), row.word) << row.lines;
    EXPECT_EQ(word_of(origin_fault(*with_fields("GET /", row.lines), "http")), row.word) << row.lines;
  }
  EXPECT_EQ(word_of(origin_fault(*with_fields("GET /ws", "Origin: https://localhost:80\r\n"), "https")), "");
  EXPECT_EQ(word_of(origin_fault(*with_fields("GET /ws", "Origin: http://localhost:80\r\n"), "https")), "origin");
}

TEST(HttpChecks, OnlyThePageItselfMayBeOpenedFromElsewhere) {
  const std::string site = "Sec-Fetch-Site: cross-site\r\n";
  const std::string mode = "Sec-Fetch-Mode: navigate\r\n";
  const std::string document = "Sec-Fetch-Dest: document\r\n";
  EXPECT_EQ(word_of(origin_fault(*with_fields("GET /", site + mode + document), "http")), "");
  EXPECT_EQ(word_of(origin_fault(*with_fields("GET /", document + mode + site), "http")), "");
  for (const std::string start : {"GET /assets/page.js", "GET /ws", "GET /events", "POST /", "HEAD /"})
    EXPECT_EQ(word_of(origin_fault(*with_fields(start, site + mode + document), "http")), "origin") << start;
  for (const std::string& lines : {site, site + mode, site + document, site + mode + "Sec-Fetch-Dest: iframe\r\n",
                                   site + "Sec-Fetch-Mode: no-cors\r\n" + document})
    EXPECT_EQ(word_of(origin_fault(*with_fields("GET /", lines), "http")), "origin") << lines;
  EXPECT_EQ(word_of(origin_fault(*with_fields("GET /", site + mode + document + "Origin: null\r\n"), "http")),
            "origin");
}

TEST(HttpChecks, ABodyIsJsonInUtf8) {
  for (const char* type :
       {"application/json", "Application/JSON", "application/json;charset=utf-8", "application/json; charset=UTF-8",
        "application/json ; charset=\"utf-8\"", "application/json;", "application/json; v=1; charset=utf-8",
        "application/json; v=\"a;b\"; charset=utf-8"}) {
    EXPECT_EQ(word_of(content_fault(*with_body("Content-Type: " + std::string(type) + "\r\n"))), "") << type;
  }
  for (const char* type :
       {"", "text/plain", "application/json-rpc", "application/jsonx", "xapplication/json",
        "application/json, text/plain", "text/plain; application/json", "application/json; charset=latin1",
        "application/json; charset=utf-16", "application/json; charset",
        "application/json; charset=", "application/json; charset=\"utf-8", "application/json; charset=\"utf-8\"x",
        "application/json; charset=utf-8; charset=latin1", "application/json; v=\"a\\\"b\"",
        "application/json charset=utf-8", "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=application/json"}) {
    EXPECT_EQ(word_of(content_fault(*with_body("Content-Type: " + std::string(type) + "\r\n"))), "content-type")
        << type;
  }
  const std::string json = "Content-Type: application/json\r\n";
  EXPECT_EQ(word_of(content_fault(*with_body(""))), "content-type");
  EXPECT_EQ(word_of(content_fault(*with_body(json + json))), "content-type");
  EXPECT_EQ(word_of(content_fault(*with_body(json + "Content-Encoding: gzip\r\n"))), "content-type");
  EXPECT_EQ(word_of(content_fault(*with_body("content-encoding:\r\n" + json))), "content-type");
  EXPECT_EQ(word_of(content_fault(*with_fields("POST /logout", ""))), "");
  EXPECT_EQ(word_of(content_fault(*with_fields("POST /logout", "Content-Length: 0\r\nContent-Type: text/plain\r\n"))),
            "");
}

TEST(HttpChecks, LengthsHaveALimit) {
  const auto with_length = [](const std::string& length) {
    return word_of(length_fault(*with_fields("POST /login", "Content-Length: " + length + "\r\n"), 1024));
  };
  EXPECT_EQ(with_length("1024"), "");
  EXPECT_EQ(with_length("1025"), "too-large");
  EXPECT_EQ(with_length("9999999999999999999"), "too-large");
}

TEST(HttpChecks, OneExpectationIsKnown) {
  EXPECT_EQ(word_of(expectation_fault(*with_body(""))), "");
  EXPECT_EQ(word_of(expectation_fault(*with_body("Expect: 100-continue\r\n"))), "");
  EXPECT_EQ(word_of(expectation_fault(*with_body("Expect: 200-ok\r\n"))), "expectation");
}

TEST(HttpChecks, AConnectionGoesOnAfterARefusalIfTheBodyCanBeSkipped) {
  EXPECT_TRUE(survives_refusal(*with_fields("GET /", "")));
  EXPECT_TRUE(survives_refusal(*with_fields("GET /", "Expect: 100-continue\r\n")));
  EXPECT_TRUE(survives_refusal(*with_body("")));
  EXPECT_FALSE(survives_refusal(*with_body("Connection: close\r\n")));
  EXPECT_FALSE(survives_refusal(*with_body("Expect: 100-continue\r\n")));
  EXPECT_TRUE(survives_refusal(*with_fields("POST /", "Content-Length: 65536\r\n")));
  EXPECT_FALSE(survives_refusal(*with_fields("POST /", "Content-Length: 65537\r\n")));
}

TEST(HttpChecks, TagsAreFoundInTheirList) {
  const auto has = [](const std::string& value) {
    return has_etag(*with_fields("GET /", "If-None-Match: " + value + "\r\n"), "\"abc\"");
  };
  for (const char* value : {"\"abc\"", "W/\"abc\"", "\"x\", \"abc\"", "*", "\"x\",W/\"abc\" ,\"y\""})
    EXPECT_TRUE(has(value)) << value;
  for (const char* value : {"", "abc", "\"ab\"", "\"abcd\"", "\"ABC\"", "w/\"abc\""}) EXPECT_FALSE(has(value)) << value;
  EXPECT_FALSE(has_etag(*with_fields("GET /", ""), "\"abc\""));
}

// A second reading of what a loopback address is, from the numbers and not from the text.
RC_GTEST_PROP(HttpChecks, OnlyAddressesThatBeginWith127AreLoopback,
              (unsigned char a, unsigned char b, unsigned char c)) {
  const auto first = *rc::gen::element(126, 127, 128, 12, 1270, 27);
  const std::string host =
      std::to_string(first) + '.' + std::to_string(a) + '.' + std::to_string(b) + '.' + std::to_string(c);
  RC_ASSERT(host_fault(*with_host(host), {}).has_value() == (first != 127));
}

}  // namespace
}  // namespace duet::framing
