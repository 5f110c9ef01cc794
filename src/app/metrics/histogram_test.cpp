#include "app/metrics/histogram.h"

#include <cstdint>
#include <limits>

#include <gtest/gtest.h>

namespace duet::app {
namespace {

using Wide = Histogram<96>;

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

TEST(Histogram, WeighsWhatCameFirstAsMuchAsWhatCameLast) {
  Wide times;
  times.add(1000, 600);
  times.add(10, 601);
  EXPECT_NEAR(times.quantile(0.5).value(), 10, 2);
  times.add(1000, 2);
  EXPECT_NEAR(times.quantile(0.49).value(), 10, 2);
  EXPECT_NEAR(times.quantile(0.5).value(), 1000, 125);
}

TEST(Histogram, TakesWhatAnotherHas) {
  Wide sum;
  sum.add(100'000, 3);
  Wide part;
  part.add(7, 4'000'000'000U);
  sum.add(part);
  sum.add(part);
  EXPECT_EQ(sum.quantile(0.5), 7);
  EXPECT_EQ(sum.count_at(Wide::cell_of(7)), 8'000'000'000U);
}

template <typename Bytes>
void check_small_counts(std::uint64_t exact_up_to, double right_to) {
  for (std::uint64_t count = 0; count <= exact_up_to; ++count) {
    EXPECT_EQ(SmallCount<Bytes>(count).value(), count);
  }
  std::uint64_t last = 0;
  for (std::uint64_t count = 1; count < 10'000'000'000; count += 1 + count / 37) {
    const std::uint64_t told = SmallCount<Bytes>(count).value();
    EXPECT_NEAR(static_cast<double>(told) / static_cast<double>(count), 1, right_to) << count;
    EXPECT_GE(told, last) << count;
    last = told;
  }
  EXPECT_GE(SmallCount<Bytes>(std::uint64_t{1} << 60U).value(), last);
}

TEST(SmallCount, IsExactWhereItIsSmallAndNearElsewhere) {
  check_small_counts<std::uint8_t>(16, 1.0 / 16);
  check_small_counts<std::uint16_t>(4096, 1.0 / 4096);
}

TEST(PackedHistogram, HasTheSameShape) {
  Wide times;
  times.add(10, 20'000);
  times.add(1000, 3'000);
  Wide again;
  PackedHistogram<std::uint8_t, Wide::size>(times).add_to(again);
  EXPECT_EQ(again.quantile(0.86), times.quantile(0.86));
  EXPECT_EQ(again.quantile(0.89), times.quantile(0.89));
}

}  // namespace
}  // namespace duet::app
