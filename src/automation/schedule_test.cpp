#include "automation/schedule.h"

#include <gtest/gtest.h>

#include "automation/zone_test.h"

namespace duet::automation {
namespace {

using namespace std::chrono_literals;

struct ScheduleTest : testing::Test {
  Zone zone{"UTC"};
  base::UtcTime nine = utc("2026-01-01T09:00:00Z");
  Cron hourly = std::get<Cron>(parse_cron("0 * * * *"));
  Schedule schedule{hourly, nine};
};

TEST_F(ScheduleTest, TakesEachTimeOnce) {
  EXPECT_EQ(schedule.next(), nine + 1h);
  EXPECT_EQ(schedule.advance(nine + 59min).count, 0U);
  const Schedule::Passed passed = schedule.advance(nine + 1h);
  EXPECT_EQ(passed.count, 1U);
  EXPECT_EQ(passed.last, nine + 1h);
  EXPECT_EQ(schedule.advance(nine + 1h).count, 0U);
  EXPECT_EQ(schedule.next(), nine + 2h);
}

TEST_F(ScheduleTest, CountsWhatHasPassed) {
  const Schedule::Passed passed = schedule.advance(nine + 5h + 30min);
  EXPECT_EQ(passed.count, 5U);
  EXPECT_EQ(passed.last, nine + 5h);
  EXPECT_EQ(schedule.advance(nine + 24h * 365 * 100).count, Schedule::most_counted) << "and does not count for ever";
  EXPECT_GT(schedule.next(), nine + 24h * 365 * 100);
}

TEST_F(ScheduleTest, AClockThatIsSetBackALittleRepeatsNothing) {
  schedule.advance(nine + 1h);
  EXPECT_EQ(schedule.advance(nine + 30min).count, 0U);
  EXPECT_EQ(schedule.advance(nine + 1h + 1min).count, 0U);
  EXPECT_EQ(schedule.next(), nine + 2h);
}

TEST_F(ScheduleTest, TheLastOfMoreThanCanBeCountedIsTheLastOne) {
  const Schedule::Passed passed = schedule.advance(nine + 24h * 365 * 50 + 7min);
  EXPECT_EQ(passed.count, Schedule::most_counted);
  EXPECT_EQ(passed.last, nine + 24h * 365 * 50);
  Schedule monthly(std::get<Cron>(parse_cron("*/30 3 1 * *")), nine);
  EXPECT_EQ(monthly.advance(nine + 24h * 365 * 200).last, utc("2225-11-01T03:30:00Z"));
}

TEST_F(ScheduleTest, AClockThatWasWrongForAWhileRepeatsNothing) {
  schedule.advance(nine + 24h);
  EXPECT_EQ(schedule.advance(utc("1970-01-01T00:00:30Z")).count, 0U) << "at boot, before anybody has set it";
  EXPECT_EQ(schedule.advance(utc("1970-01-01T00:30:30Z")).count, 0U);
  EXPECT_EQ(schedule.advance(utc("1970-01-01T01:00:30Z")).count, 1U) << "it may be right";
  const Schedule::Passed passed = schedule.advance(nine + 26h + 1min);
  EXPECT_EQ(passed.count, 2U);
  EXPECT_EQ(passed.last, nine + 26h);
}

TEST_F(ScheduleTest, AClockThatComesBackAlmostToWhereItWasRepeatsNothing) {
  schedule.advance(nine + 24h);
  schedule.advance(nine);
  EXPECT_EQ(schedule.advance(nine + 23h + 30min).count, 0U);
  EXPECT_EQ(schedule.next(), nine + 25h);
}

TEST_F(ScheduleTest, AClockThatWasAheadGoesOnFromWhereItIsSetTo) {
  schedule.advance(nine + 24h * 365);
  schedule.advance(nine);
  for (int hour = 1; hour < 24 * 365 + 5; ++hour) {
    schedule.advance(nine + hour * 1h - 30min);
    EXPECT_EQ(schedule.advance(nine + hour * 1h).count, 1U) << hour;
  }
}

TEST_F(ScheduleTest, AnotherTimeZoneCounts) {
  Schedule nightly(std::get<Cron>(parse_cron("0 23 * * *")), nine);
  EXPECT_EQ(nightly.next(), nine + 14h);
  const Zone tokyo("Asia/Tokyo");
  const Schedule::Passed passed = nightly.advance(nine + 5h);
  EXPECT_EQ(passed.count, 1U);
  EXPECT_EQ(passed.last, nine + 5h);
}

TEST_F(ScheduleTest, AClockThatIsSetBackFarStartsAgainFromThere) {
  schedule.advance(nine + 24h);
  EXPECT_EQ(schedule.advance(nine).count, 0U);
  EXPECT_EQ(schedule.next(), nine + 1h);
}

}  // namespace
}  // namespace duet::automation
