#include "duet/framing/websocket.h"

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "duet/framing/stream_driver_test.h"
#include "duet/framing/websocket_frames_test.h"

namespace duet::framing {
namespace {

using Events = std::vector<std::string>;

enum class Way { feed, in_place, read };

void give(StreamDriver& driver, Way way, std::string_view bytes) {
  if (way == Way::feed) return driver.feed(bytes);
  way == Way::in_place ? driver.feed_in_place(bytes) : driver.read(bytes);
}

// Whole, byte by byte, and in two pieces at every point: always the same, and what the rules say.
Events read(std::string_view stream, std::size_t max_message = max_body) {
  const Events expected = SlowWebSocketReader(stream, is_json, max_message).events();
  for (const Way way : {Way::feed, Way::in_place, Way::read}) {
    WebSocketDecoder slow(max_message);
    StreamDriver slow_driver(slow);
    for (const char& byte : stream) give(slow_driver, way, {&byte, 1});
    EXPECT_EQ(slow_driver.events(), expected) << "byte by byte";
    const std::size_t step = 1 + stream.size() / 2000;
    for (std::size_t at = 0; at <= stream.size(); at += step) {
      WebSocketDecoder decoder(max_message);
      StreamDriver driver(decoder);
      driver.feed_in_place(stream.substr(0, at));
      give(driver, way, stream.substr(at));
      EXPECT_EQ(driver.events(), expected) << "split at " << at;
      if (driver.events() != expected) return driver.take_events();
    }
  }
  return expected;
}

std::string hex(std::string_view digits) {
  std::string bytes;
  for (std::size_t i = 0; i < digits.size(); i += 3) {
    bytes += static_cast<char>(std::stoi(std::string(digits.substr(i, 2)), nullptr, 16));
  }
  return bytes;
}

TEST(WebSocketDecoder, ReadsTheExamplesOfTheStandard) {
  const auto accept_all = [](std::string_view) { return true; };
  const auto events = [&](const std::string& bytes) {
    WebSocketDecoder decoder;
    StreamDriver driver(decoder, accept_all);
    driver.feed(bytes);
    return driver.take_events();
  };
  EXPECT_EQ(events(hex("81 85 37 fa 21 3d 7f 9f 4d 51 58")), (Events{"Hello"}));
  EXPECT_EQ(events(hex("89 85 37 fa 21 3d 7f 9f 4d 51 58")), (Events{"<ping Hello>"}));
  EXPECT_EQ(events(hex("8a 85 37 fa 21 3d 7f 9f 4d 51 58")), (Events{}));
  EXPECT_EQ(events(hex("81 05 48 65 6c 6c 6f")), (Events{"! protocol-error"})) << "unmasked, as only a server may";
  EXPECT_EQ(events(text_frame("Hello")), (Events{"Hello"}));
  EXPECT_EQ(text_frame("Hello"), hex("81 85 37 fa 21 3d 7f 9f 4d 51 58"));
}

TEST(WebSocketDecoder, AMessageMayComeInAnyNumberOfFramesWithControlFramesBetween) {
  EXPECT_EQ(read(text_frame("[1]") + text_frame("2")), (Events{"[1]", "2"}));
  EXPECT_EQ(read(first_frame("[") + next_frame("1") + last_frame("]") + text_frame("2")), (Events{"[1]", "2"}));
  EXPECT_EQ(read(first_frame("[") + ping("x") + next_frame("1") + pong("y") + last_frame("]")),
            (Events{"<ping x>", "[1]"}));
  EXPECT_EQ(read(first_frame("") + next_frame("") + next_frame("[1]") + next_frame("") + last_frame("")),
            (Events{"[1]"}));
  EXPECT_EQ(read(first_frame("\"\xE2") + ping() + last_frame("\x82\xAC\"")), (Events{"<ping >", "\"€\""}));
}

TEST(WebSocketDecoder, EveryMaskAndEveryLengthIsUnmasked) {
  std::mt19937 random(1);
  for (std::size_t size = 0; size < 300; ++size) {
    std::string text(size, 'x');
    for (char& each : text) each = static_cast<char>(' ' + random() % 90);
    ClientFrame frame{.payload = text};
    for (std::uint8_t& each : frame.mask) each = static_cast<std::uint8_t>(random());
    for (const std::size_t split : {std::size_t{0}, random() % frame.bytes().size()}) {
      WebSocketDecoder decoder;
      StreamDriver driver(decoder, [](std::string_view) { return true; });
      driver.feed_in_place(frame.bytes().substr(0, split));
      driver.feed_in_place(frame.bytes().substr(split));
      ASSERT_EQ(driver.events(), Events{text}) << size << " split at " << split;
    }
  }
}

TEST(WebSocketDecoder, AnEmptyMessageIsNoJson) {
  EXPECT_EQ(read(text_frame("") + text_frame("1")), (Events{"! invalid-json", "1"}));
  EXPECT_EQ(read(first_frame("") + last_frame("") + text_frame("1")), (Events{"! invalid-json", "1"}));
}

TEST(WebSocketDecoder, TextThatIsNotUtf8EndsIt) {
  EXPECT_EQ(read(text_frame("\"\xFF\"") + text_frame("1")), (Events{"! not-utf8"}));
  EXPECT_EQ(read(first_frame("\"\xED") + last_frame("\xA0\x80\"") + text_frame("1")), (Events{"! not-utf8"}));
  EXPECT_EQ(read(text_frame("nope \xF0\x9F\x98") + close(1007)), (Events{"! not-utf8", "<close>"}));
}

TEST(WebSocketDecoder, ALargeMessageIsToldOnceAndSkipped) {
  const std::string large(100, '1');
  const Events expected{"! oversize", "2"};
  EXPECT_EQ(read(text_frame(large) + text_frame("2"), 99), expected);
  EXPECT_EQ(read(first_frame(large) + next_frame("1") + last_frame("") + text_frame("2"), 99), expected);
  EXPECT_EQ(
      read(first_frame(large.substr(50)) + next_frame(large.substr(50)) + last_frame(large) + text_frame("2"), 99),
      expected);
  EXPECT_EQ(read(first_frame(large) + ping("p") + last_frame(large) + text_frame("2"), 99),
            (Events{"! oversize", "<ping p>", "2"}));
  EXPECT_EQ(read(text_frame(large) + text_frame("2"), 100), (Events{large, "2"}));
  EXPECT_EQ(read(first_frame(large.substr(1)) + last_frame("1") + text_frame("2"), 100), (Events{large, "2"}));
}

TEST(WebSocketDecoder, ThatAMessageIsTooLargeIsKnownFromItsLength) {
  WebSocketDecoder decoder;
  StreamDriver driver(decoder);
  driver.feed(ClientFrame{.announced = max_body + 1}.bytes());
  EXPECT_EQ(driver.events(), (Events{"! oversize"}));
  EXPECT_EQ(decoder.fault_extent().bytes, max_body + 1);
  for (int i = 0; i < 1000; ++i) driver.read(std::string(1000, '\0'));
  EXPECT_LE(driver.most_held(), 20U);
  EXPECT_FALSE(decoder.inside_frame());
}

TEST(WebSocketDecoder, AMessageThatIsSkippedMustBeUtf8Too) {
  const std::string large(100, '1');
  EXPECT_EQ(read(text_frame(large + "\xFF") + text_frame("2"), 99), (Events{"! oversize", "! not-utf8"}));
  EXPECT_EQ(read(first_frame("\xFF") + last_frame(large) + text_frame("2"), 99), (Events{"! oversize", "! not-utf8"}));
  EXPECT_EQ(read(first_frame(large + "\xE2") + next_frame("\x82") + last_frame("\xAC") + text_frame("2"), 99),
            (Events{"! oversize", "2"}));
  EXPECT_EQ(read(first_frame(large + "\xE2") + last_frame("\x82") + close(), 99),
            (Events{"! oversize", "! not-utf8", "<close>"}));
}

TEST(WebSocketDecoder, BehindAFaultNothingComesButTheClose) {
  EXPECT_EQ(read(ClientFrame{.opcode = 3}.bytes() + text_frame("1") + ping() + close(1000)),
            (Events{"! protocol-error", "<close>"}));
  EXPECT_EQ(read(ClientFrame{.opcode = 2, .payload = "xyz"}.bytes() + text_frame("1") + close(1003)),
            (Events{"! binary-message", "<close>"}));
  EXPECT_EQ(read(ClientFrame{.payload = "1", .is_masked = false}.bytes() + close(1002)),
            (Events{"! protocol-error", "<close>"}));
  EXPECT_EQ(read(ClientFrame{.payload = "1", .length_size = 8, .announced = std::uint64_t{1} << 63U}.bytes() + close()),
            (Events{"! protocol-error"}));
}

TEST(WebSocketDecoder, AFaultIsToldByTheFirstByteThatShowsIt) {
  WebSocketDecoder decoder;
  StreamDriver driver(decoder);
  driver.feed("\x82");
  EXPECT_EQ(driver.events(), (Events{"! binary-message"}));
}

TEST(WebSocketDecoder, AFaultyCloseIsACloseAllTheSame) {
  EXPECT_EQ(read(close("x")), (Events{"! protocol-error", "<close>"}));
  EXPECT_EQ(read(close(1005)), (Events{"! protocol-error", "<close>"}));
  EXPECT_EQ(read(close(1000, "\xFF")), (Events{"! not-utf8", "<close>"}));
  EXPECT_EQ(read(close(std::string(126, 'x'))), (Events{"! protocol-error", "<close>"}));
}

TEST(WebSocketDecoder, AMessageInManyTinyFramesIsHeldOnce) {
  constexpr std::size_t size = 20'000;
  WebSocketDecoder decoder(size);
  StreamDriver driver(decoder, [](std::string_view) { return true; });
  for (std::size_t i = 0; i + 1 < size; ++i) driver.read(i == 0 ? first_frame("x") : next_frame("x"));
  EXPECT_LE(driver.most_held(), size + 200);
  EXPECT_TRUE(decoder.inside_frame());
  EXPECT_EQ(decoder.partial_extent().bytes, size - 1);
  driver.read(last_frame("x"));
  EXPECT_EQ(driver.events(), Events{std::string(size, 'x')});
  EXPECT_EQ(decoder.held().size(), 0U);
  EXPECT_TRUE(decoder.is_empty());
}

TEST(WebSocketDecoder, ManyTinyFramesAtOnceTakeTimeInProportion) {
  std::string stream = first_frame("[");
  for (int i = 0; i < 200'000; ++i) stream += next_frame(i % 2 == 0 ? "" : " ");
  stream += last_frame("]");
  WebSocketDecoder decoder;
  StreamDriver driver(decoder);
  driver.feed_in_place(stream);
  ASSERT_EQ(driver.events().size(), 1U);
  EXPECT_EQ(driver.events()[0].size(), 100'002U);
}

TEST(WebSocketDecoder, APartialMessageCanBeGivenUpAndTheNextIsTaken) {
  for (std::size_t cut = 7; cut < first_frame("[1,").size() + 5; ++cut) {
    WebSocketDecoder decoder;
    StreamDriver driver(decoder);
    const std::string stream = first_frame("[1,") + last_frame("2]") + text_frame("3");
    driver.feed(stream.substr(0, cut));
    ASSERT_TRUE(decoder.inside_frame()) << cut;
    decoder.drop_partial();
    EXPECT_FALSE(decoder.inside_frame());
    EXPECT_LE(decoder.held().size(), 5U) << "the start of a header has to stay";
    driver.read(stream.substr(cut));
    EXPECT_EQ(driver.events(), Events{"3"}) << cut;
  }
}

TEST(WebSocketDecoder, AWholeMessageInBytesThatMayBeChangedIsNotCopied) {
  WebSocketDecoder decoder;
  std::string bytes = text_frame("[1,2,3]") + text_frame("4");
  decoder.feed_in_place(bytes);
  const std::optional<Frame> frame = decoder.next();
  ASSERT_TRUE(frame && frame->body);
  EXPECT_EQ(*frame->body, "[1,2,3]");
  EXPECT_EQ(frame->body->data(), bytes.data() + 6);
}

TEST(WebSocketDecoder, AnyMixtureOfFramesIsReadByTheRulesHoweverItArrives) {
  std::mt19937 random(4);
  const std::vector<std::string> pieces = {text_frame("1"),
                                           text_frame("[\"é€\"]"),
                                           text_frame(std::string(40, ' ') + '2'),
                                           text_frame("nope"),
                                           text_frame(std::string(70, '7')),
                                           first_frame("["),
                                           first_frame(""),
                                           next_frame("1,"),
                                           next_frame(std::string(30, ' ')),
                                           last_frame("1]"),
                                           last_frame(""),
                                           ping("are you there"),
                                           pong("yes"),
                                           close(),
                                           close(1000, "done"),
                                           ClientFrame{.payload = "[5]", .length_size = 2, .announced = 200}};
  const std::vector<std::string> faults = {text_frame("\xFF"),
                                           next_frame("\xE2\x82"),
                                           ClientFrame{.opcode = 2, .payload = "b"},
                                           ClientFrame{.opcode = 5},
                                           ClientFrame{.payload = "1", .is_masked = false},
                                           ClientFrame{.payload = "1", .reserved = 1},
                                           ClientFrame{.payload = "1", .length_size = 2},
                                           ClientFrame{.opcode = 9, .is_last = false},
                                           ping(std::string(126, 'x')),
                                           close("x"),
                                           "\x81",
                                           "abc"};
  for (int round = 0; round < 4000; ++round) {
    std::string stream;
    for (auto i = 1 + random() % 12; i > 0; --i) {
      stream += random() % 12 == 0 ? faults[random() % faults.size()] : pieces[random() % pieces.size()];
    }
    const Events expected = SlowWebSocketReader(stream, is_json, 64).events();
    for (const std::size_t largest : {std::size_t{1}, std::size_t{9}, stream.size()}) {
      WebSocketDecoder decoder(64);
      StreamDriver driver(decoder);
      for (std::string_view rest = stream; !rest.empty();) {
        const std::size_t count = std::min<std::size_t>(rest.size(), 1 + random() % largest);
        give(driver, Way(random() % 3), rest.substr(0, count));
        rest.remove_prefix(count);
      }
      ASSERT_EQ(driver.events(), expected) << testing::PrintToString(stream);
      ASSERT_LE(driver.most_held(), 64U + 140U);
    }
  }
}

TEST(WebSocketEncoder, UsesTheShortestLength) {
  WebSocketEncoder encoder;
  const auto header = [&](std::size_t size) {
    char room[Encoder::most_bytes];
    return std::string(room, encoder.begin(room, size));
  };
  EXPECT_EQ(header(0), hex("81 00"));
  EXPECT_EQ(header(125), hex("81 7d"));
  EXPECT_EQ(header(126), hex("81 7e 00 7e"));
  EXPECT_EQ(header(65535), hex("81 7e ff ff"));
  EXPECT_EQ(header(65536), hex("81 7f 00 00 00 00 00 01 00 00"));
  EXPECT_EQ(header(0x123456789A), hex("81 7f 00 00 00 12 34 56 78 9a"));
}

TEST(WebSocketEncoder, ControlFramesAreUnmasked) {
  EXPECT_EQ(ping_frame(), hex("89 00"));
  EXPECT_EQ(pong_frame("Hello"), hex("8a 05 48 65 6c 6c 6f"));
  EXPECT_EQ(close_frame({}), hex("88 00"));
  EXPECT_EQ(close_frame(close_payload(1001, "x")), hex("88 03 03 e9 78"));
  EXPECT_EQ(close_payload(1000, std::string(200, 'x')).size(), 125U);
  EXPECT_EQ(close_payload(1000, std::string(122, 'x') + "é").size(), 124U) << "no character is cut in two";
}

}  // namespace
}  // namespace duet::framing
