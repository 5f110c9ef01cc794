#include "duet/framing/content_length.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "duet/framing/stream_driver_test.h"

namespace duet::framing {
namespace {

using Events = std::vector<std::string>;

std::string framed(const std::string& body, const std::string& more_headers = "") {
  return more_headers + "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

// What a stream comes to; the same whether it arrives at once or byte by byte.
Events read(const std::string& stream) {
  const Events whole = events_of<ContentLengthDecoder>(stream);
  EXPECT_EQ(events_of<ContentLengthDecoder>(stream, Arrival::byte_by_byte), whole);
  EXPECT_EQ(events_of<ContentLengthDecoder>(stream, Arrival::byte_by_byte_into_room), whole);
  return whole;
}

// What has been said by the time these bytes are there and no others.
Events said_after(const std::string& bytes) {
  ContentLengthDecoder decoder;
  StreamDriver driver(decoder);
  driver.feed(bytes);
  return driver.take_events();
}

std::string header_line_of(std::size_t size) { return "X: " + std::string(size - 5, 'x') + "\r\n"; }

const std::string ping = R"({"jsonrpc":"2.0","id":1,"method":"ping"})";
const std::string good = framed(ping);

TEST(ContentLength, AFrameIsAHeaderBlockABlankLineAndExactlyThatManyBytes) {
  EXPECT_EQ(read(framed("{}") + framed("[1]") + framed("\"é\"")), (Events{"{}", "[1]", "\"é\""}));
}

TEST(ContentLength, NothingIsSaidAboutNothing) { EXPECT_EQ(read(""), Events{}); }

TEST(ContentLength, HeaderNamesAreAcceptedInAnyCase) {
  EXPECT_EQ(read("content-length: 2\r\n\r\n{}CONTENT-LENGTH: 2\r\n\r\n[]"), (Events{"{}", "[]"}));
}

TEST(ContentLength, SpacesAndTabsAroundAValueAreAccepted) {
  EXPECT_EQ(read("Content-Length:2\r\n\r\n{}Content-Length:\t 2 \t\r\n\r\n[]"), (Events{"{}", "[]"}));
}

TEST(ContentLength, UnknownHeadersAreAcceptedOnEitherSide) {
  EXPECT_EQ(read("X-A: 1\r\nContent-Length: 2\r\nX-B:\r\n\r\n{}"), Events{"{}"});
}

TEST(ContentLength, TheSameLengthTwiceIsAccepted) {
  EXPECT_EQ(read("Content-Length: 2\r\nContent-Length: 02\r\n\r\n{}"), Events{"{}"});
}

TEST(ContentLength, TheOneSupportedContentTypeIsAccepted) {
  for (const char* type : {"application/vscode-jsonrpc; charset=utf-8",
                           "Application/VSCode-JSONRPC;charset=\"UTF8\"; x=y", "application/vscode-jsonrpc"}) {
    EXPECT_EQ(read(framed("{}", std::string("Content-Type: ") + type + "\r\n")), Events{"{}"}) << type;
  }
}

TEST(ContentLength, AnotherMediaTypeIsAFaultWithABody) {
  EXPECT_EQ(read(framed("{}", "Content-Type: application/json\r\n") + good),
            (Events{"! unsupported-content-type {}", ping}));
}

TEST(ContentLength, AnotherCharsetIsAFaultWithABody) {
  const std::string type = "content-type: application/vscode-jsonrpc; charset=iso-8859-1\r\n";
  EXPECT_EQ(read(framed("{}", type) + good), (Events{"! bad-charset {}", ping}));
}

TEST(ContentLength, AWrongContentTypeWithABodyThatIsNotJsonIsOneFault) {
  EXPECT_EQ(read(framed("{x", "Content-Type: text/plain\r\n") + good), (Events{"! unsupported-content-type", ping}));
}

TEST(ContentLength, AWrongContentTypeWithALengthTooLongIsOneFault) {
  EXPECT_EQ(read("Content-Type: text/plain\r\nContent-Length: 60\r\n\r\n{}" + good + good),
            (Events{"! unsupported-content-type", ping, ping}));
}

TEST(ContentLength, AMalformedHeaderIsOneFaultWhateverIsWrongWithIt) {
  for (const char* header : {"X: y\r\n\r\n",
                             "Content-Length:\r\n\r\n",
                             "Content-Length: x\r\n\r\n",
                             "Content-Length: -2\r\n\r\n",
                             "Content-Length: +2\r\n\r\n",
                             "Content-Length: 2.0\r\n\r\n",
                             "Content-Length: 0x2\r\n\r\n",
                             "Content-Length: 2 2\r\n\r\n",
                             "Content-Length 2\r\n\r\n",
                             "Content_Length: 2\r\n\r\n",
                             "Content-Length : 2\r\n\r\n",
                             " Content-Length: 2\r\n x\r\n\r\n",
                             "Content-Length: 2\r\nfolded\r\n\r\n",
                             "Content-Length: 2\r\n more\r\n\r\n",
                             "Content-Length: 2\n\n",
                             "Content-Length: 2\n\r\n",
                             "Content-Length: 2\r\n\n",
                             "X: y\nContent-Length: 2x\r\n\r\n",
                             "Content-Length: 2\r\r\n\r\n",
                             ": 2\r\n\r\n",
                             "\n",
                             "\r\n",
                             "Content-Length: 2\r\n: x\r\n\r\n"}) {
    EXPECT_EQ(read(std::string(header) + "{}" + good), (Events{"! malformed-header", ping})) << header;
  }
}

TEST(ContentLength, TwoDifferentLengthsAreAFault) {
  // The second one ends a block of its own, which the search then finds.
  EXPECT_EQ(read("Content-Length: 9\r\nContent-Length: 2\r\n\r\n{}" + good),
            (Events{"! malformed-header", "{}", ping}));
  EXPECT_EQ(read("Content-Length: 2\r\nContent-Length: 3\r\nX\r\n\r\n{}" + good), (Events{"! malformed-header", ping}));
}

TEST(ContentLength, AMalformedHeaderIsReportedAsSoonAsItsLineEndsAndNotBefore) {
  for (const char* line : {"Content-Length: 5\r\nContent-Length: 6\r", "no colon\r", "Content-Length: x\r", "a b: c\r",
                           "Content-Length: 2", "X: y\r\n\r", "\r"}) {
    EXPECT_EQ(said_after(line), Events{}) << line;
    EXPECT_EQ(said_after(std::string(line) + "\n"), Events{"! malformed-header"}) << line;
  }
}

TEST(ContentLength, TenMebibytesAreFine) {
  const std::string body = "\"" + std::string(max_body - 2, 'x') + "\"";
  EXPECT_EQ(events_of<ContentLengthDecoder>(framed(body) + good), (Events{body, ping}));
}

TEST(ContentLength, OneByteMoreIsOversizeAsSoonAsTheHeaderIsRead) {
  EXPECT_EQ(said_after("Content-Length: 10485761\r\n\r"), Events{});
  EXPECT_EQ(said_after("Content-Length: 10485761\r\n\r\n"), Events{"! oversize"});
}

TEST(ContentLength, MoreDigitsThanFitSixtyFourBitsAreOversize) {
  EXPECT_EQ(read("Content-Length: 18446744073709551616\r\n\r\n" + good), (Events{"! oversize", ping}));
  EXPECT_EQ(read("Content-Length: " + std::string(100, '9') + "\r\n\r\n" + good), (Events{"! oversize", ping}));
}

TEST(ContentLength, AnOversizePayloadIsSkippedAsItStreamsBy) {
  ContentLengthDecoder decoder;
  StreamDriver driver(decoder);
  driver.feed("Content-Length: 20000000\r\n\r\n");
  for (int i = 0; i < 200; ++i) driver.feed(std::string(100'000, 'x'));
  driver.feed(good);
  EXPECT_EQ(driver.events(), (Events{"! oversize", ping}));
  EXPECT_LE(driver.most_held(), max_header);
}

TEST(ContentLength, TheFrameBehindAnOversizePayloadIsExactWhateverThePayloadEndsWith) {
  for (const std::string end :
       {"X: y\r\nContent-Type: a/b\r\n", "\"Content-Length: 7", "Content-Length: 7\r\n", "Content-"}) {
    std::string payload(max_body + 1 - end.size(), ' ');
    payload += end;
    EXPECT_EQ(events_of<ContentLengthDecoder>(framed(payload) + good), (Events{"! oversize", ping})) << end;
  }
}

TEST(ContentLength, AHeaderBlockOf8192BytesIsTheLongest) {
  const std::string length = "Content-Length: 2\r\n";
  EXPECT_EQ(read(header_line_of(8192 - length.size() - 2) + length + "\r\n{}"), Events{"{}"});
  EXPECT_EQ(read(header_line_of(8193 - length.size() - 2) + length + "\r\n{}" + good),
            (Events{"! header-too-large", ping}));
}

TEST(ContentLength, AHeaderTooLargeIsReportedAtByte8192) {
  const std::string header = "X: " + std::string(10'000, 'x');
  EXPECT_EQ(said_after(header.substr(0, 8191)), Events{});
  EXPECT_EQ(said_after(header.substr(0, 8192)), Events{"! header-too-large"});
}

TEST(ContentLength, TheRestOfAHeaderTooLargeAndTheBodyItAnnouncesAreSkipped) {
  const std::string body = "[\"not answered\"]";
  for (const std::size_t size : {8192U, 8200U, 20'000U, 100'000U}) {
    EXPECT_EQ(read(header_line_of(size) + framed(body) + good), (Events{"! header-too-large", ping})) << size;
    EXPECT_EQ(read("Content-Length: 16\r\n" + header_line_of(size) + "\r\n" + body + good),
              (Events{"! header-too-large", ping}))
        << size;
  }
  for (const std::size_t size : {8192U, 8193U, 8200U, 20'000U}) {
    EXPECT_EQ(read(std::string(size, 'x') + ": y\r\n" + framed(body) + good), (Events{"! header-too-large", ping}))
        << size;
  }
  std::string many_lines;
  while (many_lines.size() < 50'000) many_lines += "X: y\r\n";
  EXPECT_EQ(read(many_lines + framed(body) + good), (Events{"! header-too-large", ping}));
}

TEST(ContentLength, AHeaderTooLargeWithoutALengthIsOneFault) {
  EXPECT_EQ(read(header_line_of(9000) + "\r\n{}" + good), (Events{"! header-too-large", ping}));
  EXPECT_EQ(read(std::string(9000, 'x') + "\r\n\r\n{}" + good), (Events{"! header-too-large", ping}));
}

TEST(ContentLength, AnythingElseThatLongIsJunkAndReportedByByte8192) {
  const std::string junk = "not a header " + std::string(20'000, 'x');
  EXPECT_EQ(said_after(junk.substr(0, 8191)), Events{});
  EXPECT_EQ(said_after(junk.substr(0, 8192)), Events{"! malformed-header"});
  EXPECT_EQ(read(junk + good), (Events{"! malformed-header", ping}));
  EXPECT_EQ(read("X: y\r\n" + junk + good), (Events{"! malformed-header", ping}));
}

TEST(ContentLength, ABodyThatIsNotJsonIsOneFault) {
  for (const std::string body :
       {"", " ", "{", "{}x", "nope", "\xEF\xBB\xBF{}", "\"\xFF\"", "\"\xC3\"", "{\"a\":\"\xED\xA0\x80\"}"}) {
    EXPECT_EQ(read(framed(body) + good), (Events{"! invalid-json", ping})) << body;
  }
}

TEST(ContentLength, TheEndOfTheStreamInsideAFrameIsAFault) {
  for (std::size_t size = 1; size < good.size(); ++size) {
    EXPECT_EQ(read(good + good.substr(0, size)), (Events{ping, "! content-length-mismatch"})) << size;
  }
}

TEST(ContentLength, TheEndOfTheStreamInsideJunkIsAFault) {
  EXPECT_EQ(read(good + "{\"no\":\"header\"}"), (Events{ping, "! malformed-header"}));
  EXPECT_EQ(read(good + " "), (Events{ping, "! malformed-header"}));
}

TEST(ContentLength, EveryWholeFrameBeforeTheEndIsDelivered) {
  ContentLengthDecoder decoder;
  StreamDriver driver(decoder);
  driver.feed(good + good + good);
  driver.finish();
  EXPECT_EQ(driver.events(), (Events{ping, ping, ping}));
  EXPECT_EQ(decoder.held().size(), 0U);
}

TEST(ContentLength, AFrameIsBegunByItsFirstByteAndEndsWithItsLast) {
  ContentLengthDecoder decoder;
  StreamDriver driver(decoder);
  EXPECT_FALSE(decoder.inside_frame());
  for (std::size_t i = 0; i + 1 < good.size(); ++i) {
    driver.feed(good.substr(i, 1));
    EXPECT_TRUE(decoder.inside_frame()) << i;
    EXPECT_EQ(decoder.frames_begun(), 0U);
  }
  driver.feed("}");
  EXPECT_FALSE(decoder.inside_frame());
  driver.feed(good + "C");
  EXPECT_TRUE(decoder.inside_frame());
  EXPECT_EQ(decoder.frames_begun(), 2U);
}

TEST(ContentLength, SkippingIsNotInsideAFrame) {
  for (const std::string fault :
       {"junk\r\n more", "Content-Length: 99999999\r\n\r\nabc", "Content-Length: 1\r\n\r\nx and more"}) {
    ContentLengthDecoder decoder;
    StreamDriver driver(decoder);
    driver.feed(fault);
    EXPECT_FALSE(decoder.inside_frame()) << fault;
    driver.finish();
    EXPECT_EQ(driver.events().size(), 1U) << fault;
  }
}

TEST(ContentLength, BytesOfATimedOutFrameThatArriveLateAreSkippedSilently) {
  for (std::size_t size = 1; size < good.size(); ++size) {
    ContentLengthDecoder decoder;
    StreamDriver driver(decoder);
    driver.feed(good + good.substr(0, size));
    const std::uint64_t partial = decoder.frames_begun();
    decoder.drop_partial();
    EXPECT_FALSE(decoder.inside_frame());
    EXPECT_EQ(decoder.held().size(), 0U);
    EXPECT_NE(decoder.frames_begun(), partial);
    driver.feed(good.substr(size) + good);
    driver.finish();
    EXPECT_EQ(driver.events(), (Events{ping, ping})) << size;
  }
}

TEST(ContentLength, DroppingAPartialFrameWhenThereIsNoneChangesNothing) {
  ContentLengthDecoder decoder;
  StreamDriver driver(decoder);
  driver.feed(good);
  decoder.drop_partial();
  driver.feed("junk\r\n" + good);
  EXPECT_EQ(driver.events(), (Events{ping, "! malformed-header", ping}));
}

// What the log is told about the one fault of a stream.
std::pair<std::uint64_t, std::optional<std::uint64_t>> extent_of_fault(const std::string& stream) {
  ContentLengthDecoder decoder;
  StreamDriver driver(decoder);
  driver.feed(stream);
  driver.finish();
  EXPECT_EQ(std::ranges::count_if(driver.events(), [](const auto& event) { return event.starts_with("! "); }), 1);
  return {decoder.fault_extent().bytes, decoder.fault_extent().announced};
}

TEST(ContentLength, TellsHowMuchOfABrokenFrameThereWas) {
  using Told = std::pair<std::uint64_t, std::optional<std::uint64_t>>;
  constexpr auto unknown = std::nullopt;
  EXPECT_EQ(extent_of_fault("X: y\r\nnonsense\r\n" + good), Told(16, unknown)) << "up to the end of the line";
  EXPECT_EQ(extent_of_fault("X: y\r\n\r\n"), Told(8, unknown));
  EXPECT_EQ(extent_of_fault("Content-Length: 99999999\r\n\r\nabc"), Told(99'999'999, unknown));
  EXPECT_EQ(extent_of_fault("Content-Length: 5\r\n" + header_line_of(9000)), Told(max_header, 5));
  EXPECT_EQ(extent_of_fault("Content-Length: 500\r\n\r\n{}" + good), Told(2, 500)) << "a block inside the body";
  EXPECT_EQ(extent_of_fault(good + "Content-Length: 500\r\n\r\n{"), Told(1, 500)) << "the end inside the body";
  EXPECT_EQ(extent_of_fault(good + "Content-Length: 500\r\nX"), Told(22, 500)) << "the end inside the header";
  EXPECT_EQ(extent_of_fault("Content-Len"), Told(11, unknown));
}

TEST(ContentLength, TellsHowMuchThereIsOfAPartialFrame) {
  ContentLengthDecoder decoder;
  StreamDriver driver(decoder);
  driver.feed(good + "Content-Length: 500");
  EXPECT_EQ(decoder.partial_extent().bytes, 19U);
  EXPECT_EQ(decoder.partial_extent().announced, std::nullopt);
  driver.feed("\r\n\r\n{\"a\"");
  EXPECT_EQ(decoder.partial_extent().bytes, 4U);
  EXPECT_EQ(decoder.partial_extent().announced, 500U);
}

TEST(ContentLength, EveryFaultHasItsWord) {
  EXPECT_EQ(reason_of(Fault::malformed_header), "malformed-header");
  EXPECT_EQ(reason_of(Fault::length_mismatch), "content-length-mismatch");
  EXPECT_EQ(reason_of(Fault::oversize), "oversize");
  EXPECT_EQ(reason_of(Fault::header_too_large), "header-too-large");
  EXPECT_EQ(reason_of(Fault::unsupported_content_type), "unsupported-content-type");
  EXPECT_EQ(reason_of(Fault::bad_charset), "bad-charset");
}

TEST(ContentLengthEncoder, WritesTheLengthAndNothingElse) {
  std::array<char, Encoder::most_bytes> out{};
  ContentLengthEncoder encoder;
  const std::size_t size = encoder.begin(out.data(), 1234567);
  EXPECT_EQ(std::string_view(out.data(), size), "Content-Length: 1234567\r\n\r\n");
  EXPECT_EQ(encoder.end(out.data(), {}), 0U);
}

TEST(ContentLengthEncoder, WritesWhatTheDecoderReads) {
  for (const std::size_t size : {2U, 9U, 10U, 99U, 100U, 65'536U}) {
    const std::string body = "\"" + std::string(size - 2, 'x') + "\"";
    std::string out(Encoder::most_bytes, '\0');
    out.resize(ContentLengthEncoder().begin(out.data(), body.size()));
    EXPECT_EQ(events_of<ContentLengthDecoder>(out + body), Events{body});
  }
}

}  // namespace
}  // namespace duet::framing
