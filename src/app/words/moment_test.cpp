#include "app/words/moment.h"

#include <cstdlib>
#include <ctime>
#include <string>

#include <gtest/gtest.h>

namespace duet::app {
namespace {

using namespace std::chrono_literals;
using std::chrono::sys_days;
using namespace std::chrono;

// Warsaw: an hour ahead of UTC in winter, two in summer.
class MomentTest : public ::testing::Test {
 protected:
  MomentTest() {
    const char* const before = std::getenv("TZ");
    before_ = before == nullptr ? "" : before;
    setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1);
    tzset();
  }
  ~MomentTest() override {
    before_.empty() ? unsetenv("TZ") : setenv("TZ", before_.c_str(), 1);
    tzset();
  }

  std::string before_;
  Moment now_ = sys_days(2026y / 11 / 16) + 13h + 30min;  // 14:30 there
};

TEST_F(MomentTest, OfAClockTimeTheNextOrTheLast) {
  EXPECT_EQ(parse_future("15:00", now_), sys_days(2026y / 11 / 16) + 14h);
  EXPECT_EQ(parse_future("9:30", now_), sys_days(2026y / 11 / 17) + 8h + 30min);
  EXPECT_EQ(parse_past("9:30", now_), sys_days(2026y / 11 / 16) + 8h + 30min);
  EXPECT_EQ(parse_past("15:00:05", now_), sys_days(2026y / 11 / 15) + 14h + 5s);
}

TEST_F(MomentTest, OfDays) {
  EXPECT_EQ(parse_future("tomorrow 00:10", now_), sys_days(2026y / 11 / 16) + 23h + 10min);
  EXPECT_EQ(parse_future("today 15:00", now_), sys_days(2026y / 11 / 16) + 14h);
  EXPECT_EQ(parse_past("today", now_), sys_days(2026y / 11 / 15) + 23h);
  EXPECT_EQ(parse_past("yesterday 9:00", now_), sys_days(2026y / 11 / 15) + 8h);
  const Moment last_of_the_month = sys_days(2026y / 11 / 30) + 12h;
  EXPECT_EQ(parse_future("tomorrow 12:00", last_of_the_month), sys_days(2026y / 12 / 1) + 11h);
}

TEST_F(MomentTest, OfDatesWithAndWithoutAnOffset) {
  EXPECT_EQ(parse_future("2026-11-17 14:00", now_), sys_days(2026y / 11 / 17) + 13h);
  EXPECT_EQ(parse_future("2026-07-01T14:00:00", now_), sys_days(2026y / 7 / 1) + 12h);
  EXPECT_EQ(parse_future("2026-11-17T14:00:00.123Z", now_), sys_days(2026y / 11 / 17) + 14h);
  EXPECT_EQ(parse_future("2026-11-17T14:00-05:30", now_), sys_days(2026y / 11 / 17) + 19h + 30min);
  EXPECT_EQ(parse_past("2026-11-01", now_), sys_days(2026y / 10 / 31) + 23h);
}

TEST_F(MomentTest, OfDurations) {
  EXPECT_EQ(parse_future("+2h", now_), now_ + 2h);
  EXPECT_EQ(parse_future("now", now_), now_);
  EXPECT_EQ(parse_past("90s", now_), now_ - 90s);
  EXPECT_EQ(parse_past("2h ago", now_), now_ - 2h);
}

TEST_F(MomentTest, InTheHourThatIsRepeatedTheFirstIsMeantUnlessItHasPassed) {
  const Moment night = sys_days(2026y / 10 / 25);  // 2:00 there, and 3:00 becomes 2:00 an hour later
  const Moment before = sys_days(2026y / 7 / 1);
  EXPECT_EQ(parse_future("2026-10-25 02:30", before), night + 30min);
  EXPECT_EQ(parse_future("2026-12-25 02:30", before), sys_days(2026y / 12 / 25) + 90min);
  EXPECT_EQ(parse_future("2026-10-25 02:30", before), night + 30min) << "whatever was asked before";
  EXPECT_EQ(parse_future("2026-10-25T02:30+01:00", before), night + 90min);
  EXPECT_EQ(parse_future("2:30", night + 10min), night + 30min);
  EXPECT_EQ(parse_future("2:30", night + 40min), night + 90min);
  EXPECT_EQ(parse_future("2:30", night + 100min), sys_days(2026y / 10 / 26) + 90min);
  EXPECT_EQ(parse_past("2:30", night + 40min), night + 30min);
  EXPECT_EQ(parse_past("2:30", night + 100min), night + 90min);
}

TEST_F(MomentTest, TheHourThatIsLeftOutIsAnHourLater) {
  EXPECT_EQ(parse_future("2027-03-28 02:30", now_), sys_days(2027y / 3 / 28) + 90min);  // 3:30 there
  EXPECT_EQ(parse_future("2027-03-28 03:30", now_), sys_days(2027y / 3 / 28) + 90min);
}

TEST_F(MomentTest, WhatCannotBeMeantIsNone) {
  for (const char* text : {"", "noon", "24:00", "9", "9:5", "12:60", "tomorrow", "tomorrow9:00", "2026-02-30 10:00",
                           "2026-11-17", "2026-11-17 14:00 ", "2026-11-17T14:00+1", "+", "+x", "-2h", "14:00Z",
                           "2200-01-01 00:00", "9999-12-31T23:59:59Z", "0001-01-01 00:00"}) {
    EXPECT_EQ(parse_future(text, now_), std::nullopt) << text;
  }
  for (const char* text : {"", "soon", "+2h", "tomorrow", "2026-13-01", "0000-01-01"}) {
    EXPECT_EQ(parse_past(text, now_), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace duet::app
