// How the reader of Content-Length frames finds its way back: a framing fault costs one message.

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "duet/framing/content_length.h"
#include "duet/framing/stream_driver_test.h"

namespace duet::framing {
namespace {

using Events = std::vector<std::string>;

const std::string first = R"({"jsonrpc":"2.0","id":1,"method":"first"})";
const std::string second = R"({"jsonrpc":"2.0","id":2,"method":"second"})";

std::string with_length(std::size_t length, const std::string& body) {
  return "Content-Length: " + std::to_string(length) + "\r\n\r\n" + body;
}

std::string framed(const std::string& body) { return with_length(body.size(), body); }

Events read(const std::string& stream) {
  const Events whole = events_of<ContentLengthDecoder>(stream);
  EXPECT_EQ(events_of<ContentLengthDecoder>(stream, Arrival::byte_by_byte), whole);
  EXPECT_EQ(events_of<ContentLengthDecoder>(stream, Arrival::byte_by_byte_into_room), whole);
  return whole;
}

TEST(Recovery, OfALengthTooShortSkipsTheBytesLeftOverWithoutASecondError) {
  for (std::size_t length = 0; length < first.size(); ++length) {
    EXPECT_EQ(read(with_length(length, first) + framed(second)), (Events{"! invalid-json", second})) << length;
  }
}

TEST(Recovery, OfALengthTooLongResumesAtTheBlockInsideTheBody) {
  const std::string next = framed(second);
  const std::size_t header = next.find("\r\n\r\n") + 4;
  for (std::size_t more = 1; more < 100; ++more) {
    // Up to the end of the next header only part of it was taken for body.
    const char* const fault = more < header ? "! invalid-json" : "! content-length-mismatch";
    EXPECT_EQ(read(with_length(first.size() + more, first) + next + framed(first)), (Events{fault, second, first}))
        << more;
  }
}

TEST(Recovery, OfALengthTooLongDoesNotWaitForTheRestOfTheBody) {
  ContentLengthDecoder decoder;
  StreamDriver driver(decoder);
  const std::string next = framed(second);
  driver.feed(with_length(1'000'000, first) + next.substr(0, next.size() - second.size() - 1));
  EXPECT_EQ(driver.events(), Events{});
  driver.feed("\n");
  EXPECT_EQ(driver.events(), Events{"! content-length-mismatch"});
  driver.feed(second);
  EXPECT_EQ(driver.events(), (Events{"! content-length-mismatch", second}));
}

TEST(Recovery, OfALengthTooLongFindsABlockThatBeginsWithAContentType) {
  const std::string next = "Content-Type: application/vscode-jsonrpc\r\n" + framed(second);
  EXPECT_EQ(read(with_length(500, first) + next), (Events{"! content-length-mismatch", second}));
}

TEST(Recovery, OfJunkBehindAMessageAnswersTheMessageAndReportsTheJunkOnce) {
  for (const std::string junk :
       {"}", " ", "junk", "junk\r\n", "\r\n\r\n", "{\"a\":1}", "a: b", "a\nb\nc\n", "Content-Length",
        "Content-Length:", "Content-Length: 12", "Content-Length: x\r\n\r\n", "Content-Length: 7\n", "\r\n\r\n\r\n\r\n",
        "\"Content-Length: 5\"\r\n\r\n", "Content-Length: 5 Content-Length: 6 ", "HTTP/1.1 200 OK\r\n", "\xFF\xFE"}) {
    EXPECT_EQ(read(framed(first) + junk + framed(second)), (Events{first, "! malformed-header", second})) << junk;
  }
}

TEST(Recovery, OfTwoPiecesOfJunkWithAMessageBetweenReportsBoth) {
  EXPECT_EQ(read("junk!" + framed(first) + "more!" + framed(second)),
            (Events{"! malformed-header", first, "! malformed-header", second}));
}

TEST(Recovery, OfAMissingBlankLineFindsTheNextBlock) {
  EXPECT_EQ(read("Content-Length: 41\r\n" + first + framed(second)), (Events{"! malformed-header", second}));
  EXPECT_EQ(read("Content-Length: 41" + first + framed(second)), (Events{"! malformed-header", second}));
  EXPECT_EQ(read("Content-Length: 41\r\n" + framed(second)), (Events{"! malformed-header", second}));
}

TEST(Recovery, TakesAnEmptyLineBetweenFramesForJunk) {
  for (const std::string line : {"\r\n", "\n", "\r\n\r\n", "\r"}) {
    EXPECT_EQ(read(framed(first) + line + framed(second)), (Events{first, "! malformed-header", second}));
  }
}

TEST(Recovery, OfAnOversizePayloadThatNeverComesEndsAtTheNextBlock) {
  EXPECT_EQ(read(with_length(99'999'999, first) + framed(second)), (Events{"! oversize", second}));
  EXPECT_EQ(read(with_length(99'999'999, "") + framed(second)), (Events{"! oversize", second}));
}

TEST(Recovery, IsSilentIfTheStreamEndsWhileSkipping) {
  EXPECT_EQ(read(with_length(99'999'999, first)), Events{"! oversize"});
  EXPECT_EQ(read("junk\r\n" + first), Events{"! malformed-header"});
  EXPECT_EQ(read(with_length(3, first)), Events{"! invalid-json"});
  EXPECT_EQ(read("X: " + std::string(9000, 'x')), Events{"! header-too-large"});
}

TEST(Recovery, ABlockFoundInJunkStartsAFrameWithAFaultOfItsOwn) {
  EXPECT_EQ(read("junk\r\nContent-Length: 3\r\n\r\nabc" + framed(second)),
            (Events{"! malformed-header", "! invalid-json", second}));
  EXPECT_EQ(read("junk\r\n" + with_length(99'999'999, first) + framed(second)),
            (Events{"! malformed-header", "! oversize", second}));
  EXPECT_EQ(read("junk\r\n" + with_length(60, first)), (Events{"! malformed-header", "! content-length-mismatch"}));
}

TEST(Recovery, OfTwoDifferentLengthsTriesTheLastInSilence) {
  const std::string other = "Content-Length: 43\r\n";
  EXPECT_EQ(read(other + framed(first) + framed(second)), (Events{"! malformed-header", first, second}))
      << "the rest of one frame and another, intact";
  for (std::size_t length = 0; length < first.size() + 100; ++length) {
    if (length == first.size() || length == 43) continue;
    EXPECT_EQ(read(other + with_length(length, first) + framed(second)), (Events{"! malformed-header", second}))
        << length;
    EXPECT_EQ(read(other + "X: y\r\n" + with_length(length, "") + framed(second)),
              (Events{"! malformed-header", second}))
        << length;
  }
  EXPECT_EQ(read(other + with_length(99'999'999, first) + framed(second)), (Events{"! malformed-header", second}));
  EXPECT_EQ(read(other + "Content-Type: a/b\r\n" + with_length(3, first) + framed(second)),
            (Events{"! malformed-header", second}));
  EXPECT_EQ(read(other + "Content-Type: a/b\r\n" + framed(first)),
            (Events{"! malformed-header", "! unsupported-content-type " + first}));
  EXPECT_EQ(read(other + with_length(60, first)), Events{"! malformed-header"});
  EXPECT_EQ(read(other + with_length(60, first) + framed(second) + "junk!" + framed(first)),
            (Events{"! malformed-header", second, "! malformed-header", first}));
  EXPECT_EQ(read(framed("{" + other + with_length(7, "")) + framed(second)),
            (Events{"! content-length-mismatch", second}))
      << "inside a body";
}

TEST(Recovery, OfAHeaderThatRanIntoAnotherFindsTheMessageOfTheOther) {
  for (const std::string rest : {"Content-Length: 12\r\njunk", "Content-Length: 500\r\nX: y\r\nContent-Ty",
                                 "Content-Length: 99999999\r\nX: ", "Content-Length: 12\r\nContent-Type: text/"}) {
    const Events events = read(rest + framed(first) + framed(second));
    ASSERT_EQ(events.size(), 3U) << rest;
    EXPECT_TRUE(events[0].starts_with("! ")) << rest;
    EXPECT_EQ(events[1], first) << rest;
    EXPECT_EQ(events[2], second) << rest;
    EXPECT_EQ(read(rest + with_length(3, first) + framed(second)), (Events{events[0], second})) << rest;
    EXPECT_EQ(read(rest + with_length(99'999'999, first) + framed(second)).size(), 2U) << rest;
  }
  const std::string other = "Content-Length: 12\r\njunk";
  EXPECT_EQ(read(other + "Content-Length: 41\r\nContent-Type: a/b\r\n\r\n" + first + framed(second)),
            (Events{"! unsupported-content-type", "! unsupported-content-type " + first, second}));
  EXPECT_EQ(read("Content-Length: 41\r\nX: Content-Length: 12\r\n\r\n" + first + framed("{") + framed(second)),
            (Events{first, "! invalid-json", second}))
      << "the frame was fine as it stood";
}

TEST(Recovery, OfABodyOfAnotherTypeTriesALengthBehindAnotherInSilence) {
  const std::string lengths = "{}Content-Length: 64\r\nContent-Length: 99999999\r\n\r\nh";
  EXPECT_EQ(read("Content-Type: a/b\r\n" + with_length(lengths.size(), lengths) + ": 5\"}" + framed(second)),
            (Events{"! unsupported-content-type", second}));
}

TEST(Recovery, IsNotFooledByAContentTypeInsideAStringThatAQuoteInJunkSeemsToClose) {
  const std::string fake = R"({"text":"Content-Type: a/b"})";
  EXPECT_EQ(read("junk!" + fake + " b:\"\r\n" + framed(second)), (Events{"! malformed-header", second}));
}

TEST(Recovery, IsNeverFooledByAHeaderInsideAString) {
  const std::string fake = R"({"text":"Content-Length: 2\r\n\r\n{}","more":"\r\nContent-Length: 2"})";
  EXPECT_EQ(read(framed(fake) + framed(second)), (Events{fake, second}));
  EXPECT_EQ(read("junk!" + framed(fake) + framed(second)), (Events{"! malformed-header", fake, second}));
  EXPECT_EQ(read(with_length(10, fake) + framed(second)), (Events{"! invalid-json", second}));
  EXPECT_EQ(read(with_length(fake.size() + 30, fake) + framed(second)), (Events{"! content-length-mismatch", second}));
  EXPECT_EQ(read(with_length(99'999'999, fake) + framed(second)), (Events{"! oversize", second}));
}

TEST(Recovery, IsNotFooledByAContentTypeInsideAStringEvenIfAWrongLengthEndsThere) {
  const std::string fake = R"({"text":"Content-Type: a/b"})";
  for (std::size_t length = 0; length < fake.size() + 40; ++length) {
    if (length == fake.size()) continue;
    const Events events = read(with_length(length, fake) + "X: y\r\n" + framed(second));
    ASSERT_EQ(events.size(), 2U) << length;
    EXPECT_EQ(events[1], second) << length;
  }
}

TEST(Recovery, IsNotFooledByBlankLinesBetweenTheTokensOfAMessage) {
  const std::string airy = "{\r\n\r\n\"a\"\r\n\r\n:\r\n\r\n\"Content-Length: 5\"\r\n\r\n}\r\n\r\n";
  EXPECT_EQ(read(framed(airy) + framed(second)), (Events{airy, second}));
}

TEST(Recovery, OneBrokenHeaderInJunkDoesNotHideTheGoodOneBehindIt) {
  for (const std::string broken :
       {"Content-Length: x\r\n", "Content-Length: 7", "Content-Length: 7\r\n", "Content-Length: \r\n\r\n",
        "Content-Length: 7\r\nx\r\n\r\n", "Content-Type: a/b\n", "Content-Length"}) {
    EXPECT_EQ(read("junk!\r\n" + broken + framed(second)), (Events{"! malformed-header", second})) << broken;
  }
}

TEST(Recovery, ALongTailOfAnotherMessageDoesNotHideTheBlockBehindIt) {
  const std::string tail(20'000, 'x');
  EXPECT_EQ(read(with_length(3, tail) + framed(second)), (Events{"! invalid-json", second}));
  EXPECT_EQ(read(with_length(3, tail + "\r\n\r\n" + tail) + framed(second)), (Events{"! invalid-json", second}));
}

TEST(Recovery, ABodyThatIsNotJsonMayEndLikeAHeader) {
  for (const std::string body :
       {"X: y\r\n", "Content-Length: 3", "Content-Type: a/b\r\n", "Content-", "Content-Length: "}) {
    EXPECT_EQ(read(framed(body) + framed(second)), (Events{"! invalid-json", second})) << body;
  }
}

}  // namespace
}  // namespace duet::framing
