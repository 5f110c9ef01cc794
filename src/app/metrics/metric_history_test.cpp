#include "app/metrics/metric_history.h"

#include <numeric>

#include <gtest/gtest.h>

namespace duet::app {
namespace {

constexpr MetricTime noon = 1'800'000'000;  // a whole minute
constexpr MetricTime life = noon - 5000;

MetricSlot slot_at(MetricTime start, std::uint32_t submitted = 1, MetricTime began = life) {
  MetricSlot slot{.counts = {.start = start, .life = began, .submitted = submitted}};
  slot.counts.queued.set(7);
  slot.counts.queued.set(3);
  slot.counts.clients.set(1);
  slot.counts.memory.set(100);
  return slot;
}

std::uint64_t total(const MetricSeries::Whole& series) {
  return std::accumulate(series.begin(), series.end(), std::uint64_t{0},
                         [](std::uint64_t sum, const auto& value) { return sum + value.value_or(0); });
}

TEST(MetricHistory, HasNothingWhereThereWasNoDaemon) {
  const MetricHistory history;
  const MetricSeries series = history.series(noon, 60, 4);
  EXPECT_EQ(series.submitted, MetricSeries::Whole(4));
  EXPECT_EQ(series.waitP50, MetricSeries::Times(4));
}

TEST(MetricHistory, PutsWhatHappenedIntoThePointOfItsTime) {
  MetricHistory history;
  history.add(slot_at(noon - 50, 2));
  history.add(slot_at(noon - 11, 3));
  history.add(slot_at(noon - 10, 4));
  const MetricSeries series = history.series(noon, 60, 6);
  EXPECT_EQ(series.submitted, (MetricSeries::Whole{std::nullopt, 2, 0, 0, 3, 4}));
  EXPECT_EQ(series.queued, (MetricSeries::Whole{std::nullopt, 7, 3, 3, 7, 7})) << "where nothing happens it stays";
  EXPECT_EQ(series.memory.back(), 102'400U);
}

TEST(MetricHistory, CountsNothingTwiceAndLosesNothingWhateverIsAsked) {
  MetricHistory history;
  for (MetricTime i = 0; i < 500; ++i) history.add(slot_at(noon - 500 + i));
  for (const std::size_t points : {2U, 3U, 7U, 100U, 119U, 500U, 720U}) {
    for (const double seconds : {600.0, 3600.0, 86400.0}) {
      const MetricSeries series = history.series(noon, seconds, points);
      EXPECT_EQ(series.submitted.size(), points);
      EXPECT_EQ(series.lagP99.size(), points);
      EXPECT_EQ(total(series.submitted), 500U) << seconds << " s in " << points;
    }
  }
}

TEST(MetricHistory, ShowsWhatIsNotOverYet) {
  MetricHistory history;
  history.add(slot_at(noon));
  for (const double seconds : {60.0, 3600.0, 86400.0}) {
    EXPECT_EQ(history.series(noon + 0.001, seconds, 2).submitted.back(), 1U) << seconds;
  }
}

TEST(MetricHistory, KnowsTheTimeBetweenTwoDaemons) {
  MetricHistory history;
  history.add(slot_at(noon - 55, 1, life));
  history.add(slot_at(noon - 25, 1, life));
  history.add(slot_at(noon - 5, 1, noon - 5));
  const MetricSeries series = history.series(noon, 60, 6);
  EXPECT_EQ(series.submitted, (MetricSeries::Whole{1, 0, 0, 1, std::nullopt, 1}));
}

TEST(MetricHistory, TellsTimesOnlyWhereThereWereSome) {
  MetricHistory history;
  MetricSlot slot = slot_at(noon - 10);
  slot.waits.add(2000, 3);
  slot.request_times.add(100);
  slot.turn_times.add(5000);
  history.add(slot);
  history.add(slot_at(noon - 1));
  const MetricSeries series = history.series(noon, 60, 12);
  EXPECT_NEAR(series.waitP95.at(10).value(), 2, 0.25);
  EXPECT_NEAR(series.requestP99.at(10).value(), 100, 13);
  EXPECT_NEAR(series.lagP99.at(10).value(), 5, 0.7);
  EXPECT_EQ(series.runP50.at(10), std::nullopt);
  EXPECT_EQ(series.waitP50.at(11), std::nullopt);
}

TEST(MetricHistory, KeepsADayInTwoMebibytes) {
  MetricHistory history;
  constexpr MetricTime days = 2 * MetricHistory::longest;
  for (MetricTime i = 0; i < days; ++i) history.add(slot_at(noon + i));
  EXPECT_LE(history.to_bytes().size(), 2U * 1024 * 1024);
  EXPECT_EQ(total(history.series(noon + days, MetricHistory::longest, 24).submitted), MetricHistory::longest);
  EXPECT_EQ(total(history.series(noon + days, 60, 24).submitted), 60U);
}

TEST(MetricHistory, GoesOnWhenTheClockIsSetBack) {
  MetricHistory history;
  for (MetricTime i = 0; i < 100; ++i) history.add(slot_at(noon + i));
  history.add(slot_at(noon + 50));
  EXPECT_EQ(total(history.series(noon + 51, 60, 60).submitted), 52U);
}

TEST(MetricHistory, OutlivesItsProcess) {
  MetricHistory history;
  for (MetricTime i = 0; i < 200; ++i) history.add(slot_at(noon - 400 + 2 * i));
  const auto again = MetricHistory::from_bytes(history.to_bytes(), noon);
  ASSERT_TRUE(again);
  for (const double seconds : {600.0, 3600.0, 86400.0}) {
    EXPECT_EQ(again->series(noon, seconds, 50).submitted, history.series(noon, seconds, 50).submitted);
  }
}

TEST(MetricHistory, TakesNothingThatMakesNoSense) {
  MetricHistory history;
  for (MetricTime i = 0; i < 5; ++i) history.add(slot_at(noon + i));
  const std::string bytes = history.to_bytes();
  EXPECT_TRUE(MetricHistory::from_bytes(bytes, noon + 5));
  EXPECT_FALSE(MetricHistory::from_bytes("", noon + 5));
  EXPECT_FALSE(MetricHistory::from_bytes(bytes + "x", noon + 5));
  for (std::size_t size = 0; size < bytes.size(); size += 13) {
    EXPECT_FALSE(MetricHistory::from_bytes(bytes.substr(0, size), noon + 5)) << size;
  }
  for (std::size_t place = 0; place < bytes.size(); place += 7) {
    std::string damaged = bytes;
    damaged[place] = static_cast<char>(damaged[place] ^ 0x40);
    EXPECT_FALSE(MetricHistory::from_bytes(damaged, noon + 5)) << place;
  }
}

TEST(MetricHistory, LeavesOutWhatIsLaterThanNow) {
  MetricHistory history;
  for (MetricTime i = 0; i < 100; ++i) history.add(slot_at(noon + i));
  auto again = MetricHistory::from_bytes(history.to_bytes(), noon + 70);
  ASSERT_TRUE(again);
  EXPECT_EQ(total(again->series(noon + 71, 600, 60).submitted), 71U);
  again->add(slot_at(noon + 71, 5, noon + 71));
  EXPECT_EQ(total(again->series(noon + 72, 600, 60).submitted), 76U);
}

TEST(MetricHistory, WeighsWhatHappenedNotInHowManySlots) {
  MetricHistory history;
  MetricSlot busy = slot_at(noon - 60);
  busy.waits.add(5, 20'000);
  history.add(busy);
  for (MetricTime i = 1; i < 60; ++i) {
    MetricSlot calm = slot_at(noon - 60 + i);
    calm.waits.add(60'000, 10);
    history.add(calm);
  }
  EXPECT_EQ(history.sum(noon - 1, 60).waits.quantile(0.5), 5);
  for (const double seconds : {60.0, 3600.0, 86400.0}) {
    const MetricSeries series = history.series(noon, seconds, 2);
    const auto& points = seconds == 60 ? series.waitP50.front() : series.waitP50.back();
    EXPECT_NEAR(points.value(), 0.005, 0.001) << seconds;
  }
}

TEST(MetricHistory, LosesNothingSmallBesideWhatIsLarge) {
  MetricHistory history;
  MetricSlot busy = slot_at(noon);
  busy.runs.add(5, 20'000);
  history.add(busy);
  for (MetricTime i = 1; i < 60; ++i) {  // all in one minute: 15 of 100 ran long
    MetricSlot calm = slot_at(noon + i);
    calm.runs.add(60'000, 60);
    history.add(calm);
  }
  const MetricSeries series = history.series(noon + 60, 86400, 2);
  EXPECT_NEAR(series.runP50.back().value(), 0.005, 0.001);
  EXPECT_NEAR(series.runP95.back().value(), 60, 7.5);
}

}  // namespace
}  // namespace duet::app
