#include "automation/cron.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "automation/zone_test.h"

namespace duet::automation {
namespace {

using namespace std::chrono_literals;
using Times = std::vector<std::string>;

Cron cron(const std::string& text) {
  auto parsed = parse_cron(text);
  EXPECT_TRUE(std::holds_alternative<Cron>(parsed)) << text << ": " << std::get<std::string>(parsed);
  return std::get<Cron>(parsed);
}

std::string fault(const std::string& text) {
  auto parsed = parse_cron(text);
  return std::holds_alternative<Cron>(parsed) ? "accepted" : std::get<std::string>(parsed);
}

Times following(const std::string& text, base::UtcTime from, int count) {
  const Cron schedule = cron(text);
  Times times;
  for (int i = 0; i < count; ++i) {
    from = schedule.next(from);
    times.push_back(local_text(from).substr(0, 16) + local_text(from).substr(19));
  }
  return times;
}

TEST(Cron, TakesNamesRangesListsAndSteps) {
  const Zone zone("UTC");
  const base::UtcTime from = utc("2026-01-01T00:00:00Z");  // a Thursday
  EXPECT_EQ(following("*/20 * * * *", from, 3),
            (Times{"2026-01-01 00:20 +0000", "2026-01-01 00:40 +0000", "2026-01-01 01:00 +0000"}));
  EXPECT_EQ(following("0 9-17/4 * * MON-Fri", from, 4), (Times{"2026-01-01 09:00 +0000", "2026-01-01 13:00 +0000",
                                                               "2026-01-01 17:00 +0000", "2026-01-02 09:00 +0000"}));
  EXPECT_EQ(following("5,10 0 1 jan,Mar *", from, 3),
            (Times{"2026-01-01 00:05 +0000", "2026-01-01 00:10 +0000", "2026-03-01 00:05 +0000"}));
  EXPECT_EQ(following("  0\t0 * * sat-sun ", from, 2), (Times{"2026-01-03 00:00 +0000", "2026-01-04 00:00 +0000"}));
}

TEST(Cron, SundayIsZeroAndSeven) {
  const Zone zone("UTC");
  const base::UtcTime from = utc("2026-01-01T00:00:00Z");
  const Times sundays{"2026-01-04 12:00 +0000", "2026-01-11 12:00 +0000"};
  for (const char* day : {"0", "7", "sun", "0,7", "0-0"}) {
    EXPECT_EQ(following(std::string("0 12 * * ") + day, from, 2), sundays) << day;
  }
}

TEST(Cron, TwoRestrictedDayFieldsAreAlternatives) {
  const Zone zone("UTC");
  const base::UtcTime from = utc("2026-01-01T12:00:00Z");
  EXPECT_EQ(following("0 0 13 * fri", from, 4), (Times{"2026-01-02 00:00 +0000", "2026-01-09 00:00 +0000",
                                                       "2026-01-13 00:00 +0000", "2026-01-16 00:00 +0000"}));
  EXPECT_EQ(following("0 0 */2 * fri", from, 2), (Times{"2026-01-09 00:00 +0000", "2026-01-23 00:00 +0000"}))
      << "a field with a star is no restriction";
}

TEST(Cron, IsLaterThanTheGivenTimeAlsoOnTheMinute) {
  const Zone zone("UTC");
  const base::UtcTime due = utc("2026-01-01T09:00:00Z");
  EXPECT_EQ(cron("0 9 * * *").next(due - 1ns), due);
  EXPECT_EQ(cron("0 9 * * *").next(due), due + 24h);
  EXPECT_EQ(cron("0 9 * * *").next(due + 500ms), due + 24h);
}

TEST(Cron, FindsDaysThatAreYearsAway) {
  const Zone zone("UTC");
  EXPECT_EQ(following("0 0 29 2 *", utc("2096-03-01T00:00:00Z"), 1), Times{"2104-02-29 00:00 +0000"});
  EXPECT_EQ(following("* * 29 2 *", utc("2026-03-01T00:00:00Z"), 1), Times{"2028-02-29 00:00 +0000"});
}

TEST(Cron, SaysWhatIsWrong) {
  EXPECT_EQ(fault("* * * *"), "a schedule has five fields (minute, hour, day of month, month, day of week), not 4");
  EXPECT_EQ(fault("60 * * * *"), "the minute is 0 to 59, not \"60\"");
  EXPECT_EQ(fault("* * * * moon"), "the day of week is 0 to 7 or a name like sat, not \"moon\"");
  EXPECT_EQ(fault("*/0 * * * *"), "the minute cannot go in steps of \"0\"");
  EXPECT_EQ(fault("* 5/2 * * *"), "the hour has a step without a range: \"5/2\"");
  EXPECT_EQ(fault("* 5-2 * * *"), "the hour has a range that ends before it begins: \"5-2\"");
  EXPECT_EQ(fault("0 0 30 feb *"), "the day and the month never come together");
  EXPECT_EQ(fault("0 0 31 4,6,9,11 *"), "the day and the month never come together");
  EXPECT_EQ(fault("0 0 30 2 mon"), "accepted") << "it comes on Mondays";
  for (const char* text :
       {"", "@never", "* * * * * *", "a * * * *", "-1 * * * *", "1- * * * *", "1,,2 * * * *", "*/ * * * *",
        "+1 * * * *", "99999999999 * * * *", "* * 0 * *", "* * * 13 *", "*5 * * * *"}) {
    EXPECT_NE(fault(text), "accepted") << text;
  }
}

TEST(Cron, ATimeOfDayThatIsSkippedComesRightAfterTheGap) {
  const Zone zone("Europe/Berlin");
  EXPECT_EQ(following("30 2 * * *", utc("2026-03-27T12:00:00Z"), 3),
            (Times{"2026-03-28 02:30 +0100", "2026-03-29 03:00 +0200", "2026-03-30 02:30 +0200"}));
  EXPECT_EQ(following("0,30 2,3 * * *", utc("2026-03-28T12:00:00Z"), 2),
            (Times{"2026-03-29 03:00 +0200", "2026-03-29 03:30 +0200"}));
}

TEST(Cron, ATimeOfDayThatIsRepeatedComesOnce) {
  const Zone zone("Europe/Berlin");
  EXPECT_EQ(following("30 2 * * *", utc("2026-10-24T12:00:00Z"), 2),
            (Times{"2026-10-25 02:30 +0200", "2026-10-26 02:30 +0100"}));
}

TEST(Cron, WhatComesEveryHourGoesOnByRealTime) {
  const Zone zone("Europe/Berlin");
  EXPECT_EQ(following("*/30 * * * *", utc("2026-03-29T00:15:00Z"), 3),
            (Times{"2026-03-29 01:30 +0100", "2026-03-29 03:00 +0200", "2026-03-29 03:30 +0200"}));
  EXPECT_EQ(following("30 * * * *", utc("2026-10-25T00:00:00Z"), 3),
            (Times{"2026-10-25 02:30 +0200", "2026-10-25 02:30 +0100", "2026-10-25 03:30 +0100"}));
}

TEST(Cron, KnowsClocksThatChangeByHalfAnHour) {
  const Zone zone("Australia/Lord_Howe");
  EXPECT_EQ(following("15 2 * * *", utc("2026-10-02T20:00:00Z"), 2),
            (Times{"2026-10-04 02:30 +1100", "2026-10-05 02:15 +1100"}));
  EXPECT_EQ(following("45 1 * * *", utc("2026-04-03T20:00:00Z"), 2),
            (Times{"2026-04-05 01:45 +1100", "2026-04-06 01:45 +1030"}));
}

// The same from the definition alone, one minute after the other.
class MinuteWalk {
 public:
  MinuteWalk(std::set<int> minutes, std::set<int> hours, bool by_clock)
      : minutes_(std::move(minutes)), hours_(std::move(hours)), by_clock_(by_clock) {}

  base::UtcTime next(base::UtcTime after) const {
    long highest = 0;  // that the clock has shown; a day is more than any change
    base::UtcTime at = std::chrono::ceil<std::chrono::minutes>(after) - 24h;
    for (;; at += 1min) {
      const long shown = local_minutes(at);
      if (at > after && (by_clock_ ? matches(shown) : any_match(highest + 1, shown))) return at;
      highest = std::max(highest, shown);
    }
  }

 private:
  static long local_minutes(base::UtcTime at) {
    const time_t when = std::chrono::system_clock::to_time_t(at);
    tm local{};
    localtime_r(&when, &local);
    return timegm(&local) / 60;
  }
  bool matches(long minute) const {
    return minutes_.contains(static_cast<int>(minute % 60)) && hours_.contains(static_cast<int>(minute / 60 % 24));
  }
  bool any_match(long from, long to) const {
    for (; from <= to; ++from) {
      if (matches(from)) return true;
    }
    return false;
  }

  std::set<int> minutes_;
  std::set<int> hours_;
  bool by_clock_;
};

std::string list_of(const std::set<int>& values) {
  std::string text;
  for (const int value : values) text += (text.empty() ? "" : ",") + std::to_string(value);
  return text;
}

std::set<int> every(int step, int end) {
  std::set<int> values;
  for (int value = 0; value < end; value += step) values.insert(value);
  return values;
}

struct Schedule {
  std::string text;
  MinuteWalk walk;
};

Schedule any_schedule() {
  const auto minutes = *rc::gen::nonEmpty(rc::gen::container<std::set<int>>(rc::gen::inRange(0, 60)));
  if (*rc::gen::arbitrary<bool>()) {
    const int step = *rc::gen::inRange(1, 7);
    return {list_of(minutes) + " */" + std::to_string(step) + " * * *", MinuteWalk(minutes, every(step, 24), true)};
  }
  const auto hours = *rc::gen::nonEmpty(rc::gen::container<std::set<int>>(rc::gen::inRange(0, 24)));
  return {list_of(minutes) + " " + list_of(hours) + " * * *", MinuteWalk(minutes, hours, false)};
}

RC_GTEST_PROP(Cron, AgreesWithAWalkThroughTheMinutesAroundEveryChangeOfClocks, ()) {
  struct Change {
    const char* zone;
    const char* at;
  };
  const auto change = *rc::gen::element(
      Change{"Europe/Berlin", "2026-03-29T01:00:00Z"}, Change{"Europe/Berlin", "2026-10-25T01:00:00Z"},
      Change{"America/New_York", "2026-03-08T07:00:00Z"}, Change{"America/New_York", "2026-11-01T06:00:00Z"},
      Change{"Australia/Lord_Howe", "2026-10-03T15:30:00Z"}, Change{"Australia/Lord_Howe", "2026-04-04T15:00:00Z"},
      Change{"America/St_Johns", "2010-11-07T02:31:00Z"}, Change{"Pacific/Apia", "2011-12-30T10:00:00Z"});
  const Zone zone(change.zone);
  const Schedule schedule = any_schedule();
  const base::UtcTime from = utc(change.at) + std::chrono::seconds(*rc::gen::inRange(-36 * 3600, 36 * 3600));
  RC_LOG() << schedule.text << " after " << local_text(from) << " in " << change.zone;
  RC_ASSERT(local_text(cron(schedule.text).next(from)) == local_text(schedule.walk.next(from)));
}

RC_GTEST_PROP(Cron, NeverThrowsOnAnyText, (const std::string& text)) { parse_cron(text); }

}  // namespace
}  // namespace duet::automation
