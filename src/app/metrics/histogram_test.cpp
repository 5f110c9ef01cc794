#include "app/metrics/histogram.h"

#include <gtest/gtest.h>

namespace duet::app {
namespace {

using Wide = Histogram<std::uint16_t, 96>;
using Narrow = Histogram<std::uint8_t, 112>;

TEST(Histogram, KnowsNothingAtFirst) { EXPECT_EQ(Wide().quantile(0.5), std::nullopt); }

TEST(Histogram, IsRightToAnEighth) {
  for (std::uint64_t value = 1; value < 1U << 25; value += 1 + value / 7) {
    Wide one;
    one.add(value);
    EXPECT_NEAR(one.quantile(0.5).value() / static_cast<double>(value), 1, 0.125) << value;
  }
}

TEST(Histogram, HasCellsInOrderWithoutGaps) {
  std::size_t last = 0;
  for (std::uint64_t value = 0; value < 5000; ++value) {
    const std::size_t cell = Wide::cell_of(value);
    EXPECT_TRUE(cell == last || cell == last + 1) << value;
    last = cell;
  }
}

TEST(Histogram, TellsPartsOfAll) {
  Wide times;
  for (int i = 0; i < 98; ++i) times.add(100);
  times.add(1000);
  times.add(100'000);
  EXPECT_NEAR(times.quantile(0.5).value(), 100, 13);
  EXPECT_NEAR(times.quantile(0.98).value(), 100, 13);
  EXPECT_NEAR(times.quantile(0.99).value(), 1000, 125);
  EXPECT_NEAR(times.quantile(1).value(), 100'000, 12'500);
}

TEST(Histogram, PutsWhatIsBeyondItIntoItsLastCell) {
  Wide times;
  times.add(std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(times.quantile(0.5), Wide::middle_of(95));
  EXPECT_GT(Wide::middle_of(95), 30e6);
}

TEST(Histogram, KeepsItsShapeWhenACellIsFull) {
  Narrow times;
  for (int i = 0; i < 5000; ++i) times.add(i % 10 == 0 ? 1000 : 10);
  EXPECT_NEAR(times.quantile(0.5).value(), 10, 2);
  EXPECT_NEAR(times.quantile(0.85).value(), 10, 2);
  EXPECT_NEAR(times.quantile(0.97).value(), 1000, 125);
  times.add(1'000'000, 4'000'000'000U);
  EXPECT_NEAR(times.quantile(0.5).value(), 1e6, 125e3);
}

TEST(Histogram, TakesWhatAnotherHas) {
  Wide sum;
  Narrow full;
  Histogram<std::uint16_t, 112> much;
  for (int i = 0; i < 300; ++i) much.add(i % 3 == 0 ? 1000 : 10, 100);
  full.add(much);
  full.add(much);
  EXPECT_NEAR(full.quantile(0.6).value(), 10, 2);
  EXPECT_NEAR(full.quantile(0.7).value(), 1000, 125);
  Wide part;
  part.add(7);
  sum.add(part);
  EXPECT_EQ(sum.quantile(1), 7);
}

}  // namespace
}  // namespace duet::app
