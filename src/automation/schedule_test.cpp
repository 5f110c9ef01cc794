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

TEST_F(ScheduleTest, AClockThatIsSetBackFarStartsAgainFromThere) {
  schedule.advance(nine + 24h);
  EXPECT_EQ(schedule.advance(nine).count, 0U);
  EXPECT_EQ(schedule.next(), nine + 1h);
}

}  // namespace
}  // namespace duet::automation
