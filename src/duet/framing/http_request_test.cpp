#include "duet/framing/http_request.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "duet/framing/http_driver_test.h"
#include "duet/framing/slow_http_reader_test.h"

namespace duet::framing {
namespace {

using Events = std::vector<std::string>;

const std::string get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
const std::string post = "POST /rpc HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}";
const Events got = {"GET / {Host=a} 0 keep", "body "};
const Events posted = {"POST /rpc {Host=a|Content-Length=2} 2 keep", "body {}"};

Events operator+(Events first, const Events& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

std::string head_with(const std::string& lines) { return "POST / HTTP/1.1\r\nHost: a\r\n" + lines + "\r\n"; }
std::string fields(std::size_t count) {
  std::string lines;
  for (std::size_t i = 0; i < count; ++i) lines += "X: y\r\n";
  return lines;
}

TEST(HttpRequest, AHeadIsThereAsSoonAsItIsWhole) {
  HttpRequestDecoder decoder;
  decoder.feed(post);
  const auto part = decoder.next();
  ASSERT_TRUE(part && part->head);
  EXPECT_EQ(part->head->method, "POST");
  EXPECT_EQ(part->head->host, "a");
  EXPECT_EQ(part->head->content_length, 2U);
  EXPECT_TRUE(decoder.awaits_decision());
  EXPECT_FALSE(decoder.next());
  decoder.read_body();
  const auto body = decoder.next();
  ASSERT_TRUE(body && body->body);
  EXPECT_EQ(*body->body, "{}");
  EXPECT_FALSE(decoder.next());
  EXPECT_EQ(decoder.held(), 0U);
}

TEST(HttpRequest, TargetsAreSplitIntoPathAndQuery) {
  const std::vector<std::array<std::string, 3>> rows = {
      {{"/", "/", ""}},    {{"/events?since=3&kind=a", "/events", "since=3&kind=a"}},
      {{"/a?", "/a", ""}}, {{"/a?b?c", "/a", "b?c"}},
      {{"/?/", "/", "/"}}, {{"//x:80/%41#f", "//x:80/%41#f", ""}}};
  for (const auto& [target, path, query] : rows) {
    const std::string request = "GET " + target + " HTTP/1.1\r\nHost: a\r\n\r\n";
    HttpRequestDecoder decoder;
    decoder.feed(request);
    const auto part = decoder.next();
    ASSERT_TRUE(part && part->head) << target;
    EXPECT_EQ(part->head->target, target);
    EXPECT_EQ(part->head->path, path);
    EXPECT_EQ(part->head->query, query);
  }
}

TEST(HttpRequest, FieldsAreFoundInAnyCase) {
  HttpRequestDecoder decoder;
  const std::string head = head_with("X-One:  1 \r\nx-one: 2\r\nEmpty:\r\nList: a, B ,,c\r\nLIST: d\r\nHigh: \xE9\r\n");
  decoder.feed(head);
  const auto part = decoder.next();
  ASSERT_TRUE(part && part->head);
  const HttpFields& all = part->head->fields;
  EXPECT_EQ(all.find("x-one"), "1");
  EXPECT_EQ(all.count("x-one"), 2U);
  EXPECT_EQ(all.find("empty"), "");
  EXPECT_EQ(all.find("high"), "\xE9");
  EXPECT_EQ(all.find("none"), std::nullopt);
  for (const char* word : {"a", "b", "c", "d"}) EXPECT_TRUE(all.lists("list", word)) << word;
  EXPECT_FALSE(all.lists("list", "e"));
  EXPECT_FALSE(all.lists("none", "a"));
}

TEST(HttpRequest, TheWishToCloseAndExpectationsAreTold) {
  const std::vector<std::pair<std::string, std::string>> rows = {
      {"Connection: close\r\n", "close"},
      {"Connection: Keep-Alive, CLOSE\r\n", "close"},
      {"Connection: keep-alive\r\nConnection: close\r\n", "close"},
      {"Proxy-Connection: close\r\n", "close"},
      {"Connection: upgrade\r\n", "keep"},
      {"Connection:\r\n", "keep"},
      {"Expect: 100-Continue\r\n", "keep continue"},
      {"Expect: 100-continue\r\nExpect: 100-continue\r\n", "keep expects"},
      {"Expect: 100-continue, x\r\n", "keep expects"},
      {"Expect:\r\n", "keep expects"},
  };
  for (const auto& [lines, told] : rows) {
    const Events events = http_events(head_with(lines));
    ASSERT_EQ(events.size(), 2U) << lines;
    EXPECT_TRUE(events[0].ends_with("0 " + told)) << lines << events[0];
  }
}

TEST(HttpRequest, PipelinedRequestsComeInTheirOrder) {
  EXPECT_EQ(http_events(get + post + post + get), got + posted + posted + got);
  EXPECT_EQ(http_events(post + "GET"), posted);
}

TEST(HttpRequest, SkippedBodiesAreNotKept) {
  const std::string stream =
      "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n" + std::string(100'000, 'x') + get;
  const Events expected = {"POST / {Host=a|Content-Length=100000} 100000 keep", "GET / {Host=a} 0 keep"};
  EXPECT_EQ(http_events(stream, 0, 1, true), expected);
  HttpRequestDecoder decoder;
  HttpDriver driver(decoder, true);
  for (std::size_t at = 0; at < stream.size(); at += 100) driver.read(stream.substr(at, 100));
  EXPECT_EQ(driver.events(), expected);
  EXPECT_LT(driver.most_held(), 200U);
}

TEST(HttpRequest, ABodyOverTheLimitIsAFaultThoughItsOwnerAsksForIt) {
  HttpRequestDecoder decoder(3);
  HttpDriver driver(decoder);
  driver.feed("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\n");
  EXPECT_EQ(driver.events().back(), "! 413 too-large");
  EXPECT_TRUE(decoder.has_ended());
}

TEST(HttpRequest, WhatStandsBehindTheHeadOfAnUpgradeIsHandedOver) {
  const std::string stream = get + "frames";
  for (std::size_t split = 0; split < get.size(); ++split) {
    HttpRequestDecoder decoder;
    decoder.feed(std::string_view(stream).substr(0, split));
    EXPECT_FALSE(decoder.next());
    decoder.feed(std::string_view(stream).substr(split));
    const auto part = decoder.next();
    ASSERT_TRUE(part && part->head);
    EXPECT_EQ(decoder.take_rest(), "frames");
    EXPECT_TRUE(decoder.has_ended());
  }
  HttpRequestDecoder decoder;
  decoder.feed(get);
  ASSERT_TRUE(decoder.next());
  EXPECT_EQ(decoder.take_rest(), "");
}

TEST(HttpRequest, TellsWhatItIsInTheMiddleOf) {
  HttpRequestDecoder decoder;
  HttpDriver driver(decoder);
  EXPECT_FALSE(decoder.inside_head());
  driver.feed("P");
  EXPECT_TRUE(decoder.inside_head());
  driver.feed(post.substr(1, post.size() - 2));
  EXPECT_FALSE(decoder.inside_head());
  EXPECT_TRUE(decoder.inside_body());
  driver.feed("}");
  EXPECT_FALSE(decoder.inside_head());
  EXPECT_FALSE(decoder.inside_body());
}

struct Row {
  std::string head;
  std::string answer;
};

// Rows 4 to 7 of the order of checks, each alone and with later ones.
std::vector<Row> faulty_heads() {
  const std::string end = " HTTP/1.1\r\nHost: a\r\n\r\n";
  const std::string long_target = '/' + std::string(http_max_target, 'x');
  const std::string big(http_max_head, 'x');
  const std::string tail = "\r\nHost: a\r\n\r\n";
  std::vector<Row> rows = {
      {"GET " + long_target, "! 414 target-too-long"},
      {"GET " + long_target + end, "! 414 target-too-long"},
      {"GET " + long_target + " HTTP/1.0\n\n", "! 414 target-too-long"},
      {"G:T x" + long_target + end, "! 414 target-too-long"},
      {"GET x" + long_target + "\x01", "! 414 target-too-long"},
      {big, "! 431 head-too-large"},
      {"GET / HTTP/1.1\r\nHost: a\r\nX: " + big, "! 431 head-too-large"},
      {"GET / HTTP/1.0\r\nX : " + big, "! 431 head-too-large"},
      {"GET / HTTP/1.1\r\n" + fields(http_max_fields + 1), "! 431 head-too-large"},
      {"GET x HTTP/1.0\r\n: \n" + fields(http_max_fields), "! 431 head-too-large"},

      {"GET / HTTP/1.1\nHost: a\r\n\r\n", "! 400 malformed"},
      {"GET / HTTP/1.1\r\nHost: a\n\r\n", "! 400 malformed"},
      {"GET / HTTP/1.1\r\nHost: a\r\n\n", "! 400 malformed"},
      {"GET / HTTP/1.1\nHost: a\n\n", "! 400 malformed"},
      {"GET / HTTP/1.1\r\r\nHost: a\r\n\r\n", "! 400 malformed"},
      {"GET / HTTP/1.1\rHost: a\r\r", "! 400 malformed"},
      {"GET / HTTP/1.1\r\nHost: a\rX: y\r\n\r\n", "! 400 malformed"},
      {"GET / HTTP/1.1\r\nHost: a\r\n\rX", "! 400 malformed"},
      {"\r\n" + get, "! 400 malformed"},
      {"\n", "! 400 malformed"},
      {"\x16\x03\x01", "! 400 malformed"},
      {std::string("GET / HTTP/1.1\r\nHost: a\0", 24), "! 400 malformed"},
      {"GET / HTTP/1.1\r\nHost: a\r\nX: a\tb\r\n\r\n", "! 400 malformed"},
      {"GET / HTTP/1.1\r\nHost: a\r\nX: \x7F\r\n\r\n", "! 400 malformed"},
      {"GET\t/\tHTTP/1.1\r\nHost: a\r\n\r\n", "! 400 malformed"},
      {"GET / HTTP/1.1\r\nHost : a\r\n\r\n", "! 400 malformed"},
      {"GET / HTTP/1.1\r\n Host: a\r\n\r\n", "! 400 malformed"},
      {"GET / HTTP/1.1\r\nHost: a\r\nX: y\r\n z\r\n\r\n", "! 400 malformed"},
      {"GET / HTTP/1.1\r\nHost: a\r\nX: y\r\n \r\n\r\n", "! 400 malformed"},
      {"GET / HTTP/1.1\r\nHost: a\r\nX\r\n\r\n", "! 400 malformed"},
      {"GET / HTTP/1.1\r\nHost: a\r\n: y\r\n\r\n", "! 400 malformed"},
      {"GET / HTTP/1.1\r\nHost: a\r\nX Y: z\r\n\r\n", "! 400 malformed"},
      {"GET / HTTP/1.1\r\nHost: a\r\nX(: z\r\n\r\n", "! 400 malformed"},
      {"GET / HTTP/1.1\r\nHost: a\r\n\xC3\xA9: z\r\n\r\n", "! 400 malformed"},
      {"GET / HTTP/1.1\r\n\r\n", "! 400 malformed"},
      {"GET / HTTP/1.1\r\nX: y\r\n\r\n", "! 400 malformed"},
      {"GET / HTTP/1.1\r\nHost: a\r\nhost: a\r\n\r\n", "! 400 malformed"},
      {"GET http://a/" + end, "! 400 malformed"},
      {"GET a:80" + end, "! 400 malformed"},
      {"OPTIONS *" + end, "! 400 malformed"},
      {"GET  /" + end, "! 400 malformed"},
      {"GET " + end, "! 400 malformed"},
      {" GET /" + end, "! 400 malformed"},
      {"GET /\xC3\xA9" + end, "! 400 malformed"},
      {"G(T /" + end, "! 400 malformed"},
      {"GET /a b" + end, "! 400 malformed"},
      {"GET / HTTP/1.1 " + tail, "! 400 malformed"},
      {"GET" + tail, "! 400 malformed"},
      {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "! 400 malformed"},
      {"GET / HTTP/1.0\r\n\r\n", "! 400 malformed"},
      {"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx", "! 400 malformed"},
      {"HEAD / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx", "! 400 malformed"},
      {head_with("Connection: a b\r\n"), "! 400 malformed"},
      {head_with("Content-Length: 2\r\nContent-Length: 2\r\n") + "{}", "! 400 malformed"},
      {head_with("Content-Length: 2\r\ncontent-length: 3\r\n") + "{}", "! 400 malformed"},

      {"GET / HTTP/1.0" + tail, "! 505 version"},
      {"GET / HTTP/2.0" + tail, "! 505 version"},
      {"GET / HTTP/1.10" + tail, "! 505 version"},
      {"GET / HTTP/01.1" + tail, "! 505 version"},
      {"GET / http/1.1" + tail, "! 505 version"},
      {"GET / HTTP/1.1x" + tail, "! 505 version"},
      {"GET /" + tail, "! 505 version"},
      {"GET / " + tail, "! 505 version"},
      {"POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n", "! 505 version"},

      {head_with("Transfer-Encoding: chunked\r\n"), "! 411 length-required"},
      {head_with("transfer-encoding:\r\n"), "! 411 length-required"},
      {"GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: identity\r\n\r\n", "! 411 length-required"},
      {head_with("Transfer-Encoding: chunked\r\nContent-Length: 2\r\n"), "! 400 malformed"},
      {head_with("Content-Length: 0\r\nTransfer-Encoding: identity\r\n"), "! 400 malformed"},
  };
  for (const char* length : {"", "x", "-1", "+1", "1 2", "1,1", "0x2", "2.0", "1e1", "\"2\"", "2;",
                             "18446744073709551616", "00000000000000000002", "\xD9\xA2"}) {
    rows.push_back({head_with("Content-Length: " + std::string(length) + "\r\n") + "{}", "! 400 malformed"});
  }
  for (int control = 0; control < 0x21; ++control) {
    if (control == '\r' || control == '\n' || control == ' ') continue;
    rows.push_back(
        {"GET / HTTP/1.1\r\nHost: a\r\nX: " + std::string(1, static_cast<char>(control)), "! 400 malformed"});
    rows.push_back({"GET /" + std::string(1, static_cast<char>(control)), "! 400 malformed"});
  }
  return rows;
}

TEST(HttpRequest, FaultyHeadsAreRefusedByTheFirstRowThatHoldsAndNothingComesAfterThem) {
  for (const Row& row : faulty_heads()) {
    EXPECT_EQ(http_events(row.head), Events{row.answer}) << testing::PrintToString(row.head);
    EXPECT_EQ(http_events(get + row.head + get), got + Events{row.answer}) << testing::PrintToString(row.head);
  }
}

TEST(HttpRequest, LimitsAreKnownAtTheirByte) {
  const std::string target = '/' + std::string(http_max_target - 1, 'x');
  EXPECT_EQ(http_events("GET " + target), Events{});
  EXPECT_EQ(http_events("GET " + target + " HTTP/1.1\r\nHost: a\r\n\r\n").size(), 2U);
  EXPECT_EQ(http_events("GET " + target + "\r\nHost: a\r\n\r\n"), Events{"! 505 version"});
  EXPECT_EQ(http_events("GET " + target + "\nHost: a\r\n\r\n"), Events{"! 400 malformed"});
  EXPECT_EQ(http_events("GET " + target + "x"), Events{"! 414 target-too-long"});

  EXPECT_EQ(http_events(head_with(fields(http_max_fields - 1))).size(), 2U);
  EXPECT_EQ(http_events(head_with(fields(http_max_fields))), Events{"! 431 head-too-large"});

  const std::size_t room = http_max_head - head_with("X: \r\n").size();
  EXPECT_EQ(http_events(head_with("X: " + std::string(room, 'x') + "\r\n")).size(), 2U);
  const std::string over = head_with("X: " + std::string(room + 1, 'x') + "\r\n");
  EXPECT_EQ(http_events(over), Events{"! 431 head-too-large"});
  EXPECT_EQ(http_events(over.substr(0, http_max_head)), Events{"! 431 head-too-large"});
  EXPECT_EQ(http_events(over.substr(0, http_max_head - 1)), Events{});
}

TEST(HttpRequest, LengthsOfUpTo19DigitsAreTaken) {
  EXPECT_EQ(http_events(head_with("Content-Length:  0000000000000000002 \r\n") + "{}").back(), "body {}");
  const std::string longest = head_with("Content-Length: 9999999999999999999\r\n");
  HttpRequestDecoder decoder;
  decoder.feed(longest);
  EXPECT_EQ(decoder.next()->head->content_length, 9'999'999'999'999'999'999U);
  EXPECT_EQ(http_events("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n" + get).size(), 4U);
}

TEST(HttpRequest, AfterAFaultNothingIsKept) {
  HttpRequestDecoder decoder;
  HttpDriver driver(decoder);
  driver.feed("GET / HTTP/1.0\r\nHost: a\r\n\r\n" + get);
  driver.feed(get);
  driver.read(std::string(100'000, 'x'));
  EXPECT_EQ(driver.events(), Events{"! 505 version"});
  EXPECT_EQ(decoder.held(), 0U);
  EXPECT_FALSE(decoder.inside_head());
}

TEST(HttpRequest, EverySplitPointGivesTheSame) {
  std::vector<std::string> streams = {get + post + get, post + get + "GET / HTTP/1.0\r\n\r\n" + get};
  for (const Row& row : faulty_heads()) {
    if (row.head.size() < 500) streams.push_back(post + row.head + get);
  }
  for (const std::string& stream : streams) {
    const Events whole = http_events(stream);
    for (std::size_t at = 0; at <= stream.size(); ++at) {
      HttpRequestDecoder decoder;
      HttpDriver driver(decoder);
      driver.feed(std::string_view(stream).substr(0, at));
      driver.read(std::string_view(stream).substr(at));
      ASSERT_EQ(driver.events(), whole) << at << ' ' << testing::PrintToString(stream);
    }
  }
}

TEST(HttpRequest, ASecondReadingOfTheRulesSaysTheSame) {
  for (const Row& row : faulty_heads()) {
    const std::string stream = post + row.head + get;
    ASSERT_EQ(slow_http_events(stream), http_events(stream)) << testing::PrintToString(stream);
  }
}

TEST(HttpRequest, ByteByByteGivesTheSame) {
  for (const Row& row : faulty_heads()) {
    const std::string stream = post + row.head + get;
    ASSERT_EQ(http_events(stream, 1), http_events(stream)) << testing::PrintToString(stream);
  }
}

TEST(HttpRequest, NoMoreIsHeldThanAHeadOrABody) {
  const std::string body(50'000, 'x');
  const std::string stream = head_with("Content-Length: 50000\r\n") + body;
  for (const std::string& text : {stream + stream, "GET / HTTP/1.1\r\nX: " + body, "GET /" + body}) {
    HttpRequestDecoder decoder;
    HttpDriver driver(decoder);
    for (std::size_t at = 0; at < text.size(); at += 7) driver.read(std::string_view(text).substr(at, 7));
    EXPECT_LE(driver.most_held(), body.size() + 7);
  }
}

// Pieces of heads in any order: mostly nonsense, which must be the same nonsense however it arrives.
RC_GTEST_PROP(HttpRequest, AnyMixtureOfPiecesIsTheSameHoweverItArrives, (std::uint32_t seed)) {
  static const std::vector<std::string> pieces = {get,
                                                  post,
                                                  get,
                                                  post,
                                                  "GET ",
                                                  "POST ",
                                                  "/",
                                                  "/a?b",
                                                  " HTTP/1.1\r\n",
                                                  " HTTP/1.0\r\n",
                                                  "Host: a\r\n",
                                                  "Host:",
                                                  "a",
                                                  "Content-Length: ",
                                                  "Content-Length: 3\r\n",
                                                  "0",
                                                  "12",
                                                  "Transfer-Encoding: chunked\r\n",
                                                  "Connection: close\r\n",
                                                  "Expect: 100-continue\r\n",
                                                  "\r\n",
                                                  "\r\n",
                                                  "\r\n\r\n",
                                                  "\r",
                                                  "\n",
                                                  " ",
                                                  "\t",
                                                  ":",
                                                  ",",
                                                  "xyz",
                                                  "\x80",
                                                  "_",
                                                  std::string(1000, 'x'),
                                                  std::string(9000, 'y')};
  std::minstd_rand random(seed);
  std::string stream;
  for (auto count = 1 + random() % 20; count > 0; --count) stream += pieces[random() % pieces.size()];
  const Events whole = http_events(stream);
  for (const std::size_t largest : {1U, 5U, 100U, 5000U}) RC_ASSERT(http_events(stream, largest, seed) == whole);
  RC_ASSERT(slow_http_events(stream) == whole);
  const auto is_fault = [](const std::string& event) { return event.starts_with("! "); };
  const auto fault = std::find_if(whole.begin(), whole.end(), is_fault);
  RC_ASSERT(std::distance(fault, whole.end()) <= 1);
}

RC_GTEST_PROP(HttpRequest, WhatIsSentIsWhatIsRead, (const std::vector<std::string>& bodies)) {
  std::string stream;
  Events expected;
  for (const std::string& body : bodies) {
    const std::string length = std::to_string(body.size());
    stream += "POST /a HTTP/1.1\r\nhost:a\r\nCONTENT-LENGTH:" + length + "\r\n\r\n" + body;
    expected.push_back("POST /a {host=a|CONTENT-LENGTH=" + length + "} " + length + " keep");
    expected.push_back("body " + body);
  }
  const std::size_t largest = *rc::gen::inRange<std::size_t>(0, 60);
  RC_ASSERT(http_events(stream, largest) == expected);
}

}  // namespace
}  // namespace duet::framing
