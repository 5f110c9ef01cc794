#include "duet/framing/lines.h"

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "duet/framing/stream_driver_test.h"

namespace duet::framing {
namespace {

using Events = std::vector<std::string>;

Events read(std::string_view stream, std::size_t max_line = max_body) {
  LineDecoder decoder(max_line);
  StreamDriver driver(decoder);
  driver.feed(stream);
  driver.finish();
  Events whole = driver.take_events();
  for (const bool into_room : {false, true}) {
    LineDecoder slow(max_line);
    StreamDriver slow_driver(slow);
    for (const char& byte : stream) into_room ? slow_driver.read({&byte, 1}) : slow_driver.feed({&byte, 1});
    slow_driver.finish();
    EXPECT_EQ(slow_driver.events(), whole) << "byte by byte" << (into_room ? " into room" : "");
  }
  return whole;
}

TEST(Lines, EveryLineIsAMessage) { EXPECT_EQ(read("1\n[2]\n{\"a\":3}\n"), (Events{"1", "[2]", "{\"a\":3}"})); }

TEST(Lines, ACarriageReturnBeforeTheNewlineIsIgnored) { EXPECT_EQ(read("1\r\n2\r\n"), (Events{"1", "2"})); }

TEST(Lines, BlankLinesAreIgnored) { EXPECT_EQ(read("\n\r\n \t\n1\n\n \r\r\n2\n"), (Events{"1", "2"})); }

TEST(Lines, ALineThatIsNotJsonCostsOnlyItself) {
  EXPECT_EQ(read("1\nnope\n\xFF\n2\n"), (Events{"1", "! invalid-json", "! invalid-json", "2"}));
}

TEST(Lines, APartialLineAtTheEndIsNoMessage) { EXPECT_EQ(read("1\n2"), (Events{"1"})); }

TEST(Lines, CharactersSplitAcrossReadsAreWholeAgain) {
  EXPECT_EQ(read("\"é€\xF0\x9F\x98\x80\"\n"), (Events{"\"é€\xF0\x9F\x98\x80\""}));
}

TEST(Lines, ALineAsLongAsTheLimitIsTakenWithEitherLineEnd) {
  EXPECT_EQ(read("12345\n67890\r\n", 5), (Events{"12345", "67890"}));
}

TEST(Lines, ALongerLineIsOneFaultAndTheNextIsTaken) {
  EXPECT_EQ(read("123456\n1\n", 5), (Events{"! oversize", "1"}));
  EXPECT_EQ(read("123456\r\n1\n", 5), (Events{"! oversize", "1"}));
  EXPECT_EQ(read("12345\r\r\n1\n", 5), (Events{"! oversize", "1"}));
  EXPECT_EQ(read("12345\r6\n1\n", 5), (Events{"! oversize", "1"}));
  EXPECT_EQ(read("      \n1\n", 5), (Events{"! oversize", "1"}));
  EXPECT_EQ(read("123456789012345\n123456\n1\n", 5), (Events{"! oversize", "! oversize", "1"}));
}

TEST(Lines, TheLimitIsTenMebibytesUnlessSaidOtherwise) {
  const std::string fits = "\"" + std::string(max_body - 2, 'x') + "\"";
  EXPECT_EQ(events_of<LineDecoder>(fits + "\n"), Events{fits});
  EXPECT_EQ(events_of<LineDecoder>(fits + "\r\n"), Events{fits});
  EXPECT_EQ(events_of<LineDecoder>(fits + " \n7\n"), (Events{"! oversize", "7"}));
}

TEST(Lines, AnOverlongLineIsReportedAsSoonAsItIsKnownAndNotStored) {
  LineDecoder decoder(5);
  StreamDriver driver(decoder);
  driver.feed("12345");
  EXPECT_TRUE(driver.events().empty());
  driver.feed("6");
  EXPECT_EQ(driver.take_events(), Events{"! oversize"});
  EXPECT_EQ(decoder.held().size(), 0U);
  for (int i = 0; i < 100; ++i) driver.feed(std::string(1'000'000, 'x'));
  EXPECT_EQ(driver.most_held(), 5U);
  driver.feed("\n1\n");
  EXPECT_EQ(driver.take_events(), Events{"1"});
}

TEST(Lines, TellsHowMuchOfAnOverlongLineThereWasAndHowMuchThereIsOfAPartialOne) {
  LineDecoder decoder(5);
  StreamDriver driver(decoder);
  driver.feed("123456789\n123");
  EXPECT_EQ(driver.events(), Events{"! oversize"});
  EXPECT_EQ(decoder.fault_extent().bytes, 9U);
  EXPECT_EQ(decoder.partial_extent().bytes, 3U);
  driver.feed("4567");
  EXPECT_EQ(decoder.fault_extent().bytes, 7U);
  EXPECT_EQ(decoder.fault_extent().announced, std::nullopt);
}

TEST(Lines, EverySplitPointGivesTheSameMessages) {
  const std::string stream = "{\"a\":1}\r\n\n  \nnope\n\"é\"\n[1,2]\r\n\r\n7\n8";
  const Events whole = read(stream);
  for (std::size_t at = 0; at <= stream.size(); ++at) {
    LineDecoder decoder;
    StreamDriver driver(decoder);
    driver.feed(stream.substr(0, at));
    driver.feed(stream.substr(at));
    driver.finish();
    EXPECT_EQ(driver.events(), whole) << at;
  }
}

TEST(Lines, RandomPortionsGiveTheSameMessages) {
  std::mt19937 random(1);
  std::string stream;
  for (int i = 0; i < 2000; ++i) {
    stream += std::string(random() % 3, ' ') + std::to_string(random()) + (random() % 2 == 0 ? "\n" : "\r\n");
  }
  const Events whole = events_of<LineDecoder>(stream);
  ASSERT_EQ(whole.size(), 2000U);
  for (const std::size_t largest : {3U, 50U, 5000U})
    EXPECT_EQ(events_of_portions<LineDecoder>(stream, random, largest), whole);
}

TEST(Lines, InsideALineMeansThatAFrameHasBegun) {
  LineDecoder decoder;
  StreamDriver driver(decoder);
  EXPECT_FALSE(decoder.inside_frame());
  driver.feed("1\n2");
  EXPECT_TRUE(decoder.inside_frame());
  EXPECT_EQ(decoder.frames_begun(), 1U);
  driver.feed("\n");
  EXPECT_FALSE(decoder.inside_frame());
  EXPECT_EQ(decoder.frames_begun(), 2U);
  EXPECT_EQ(decoder.held().size(), 0U);
}

TEST(Lines, ADroppedPartialLineIsSkippedToItsEnd) {
  LineDecoder decoder;
  StreamDriver driver(decoder);
  driver.feed("1\n2");
  decoder.drop_partial();
  driver.feed("3\n4\n");
  EXPECT_EQ(driver.events(), (Events{"1", "4"}));
}

TEST(Lines, DroppingAPartialLineWhenThereIsNoneDropsNothing) {
  LineDecoder decoder;
  StreamDriver driver(decoder);
  driver.feed("1\n");
  decoder.drop_partial();
  driver.feed("2\n");
  EXPECT_EQ(driver.events(), (Events{"1", "2"}));
}

TEST(LineEncoder, EndsAMessageWithANewlineAndAllowsNoneInsideIt) {
  for (std::size_t size = 0; size < 30; ++size) {
    std::string out = std::string("[\n1,\n\n2,3,\n4,5,6\n,7,8,9,10,\n\n]").substr(0, size) + "-";
    std::string expected = out;
    std::replace(expected.begin(), expected.end(), '\n', ' ');
    expected.back() = '\n';
    LineEncoder encoder;
    EXPECT_EQ(encoder.begin(out.data(), size), 0U);
    EXPECT_EQ(encoder.end(out.data() + size, {out.data(), size}), 1U);
    EXPECT_EQ(out, expected);
  }
}

}  // namespace
}  // namespace duet::framing
