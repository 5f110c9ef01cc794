// Linear time and bounded memory, whatever the input. Time is counted in processor time and held against harmless
// bytes read in the same way: a quadratic reader would be thousands of times slower.

#include <algorithm>
#include <ctime>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "duet/framing/content_length.h"
#include "duet/framing/lines.h"
#include "duet/framing/stream_driver_test.h"

namespace duet::framing {
namespace {

constexpr double most_times_slower = 40;
constexpr std::size_t piece = 65'536;

std::string repeated(const std::string& text, std::size_t size) {
  std::string out;
  out.reserve(size + text.size());
  while (out.size() < size) out += text;
  return out;
}

std::string repeated_lines(const std::string& text, std::size_t line_size, const std::string& end, std::size_t size) {
  return repeated(repeated(text, line_size) + end, size);
}

template <typename DecoderType>
double seconds_for(const std::string& stream, std::size_t portion) {
  double best = std::numeric_limits<double>::max();
  for (int i = 0; i < 2; ++i) {
    DecoderType decoder;
    StreamDriver driver(decoder, [](std::string_view body) { return body.starts_with('{'); });
    const std::clock_t start = std::clock();
    for (std::size_t at = 0; at < stream.size(); at += portion)
      driver.feed(std::string_view(stream).substr(at, portion));
    driver.finish();
    best = std::min(best, static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
  }
  return best;
}

std::vector<std::string> hostile_streams(std::size_t size) {
  const std::string no_length = repeated("a: b\r\n", 8000);
  const std::string large = "Content-Length: 10485760\r\n\r\n";
  const std::string overlong = "X: " + std::string(9000, 'x');
  return {
      repeated("\r\n\r\n", size),
      repeated("\r", size),
      repeated("\n", size),
      repeated("!\r\n", size),
      repeated("a: b\r\n", size),
      repeated("a: b\r\n\r\n", size),
      repeated("a", size),
      repeated("Content-Length: 1\r\n", size),
      repeated("Content-Length: 1\r\n\r\n", size),
      repeated(large, size),
      repeated("Content-Length: 99999999\r\n\r\n", size),
      repeated("Content-Length: 1\r\n\r\n{", size),
      repeated("Content-Length: 20\r\n\r\n{", size),
      large + repeated("\r\n\r\n", size),
      large + repeated("\r", size),
      large + repeated("a: b\r\n", size),
      large + repeated("[", size),
      "!\r\n" + repeated(no_length + "\r\n", size),
      "!\r\n" + repeated_lines("Content-Length:", 8000, "\r\n\r\n", size),
      "!\r\n" + repeated_lines("Content-Type:", 8000, "\r\n\r\n", size),
      "!\r\n" + repeated_lines("Content-Type:", 8000, "\r\nX: y\r\n\r\n", size),
      "!\r\n" + repeated_lines("Content-Length: 1", 8000, "\r\n\r\n", size),
      "!\r\n" + repeated_lines("Content-Type: a/b", 8000, "\r\nContent-Length: 1\r\n\r\n", size),
      "!\r\n" + repeated("Content-Length: " + std::string(8000, ' ') + "x\r\n\r\n", size),
      "!\r\n" + repeated("Content-Length: " + std::string(8000, '9') + "x\r\n\r\n", size),
      overlong + repeated("x", size),
      overlong + repeated("Content-Type:", size),
      overlong + "\r\n" + repeated("a: b\r\n", size),
      overlong + "\r\nContent-Type: " + repeated(";", size),
  };
}

void expect_linear(std::size_t size, std::size_t portion) {
  const std::string harmless =
      repeated("Content-Length: 40\r\n\r\n{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}", size);
  const double expected = seconds_for<ContentLengthDecoder>(harmless, portion);
  ASSERT_GT(expected, 0);
  for (const std::string& stream : hostile_streams(size)) {
    const double times = seconds_for<ContentLengthDecoder>(stream, portion) / expected;
    EXPECT_LT(times, most_times_slower) << stream.substr(0, 100);
  }
}

TEST(HostileInput, CostsAboutAsMuchAsHarmlessInputInLargePieces) { expect_linear(1'000'000, piece); }

TEST(HostileInput, CostsAboutAsMuchAsHarmlessInputByteByByte) { expect_linear(80'000, 1); }

TEST(HostileInput, ALargeBodyMayArriveByteByByte) {
  const std::string body = "\"" + std::string(max_body - 2, 'x') + "\"";
  const std::string stream = "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
  EXPECT_EQ(events_of<ContentLengthDecoder>(stream, Arrival::byte_by_byte), std::vector<std::string>{body});
}

TEST(HostileInput, ALargeLineMayArriveByteByByte) {
  const std::string body = "\"" + std::string(max_body - 2, 'x') + "\"";
  EXPECT_EQ(events_of<LineDecoder>(body + "\n", Arrival::byte_by_byte), std::vector<std::string>{body});
}

TEST(HostileInput, LinesCostAboutAsMuchWhateverTheyAre) {
  constexpr std::size_t size = 100'000;
  const std::string harmless = repeated("{}\n", size);
  for (const std::size_t portion : {std::size_t{1}, piece}) {
    const double expected = seconds_for<LineDecoder>(harmless, portion);
    ASSERT_GT(expected, 0);
    for (const std::string text : {"\n", "\r", " ", "\r\n", " \t\r\n", "x", "x\n", "["}) {
      EXPECT_LT(seconds_for<LineDecoder>(repeated(text, size), portion) / expected, most_times_slower) << text;
    }
  }
}

// Held while so many bytes go by: never more than two header blocks.
void expect_bounded(const std::string& beginning, const std::string& text, std::size_t size) {
  ContentLengthDecoder decoder;
  StreamDriver driver(decoder);
  driver.feed(beginning);
  const std::string portion = repeated(text, piece);
  for (std::size_t fed = 0; fed < size; fed += portion.size()) {
    fed % 3 == 0 ? driver.read(portion) : driver.feed(portion);
  }
  EXPECT_LE(driver.most_held(), 2 * max_header) << beginning.substr(0, 40) << text;
  EXPECT_EQ(driver.events().size(), 1U) << beginning.substr(0, 40) << text;
}

TEST(HostileInput, AHundredMegabytesOfJunkAreNotKept) {
  expect_bounded("!\r\n", "junk ", 100'000'000);
  for (const std::string text : {"\r\n\r\n", "a: b\r\n", "Content-Length: 1\r\n!"})
    expect_bounded("!\r\n", text, 5'000'000);
}

TEST(HostileInput, AHundredMegabytesOfOversizePayloadAreNotKept) {
  const std::string header = "Content-Length: 200000000\r\n\r\n";
  expect_bounded(header, "x", 100'000'000);
  for (const std::string text : {"\r\n\r\n", "a: b\r\n"}) expect_bounded(header, text, 5'000'000);
}

TEST(HostileInput, AHundredMegabytesOfHeaderAreNotKept) {
  const std::string beginning = "X: " + std::string(8190, 'x') + "\r\n";
  expect_bounded(beginning, "x", 100'000'000);
  for (const std::string text : {"a: b\r\n", "Content-Length: 7\r\n"}) expect_bounded(beginning, text, 5'000'000);
}

}  // namespace
}  // namespace duet::framing
