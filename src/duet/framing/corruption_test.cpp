// Twenty thousand damaged streams: each intact message is delivered once, in order; one error per damage.

#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "duet/framing/content_length.h"
#include "duet/framing/damaged_stream_test.h"
#include "duet/framing/stream_driver_test.h"

namespace duet::framing {
namespace {

std::vector<std::string> read_somehow(const std::string& stream, std::uint32_t seed) {
  std::mt19937 random(seed);
  switch (seed % 4) {
    case 0:
      return events_of<ContentLengthDecoder>(stream);
    case 1:
      return events_of<ContentLengthDecoder>(stream, Arrival::byte_by_byte);
    case 2:
      return events_of_portions<ContentLengthDecoder>(stream, random, 20);
    default:
      return events_of_portions<ContentLengthDecoder>(stream, random, 500);
  }
}

void read_streams(std::uint32_t from, std::uint32_t to) {
  std::size_t messages = 0;
  std::size_t damages = 0;
  for (std::uint32_t seed = from; seed < to; ++seed) {
    const DamagedStream stream = damaged_stream(seed);
    const std::vector<std::string> events = read_somehow(stream.bytes, seed);
    ASSERT_EQ(complaint(stream, events), "") << "seed " << seed << '\n'
                                             << testing::PrintToString(stream.bytes) << '\n'
                                             << testing::PrintToString(events);
    for (const auto& part : stream.parts) ++(part.message.empty() ? damages : messages);
  }
  EXPECT_GT(messages, 2 * (to - from));
  EXPECT_GT(damages, to - from);
}

// In four tests, so that they may run side by side.
TEST(Corruption, CostsOneErrorAndNoOtherMessageInStreams0To6000) { read_streams(0, 6000); }
TEST(Corruption, CostsOneErrorAndNoOtherMessageInStreams6000To12000) { read_streams(6000, 12000); }
TEST(Corruption, CostsOneErrorAndNoOtherMessageInStreams12000To18000) { read_streams(12000, 18000); }
TEST(Corruption, CostsOneErrorAndNoOtherMessageInStreams18000To24000) { read_streams(18000, 24000); }

TEST(Corruption, WouldBeNoticed) {
  DamagedStream stream;
  stream.parts = {{"a"}, {"", 1}, {"b"}};
  EXPECT_EQ(complaint(stream, {"a", "! x", "b"}), "");
  EXPECT_NE(complaint(stream, {"a", "b"}), "");
  EXPECT_NE(complaint(stream, {"a", "! x", "! x", "b"}), "");
  EXPECT_NE(complaint(stream, {"a", "! x"}), "");
  EXPECT_NE(complaint(stream, {"! x", "b"}), "");
  EXPECT_NE(complaint(stream, {"a", "! x", "b", "b"}), "");
  EXPECT_NE(complaint(stream, {"a", "! x", "b", "! x"}), "");
  EXPECT_NE(complaint(stream, {"b", "! x", "a"}), "");
}

}  // namespace
}  // namespace duet::framing
