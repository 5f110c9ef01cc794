// Requests that one program could end elsewhere than another: each is refused, and no second request comes of it.

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "duet/framing/http_driver_test.h"

namespace duet::framing {
namespace {

using Events = std::vector<std::string>;

const std::string second = "GET /second HTTP/1.1\r\nHost: a\r\n\r\n";
const std::string chunks = "5\r\nhello\r\n0\r\n\r\n";

std::string request(const std::string& lines, const std::string& body) {
  return "POST /rpc HTTP/1.1\r\nHost: a\r\n" + lines + "\r\n" + body;
}

/// Refused, whatever comes behind it and however it arrives, and nothing but the refusal comes of it.
void expect_refused(const std::string& stream) {
  const std::string shown = testing::PrintToString(stream);
  const Events events = http_events(stream + second);
  ASSERT_EQ(events.size(), 1U) << shown << testing::PrintToString(events);
  EXPECT_TRUE(events[0] == "! 400 malformed" || events[0] == "! 411 length-required") << shown << events[0];
  EXPECT_EQ(http_events(stream + second, 1), events) << shown;
  HttpRequestDecoder decoder;
  HttpDriver driver(decoder);
  driver.feed(stream + second);
  EXPECT_TRUE(decoder.has_ended()) << shown;
  driver.feed(second);
  EXPECT_EQ(driver.events(), events) << shown;
}

// How `Transfer-Encoding: chunked` is written so that some take it for that and others do not.
std::vector<std::string> spellings() {
  return {"Transfer-Encoding: chunked",
          "transfer-encoding: chunked",
          "TRANSFER-ENCODING: CHUNKED",
          "tRaNsFeR-eNcOdInG: cHuNkEd",
          "Transfer-Encoding:chunked",
          "Transfer-Encoding:  chunked  ",
          "Transfer-Encoding:\tchunked",
          "Transfer-Encoding: chunked\t",
          "Transfer-Encoding : chunked",
          "Transfer-Encoding\t: chunked",
          " Transfer-Encoding: chunked",
          "\tTransfer-Encoding: chunked",
          "X: y\r\n Transfer-Encoding: chunked",
          "X: y\nTransfer-Encoding: chunked",
          "X: y\rTransfer-Encoding: chunked",
          "Transfer-Encoding\r\n : chunked",
          "Transfer-Encoding:\r\n chunked",
          "Transfer-Encoding:\n chunked",
          "Transfer-Encoding: \x0B"
          "chunked",
          "Transfer-Encoding: \x0C"
          "chunked",
          std::string("Transfer-Encoding: chunked\0", 27),
          "Transfer-Encoding: \"chunked\"",
          "Transfer-Encoding: 'chunked'",
          "Transfer-Encoding: xchunked",
          "Transfer-Encoding: chunkedx",
          "Transfer-Encoding: chunk",
          "Transfer-Encoding: identity",
          "Transfer-Encoding: identity, chunked",
          "Transfer-Encoding: chunked, identity",
          "Transfer-Encoding: chunked;q=1",
          "Transfer-Encoding: gzip, chunked",
          "Transfer-Encoding: chunked, chunked",
          "Transfer-Encoding: chunked\r\nTransfer-Encoding: x",
          "Transfer-Encoding: x\r\nTransfer-Encoding: chunked",
          "Transfer-Encoding:",
          "Transfer-Encoding: ,chunked",
          "Transfer-Encoding: \xC3\xA7hunked",
          "Transfer-Encod\xC4\xB1ng: chunked",
          "Transfer_Encoding: chunked",
          "Transfer Encoding: chunked",
          "Transfer-Encoding chunked",
          "\"Transfer-Encoding\": chunked",
          "Transfer-Encoding;: chunked"};
}

TEST(HttpSmuggling, NoSpellingOfATransferEncodingIsTaken) {
  ASSERT_GE(spellings().size(), 30U);
  for (const std::string& line : spellings()) {
    expect_refused(request(line + "\r\n", chunks));
    expect_refused(request("Content-Length: 4\r\n" + line + "\r\n", chunks));            // CL.TE
    expect_refused(request(line + "\r\nContent-Length: 4\r\n", chunks));                 // TE.CL
    expect_refused(request(line + "\r\nTransfer-Encoding: identity\r\n", chunks));       // TE.TE
    expect_refused(request("Transfer-Encoding: identity\r\n" + line + "\r\n", chunks));  // and the other way round
  }
}

TEST(HttpSmuggling, ChunkExtensionsAndTrailersAreNotLookedAt) {
  for (const std::string body :
       {"5;a=b\r\nhello\r\n0\r\n\r\n", "5 ; a\r\nhello\r\n0\r\n\r\n", "5;\n\r\nhello\r\n0\r\n\r\n",
        "0\r\nContent-Length: 9\r\n\r\n", "0\r\n\r\n", "0x5\r\nhello\r\n0\r\n\r\n"}) {
    expect_refused(request("Transfer-Encoding: chunked\r\n", body));
    expect_refused(request("Content-Length: 3\r\nTransfer-Encoding: chunked\r\n", body));
  }
}

TEST(HttpSmuggling, LengthsThatCanBeReadInTwoWaysAreRefused) {
  for (const std::string lines : {"Content-Length: 5\r\nContent-Length: 5\r\n",
                                  "Content-Length: 5\r\nContent-Length: 0\r\n",
                                  "Content-Length: 0\r\nContent-Length: 5\r\n",
                                  "content-length: 5\r\nCONTENT-LENGTH: 6\r\n",
                                  "Content-Length: 5, 5\r\n",
                                  "Content-Length: 5,6\r\n",
                                  "Content-Length: 5 5\r\n",
                                  "Content-Length: 0 5\r\n",
                                  "Content-Length : 5\r\n",
                                  "Content-Length\t: 5\r\n",
                                  " Content-Length: 5\r\n",
                                  "Content-Length: +5\r\n",
                                  "Content-Length: -5\r\n",
                                  "Content-Length: 0x5\r\n",
                                  "Content-Length: 5.0\r\n",
                                  "Content-Length: \"5\"\r\n",
                                  "Content-Length: \t5\r\n",
                                  "Content-Length: 5\t\r\n",
                                  "Content-Length: 5\x0B\r\n",
                                  "Content-Length:\r\n 5\r\n",
                                  "Content-Length:\r\n",
                                  "Content-Length: \r\n",
                                  "Content-Length: 5\r\n 6\r\n",
                                  "Content-Length: 5;\r\n",
                                  "Content-Length: 18446744073709551621\r\n",
                                  "Content_Length: 5\r\n",
                                  "Content Length: 5\r\n",
                                  "Content-Length: 5\nX: y\r\n",
                                  "Content-Length: 5\rX: y\r\n",
                                  "X: y\nContent-Length: 5\r\n",
                                  "X: y\rContent-Length: 5\r\n",
                                  "X: y\r\n\tContent-Length: 5\r\n",
                                  "Content-Length 5\r\n",
                                  ": 5\r\n"}) {
    expect_refused(request(lines, "hello"));
  }
}

TEST(HttpSmuggling, ABodyWhereNoneBelongsIsRefused) {
  for (const std::string method : {"GET", "HEAD"}) {
    expect_refused(method + " / HTTP/1.1\r\nHost: a\r\nContent-Length: 34\r\n\r\n");
    expect_refused(method + " / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks);
  }
}

TEST(HttpSmuggling, LinesEndInOneWayOnly) {
  for (const std::string head :
       {"POST / HTTP/1.1\nHost: a\n\n", "POST / HTTP/1.1\r\nHost: a\n\n", "POST / HTTP/1.1\r\nHost: a\r\n\n",
        "POST / HTTP/1.1\r\nHost: a\r\r\n\r\n", "POST / HTTP/1.1\r\nHost: a\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\n\r\r\n", "POST / HTTP/1.1\rHost: a\r\r", "\nPOST / HTTP/1.1\r\nHost: a\r\n\r\n",
        "\r\nPOST / HTTP/1.1\r\nHost: a\r\n\r\n"}) {
    expect_refused(head);
  }
}

TEST(HttpSmuggling, HostsThatCanBeReadInTwoWaysAreRefused) {
  for (const std::string lines : {"Host: b\r\n", "host: a\r\n", " b\r\n", "Host : b\r\n", "\tb\r\n"})
    expect_refused(request(lines, ""));
  expect_refused("GET http://b/ HTTP/1.1\r\nHost: a\r\n\r\n");
}

// Without a length there is no body: what follows is a request, and must be a proper one.
TEST(HttpSmuggling, BytesWithoutALengthAreNoBody) {
  const Events events = http_events(request("", "{\"jsonrpc\":\"2.0\"}\r\n\r\n") + second);
  EXPECT_EQ(events, (Events{"POST /rpc {Host=a} 0 keep", "body ", "! 400 malformed"}));
  EXPECT_EQ(http_events(request("Content-Length: 0\r\n", chunks) + second).back(), "! 400 malformed");
}

}  // namespace
}  // namespace duet::framing
