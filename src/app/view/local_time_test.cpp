#include "app/view/local_time.h"

#include <gtest/gtest.h>

#include "app/view/table.h"

namespace duet::app {
namespace {

const base::UtcTime local_time_now = *parse_time("2026-11-16T12:02:11.500Z");

TEST(LocalTime, ADayThatIsNotTodayIsNamed) {
  EXPECT_EQ(clock_time(local_time_now, local_time_now).size(), 8U);
  EXPECT_EQ(clock_time(local_time_now - std::chrono::hours(48), local_time_now),
            date_and_time(local_time_now - std::chrono::hours(48)));
  EXPECT_EQ(date_and_time(local_time_now).size(), 19U);
}

TEST(LocalTime, StandsForTheTimesInASentence) {
  EXPECT_EQ(with_local_times("not before 2026-11-16T12:02:11.500Z, in 2 h", local_time_now),
            "not before " + clock_time(local_time_now, local_time_now) + ", in 2 h");
  EXPECT_EQ(with_local_times("2026-11-16T12:02", local_time_now), "2026-11-16T12:02");
  EXPECT_EQ(with_local_times("", local_time_now), "");
}

}  // namespace
}  // namespace duet::app
