// What a WebSocket server has to make of a client's frames, as a table: the behaviours that the usual conformance suite
// asks for, by its section numbers, without compression. A message that arrives stands for its echo; text that must be
// UTF-8 is checked when it is refused. Every case is read whole, byte by byte and in random portions.

#include <algorithm>
#include <initializer_list>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "duet/framing/stream_driver_test.h"
#include "duet/framing/websocket.h"
#include "duet/framing/websocket_frames_test.h"

namespace duet::framing {
namespace {

using Events = std::vector<std::string>;

const std::string protocol_error = "! protocol-error";
const std::string binary_message = "! binary-message";
const std::string not_utf8 = "! not-utf8";

struct Case {
  std::string name;
  std::string frames;
  Events expected;
};
using Cases = std::vector<Case>;

Events events_of(const Case& each, std::size_t largest, std::mt19937& random) {
  WebSocketDecoder decoder;
  StreamDriver driver(decoder, is_utf8_slowly);
  for (std::string_view rest = each.frames; !rest.empty();) {
    const std::size_t count = std::min<std::size_t>(rest.size(), largest == 0 ? rest.size() : 1 + random() % largest);
    random() % 2 == 0 ? driver.feed_in_place(rest.substr(0, count)) : driver.read(rest.substr(0, count));
    rest.remove_prefix(count);
  }
  return driver.take_events();
}

void expect_all(const Cases& cases) {
  std::mt19937 random(1);
  for (const Case& each : cases) {
    const bool is_long = each.frames.size() > 100'000;
    for (const std::size_t largest : {0U, is_long ? 997U : 1U, is_long ? 65'536U : 7U}) {
      EXPECT_TRUE(events_of(each, largest, random) == each.expected) << each.name << " in portions of " << largest;
    }
  }
}

std::string frame(std::uint8_t opcode, std::string payload = {}, std::uint8_t reserved = 0) {
  return ClientFrame{.opcode = opcode, .payload = std::move(payload), .reserved = reserved};
}

std::string unfinished(std::uint8_t opcode, std::string payload = {}) {
  return ClientFrame{.opcode = opcode, .payload = std::move(payload), .is_last = false};
}

std::string in_fragments(const std::string& text, std::size_t size) {
  std::string frames;
  for (std::size_t at = 0; at < text.size() || at == 0; at += size) {
    frames += ClientFrame{.opcode = static_cast<std::uint8_t>(at == 0 ? 1 : 0),
                          .payload = text.substr(at, size),
                          .is_last = at + size >= text.size()};
  }
  return frames;
}

std::string times(int count, const std::string& text) {
  std::string all;
  for (int i = 0; i < count; ++i) all += text;
  return all;
}

TEST(WebSocketConformance, Section1Framing) {
  Cases cases;
  for (const std::size_t size : {0U, 125U, 126U, 127U, 128U, 65535U, 65536U}) {
    const std::string text(size, '*');
    cases.push_back({"1.1 text of " + std::to_string(size), text_frame(text), {text}});
    cases.push_back({"1.2 binary of " + std::to_string(size), frame(2, text), {binary_message}});
  }
  expect_all(cases);
}

TEST(WebSocketConformance, Section2PingsAndPongs) {
  const std::string odd("\0\xFF\xFE\xFD\xFC\xFB\0\xFF", 8);
  const std::string longest(125, '\xFE');
  Events ten;
  std::string pings;
  for (int i = 0; i < 10; ++i) {
    ten.push_back("<ping payload-" + std::to_string(i) + '>');
    pings += ping("payload-" + std::to_string(i));
  }
  expect_all({{"2.1 without payload", ping(), {"<ping >"}},
              {"2.2 with one", ping("Hello, world!"), {"<ping Hello, world!>"}},
              {"2.3 that is no text", ping(odd), {"<ping " + odd + '>'}},
              {"2.4, 2.6 the longest", ping(longest), {"<ping " + longest + '>'}},
              {"2.5 too long", ping(longest + '\xFE'), {protocol_error}},
              {"2.7 a Pong that nobody asked for", pong(), {}},
              {"2.8 with payload", pong("unsolicited"), {}},
              {"2.9 and a Ping", pong("unsolicited") + ping("ours"), {"<ping ours>"}},
              {"2.10, 2.11 ten", pings, ten}});
}

TEST(WebSocketConformance, Section3ReservedBits) {
  const std::string small = "small payload";
  Cases cases = {{"3.1", frame(1, small, 4), {protocol_error}},
                 {"3.5", frame(2, small, 4), {protocol_error}},
                 {"3.6", frame(9, small, 5), {protocol_error}},
                 {"3.7", frame(8, {}, 6), {protocol_error, "<close>"}}};
  for (std::uint8_t bits = 1; bits < 8; ++bits) {
    cases.push_back({"3.2 to 3.4", text_frame(small) + frame(1, small, bits) + ping(), {small, protocol_error}});
  }
  expect_all(cases);
}

TEST(WebSocketConformance, Section4Opcodes) {
  Cases cases;
  for (const std::uint8_t opcode : std::initializer_list<std::uint8_t>{3, 4, 5, 6, 7, 11, 12, 13, 14, 15}) {
    const std::string name = "opcode " + std::to_string(opcode);
    cases.push_back({"4.1 " + name, frame(opcode), {protocol_error}});
    cases.push_back({"4.2 with payload", frame(opcode, "reserved opcode payload"), {protocol_error}});
    cases.push_back({"4.3 behind a text", text_frame("Hello") + frame(opcode) + ping(), {"Hello", protocol_error}});
    cases.push_back({"4.4 both", text_frame("Hello") + frame(opcode, "payload") + ping(), {"Hello", protocol_error}});
  }
  expect_all(cases);
}

TEST(WebSocketConformance, Section5Fragments) {
  const std::string start = first_frame("fragment1");
  const std::string end = last_frame("fragment2");
  const std::string both = "fragment1fragment2";
  const std::string five =
      first_frame("1") + next_frame("2") + ping("p") + next_frame("3") + next_frame("4") + ping("q") + last_frame("5");
  expect_all({{"5.1 a Ping", unfinished(9, "fragment1") + end, {protocol_error}},
              {"5.2 a Pong", unfinished(10, "fragment1") + end, {protocol_error}},
              {"5.3 to 5.5 a text", start + end, {both}},
              {"5.6 to 5.8 with a Ping", start + ping("ping") + end, {"<ping ping>", both}},
              {"5.9 to 5.11 nothing to continue", last_frame("x") + text_frame("Hello"), {protocol_error}},
              {"5.12 to 5.14 unfinished", next_frame("x") + text_frame("Hello"), {protocol_error}},
              {"5.15 behind a message", start + end + next_frame("x") + text_frame("Hello"), {both, protocol_error}},
              {"5.16", times(2, next_frame("1") + first_frame("2") + last_frame("3")), {protocol_error}},
              {"5.17", times(2, last_frame("1") + first_frame("2") + last_frame("3")), {protocol_error}},
              {"5.18 a message inside another", start + text_frame("fragment2"), {protocol_error}},
              {"5.18 a binary one", start + frame(2, "fragment2"), {protocol_error}},
              {"5.19, 5.20 five", five, {"<ping p>", "<ping q>", "12345"}}});
}

TEST(WebSocketConformance, Section6ValidText) {
  const std::string hello = "Hello-µ@ßöäüàá-UTF-8!!";
  const std::string kosme = "\xCE\xBA\xE1\xBD\xB9\xCF\x83\xCE\xBC\xCE\xB5";
  Cases cases = {
      {"6.1.1 empty", text_frame(""), {""}},
      {"6.1.2 three empty", first_frame("") + next_frame("") + last_frame(""), {""}},
      {"6.1.3", first_frame("") + next_frame("middle frame payload") + last_frame(""), {"middle frame payload"}},
      {"6.2.1", text_frame(hello), {hello}},
      {"6.2.2", first_frame(hello.substr(0, 12)) + last_frame(hello.substr(12)), {hello}},
      {"6.2.3", in_fragments(hello, 1), {hello}},
      {"6.2.4", in_fragments(kosme, 1), {kosme}}};
  const Events valid = {std::string(1, '\0'),
                        "\x7F",
                        "\xC2\x80",
                        "\xDF\xBF",
                        "\xE0\xA0\x80",
                        "\xED\x9F\xBF",
                        "\xEE\x80\x80",
                        "\xEF\xBF\xBD",
                        "\xEF\xBF\xBE",
                        "\xEF\xBF\xBF",
                        "\xF0\x90\x80\x80",
                        "\xF4\x8F\xBF\xBF",
                        "\xEF\xBF\xB9",
                        "\xEF\xBF\xBA",
                        "\xEF\xBF\xBB",
                        "\xEF\xBF\xBC",
                        kosme};
  for (const std::string& text : valid) {
    cases.push_back({"6.5, 6.7, 6.9, 6.11, 6.22, 6.23", text_frame(text), {text}});
    cases.push_back({"the same in fragments", in_fragments(text, 1), {text}});
  }
  for (unsigned plane = 1; plane <= 16; ++plane) {  // the last two of each plane are no characters, and still text
    for (const char last : {'\xBE', '\xBF'}) {
      const std::string text{static_cast<char>(0xF0 | plane >> 2), static_cast<char>(0x8F | (plane & 3) << 4), '\xBF',
                             last};
      cases.push_back({"6.22", text_frame(text), {text}});
    }
  }
  for (std::size_t size = 0; size <= kosme.size(); ++size) {
    const std::string part = kosme.substr(0, size);
    cases.push_back({"6.6", text_frame(part), {is_utf8_slowly(part) ? part : not_utf8}});
  }
  expect_all(cases);
}

TEST(WebSocketConformance, Section6TextThatIsNotUtf8) {
  Cases cases;
  const Events foreign = {
      // 6.8, 6.10: five and six bytes, and beyond
      "\xF8\x88\x80\x80\x80", "\xFC\x84\x80\x80\x80\x80", "\xF7\xBF\xBF\xBF", "\xFB\xBF\xBF\xBF\xBF",
      "\xFD\xBF\xBF\xBF\xBF\xBF",
      // 6.11.5
      "\xF4\x90\x80\x80",
      // 6.12: nothing to continue
      "\x80", "\xBF", "\x80\xBF", "\x80\xBF\x80", "\x80\xBF\x80\xBF", "\x80\xBF\x80\xBF\x80",
      "\x80\xBF\x80\xBF\x80\xBF",
      // 6.14: the last byte is missing
      "\xC0", "\xE0\x80", "\xF0\x80\x80", "\xF8\x80\x80\x80", "\xFC\x80\x80\x80\x80", "\xDF", "\xEF\xBF",
      "\xF7\xBF\xBF", "\xFB\xBF\xBF\xBF", "\xFD\xBF\xBF\xBF\xBF",
      // 6.15
      "\xC0\xE0\x80\xF0\x80\x80\xF8\x80\x80\x80\xFC\x80\x80\x80\x80\xDF\xEF\xBF\xF7\xBF\xBF\xFB\xBF\xBF\xBF\xFD\xBF\xBF"
      "\xBF\xBF",
      // 6.16: never in a text
      "\xFE", "\xFF", "\xFE\xFE\xFF\xFF",
      // 6.17 to 6.19: longer than need be
      "\xC0\xAF", "\xE0\x80\xAF", "\xF0\x80\x80\xAF", "\xF8\x80\x80\x80\xAF", "\xFC\x80\x80\x80\x80\xAF", "\xC1\xBF",
      "\xE0\x9F\xBF", "\xF0\x8F\xBF\xBF", "\xF8\x87\xBF\xBF\xBF", "\xFC\x83\xBF\xBF\xBF\xBF", "\xC0\x80",
      "\xE0\x80\x80", "\xF0\x80\x80\x80", "\xF8\x80\x80\x80\x80", "\xFC\x80\x80\x80\x80\x80",
      // 6.20, 6.21: surrogates, alone and in pairs
      "\xED\xA0\x80", "\xED\xAD\xBF", "\xED\xAE\x80", "\xED\xAF\xBF", "\xED\xB0\x80", "\xED\xBE\x80", "\xED\xBF\xBF",
      "\xED\xA0\x80\xED\xB0\x80", "\xED\xA0\x80\xED\xBF\xBF", "\xED\xAD\xBF\xED\xB0\x80", "\xED\xAD\xBF\xED\xBF\xBF",
      "\xED\xAE\x80\xED\xB0\x80", "\xED\xAE\x80\xED\xBF\xBF", "\xED\xAF\xBF\xED\xB0\x80", "\xED\xAF\xBF\xED\xBF\xBF"};
  for (const std::string& text : foreign) {
    cases.push_back({"6.8 to 6.21 " + testing::PrintToString(text), text_frame(text), {not_utf8}});
    cases.push_back(
        {"between others", text_frame("Hello") + text_frame("µ" + text + 'x') + ping(), {"Hello", not_utf8}});
    cases.push_back({"6.3, 6.4 in fragments", in_fragments("κόσμε" + text + "edited", 1), {not_utf8}});
  }
  for (int lead = 0xC0; lead <= 0xFD; ++lead) {
    cases.push_back({"6.13 a start alone", text_frame({static_cast<char>(lead), ' '}), {not_utf8}});
  }
  expect_all(cases);
}

TEST(WebSocketConformance, Section7Close) {
  const std::string long_text(256 * 1024, '*');
  Cases cases = {
      {"7.1.1", text_frame("Hello World!") + close(1000), {"Hello World!", "<close 1000 >"}},
      {"7.1.2 two of them", close(1000) + close(1000), {"<close 1000 >", "<close 1000 >"}},
      {"7.1.3 a Ping behind it", close(1000) + ping(), {"<close 1000 >", "<ping >"}},
      {"7.1.4 a text behind it", close(1000) + text_frame("x"), {"<close 1000 >", "x"}},
      {"7.1.5 inside a message", first_frame("f") + close(1000) + last_frame("g"), {"<close 1000 >", "fg"}},
      {"7.1.6", text_frame(long_text) + close(1000) + ping(), {long_text, "<close 1000 >", "<ping >"}},
      {"7.3.1 without payload", close(), {"<close>"}},
      {"7.3.2 of one byte", close("a"), {protocol_error, "<close>"}},
      {"7.3.3 with a code", close(1000), {"<close 1000 >"}},
      {"7.3.4 and a reason", close(1000, "Hello World!"), {"<close 1000 Hello World!>"}},
      {"7.3.5 the longest", close(1000, std::string(123, '*')), {"<close 1000 " + std::string(123, '*') + '>'}},
      {"7.3.6 too long", close(1000, std::string(124, '*')), {protocol_error, "<close>"}},
      {"7.5.1 no UTF-8",
       close(1000,
             "\xCE\xBA\xED\xA0\x80"
             "edited"),
       {not_utf8, "<close>"}}};
  for (const std::uint16_t code : std::initializer_list<std::uint16_t>{
           1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 1014, 3000, 3999, 4000, 4999}) {
    cases.push_back({"7.7", close(code), {"<close " + std::to_string(code) + " >"}});
  }
  for (const std::uint16_t code :
       std::initializer_list<std::uint16_t>{0, 1, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65535}) {
    cases.push_back({"7.9, 7.13 " + std::to_string(code), close(code), {protocol_error, "<close>"}});
    cases.push_back({"with a reason", close(code, "why"), {protocol_error, "<close>"}});
  }
  expect_all(cases);
}

TEST(WebSocketConformance, LengthsThatAreNotInTheirShortestForm) {
  Cases cases;
  for (const std::size_t length : {0U, 1U, 125U, 126U, 65535U}) {
    const std::string text(length, 'x');
    if (length < 126) cases.push_back({"two bytes", ClientFrame{.payload = text, .length_size = 2}, {protocol_error}});
    cases.push_back({"eight bytes", ClientFrame{.payload = text, .length_size = 8}, {protocol_error}});
  }
  cases.push_back(
      {"the top bit", ClientFrame{.length_size = 8, .announced = std::uint64_t{1} << 63U}, {protocol_error}});
  cases.push_back({"all others", ClientFrame{.announced = ~std::uint64_t{0} >> 1U}, {"! oversize"}});
  cases.push_back({"no mask", ClientFrame{.payload = "x", .is_masked = false}, {protocol_error}});
  cases.push_back({"no mask", ClientFrame{.opcode = 9, .is_masked = false}, {protocol_error}});
  expect_all(cases);
}

TEST(WebSocketConformance, Section9LargeMessages) {
  Cases cases;
  for (const std::size_t size : {64U * 1024, 256U * 1024, 1024U * 1024}) {
    const std::string text(size, '*');
    cases.push_back({"9.1 in one frame", text_frame(text), {text}});
    for (const std::size_t fragment : {64U, 256U, 1024U, 4096U, 65536U}) {
      cases.push_back({"9.3 in frames of " + std::to_string(fragment), in_fragments(text, fragment), {text}});
    }
  }
  const std::string largest(max_body, '*');
  cases.push_back({"9.1 the largest", text_frame(largest), {largest}});
  cases.push_back({"9.1 too large", text_frame(largest + '*') + text_frame("next"), {"! oversize", "next"}});
  cases.push_back({"9.3 too large", in_fragments(largest + '*', 1 << 20) + text_frame("next"), {"! oversize", "next"}});
  expect_all(cases);
}

TEST(WebSocketConformance, Section10AMessageInFramesOfThePeersChoice) {
  const std::string text(65536, '*');
  expect_all({{"10.1.1", in_fragments(text, 1300), {text}}});
}

}  // namespace
}  // namespace duet::framing
