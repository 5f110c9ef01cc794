#include "task/usage_limit.h"

#include <cstdlib>

#include <gtest/gtest.h>

#include "duet/base/utc_text.h"

namespace duet::task {
namespace {

using namespace std::chrono_literals;

const base::UtcTime now = base::UtcTime(1'800'000'000s);  // 2027-01-15T08:00:00Z

Outcome exited(int code) { return {.kind = Outcome::Kind::exited, .code = code}; }

std::string until(const UsageHold& hold, int code, std::string_view output) {
  const auto time = UsageLimit(hold).until(exited(code), output, now);
  return time ? base::utc_text(*time) : "none";
}

std::string in(base::Duration time) { return base::utc_text(now + time); }

TEST(UsageLimit, TakesTheTimeThatTheAgentTells) {
  const UsageHold hold{.exit_codes = {75}, .output = "usage limit.*(?<until>\\d+)", .length = 15min};
  EXPECT_EQ(until(hold, 75, "hello\nusage limit reached|1800003600\nbye"), in(1h));
  EXPECT_EQ(until(hold, 75, "usage limit reached|1800003600000"), in(1h));
  EXPECT_EQ(until({.output = "until (?P<until>\\S+)"}, 1, "until 2027-01-15T09:30:00Z"), in(90min));
  EXPECT_EQ(until(hold, 75, "usage limit 1800000060\nusage limit 1800000120\n"), in(2min));
}

TEST(UsageLimit, HoldsForAWhileWhereTheTimeMakesNoSense) {
  const UsageHold hold{.output = "usage limit( until (?<until>\\S+))?", .length = 7min};
  for (const char* text :
       {"usage limit", "usage limit until 1799999999", "usage limit until 12", "usage limit until 99999999999999999999",
        "usage limit until 1900000000", "usage limit until tomorrow"}) {
    EXPECT_EQ(until(hold, 1, text), in(7min)) << text;
  }
}

TEST(UsageLimit, IsNotMeantByOtherEnds) {
  const UsageHold hold{.exit_codes = {75}, .output = "usage limit"};
  EXPECT_EQ(until(hold, 1, "usage limit"), "none");
  EXPECT_EQ(until(hold, 75, "something else"), "none");
  EXPECT_EQ(until({.output = "usage limit"}, 0, "usage limit"), "none");
  EXPECT_EQ(until({.exit_codes = {75}}, 75, ""), in(15min));
  const Outcome killed{.kind = Outcome::Kind::signalled, .signal = 9};
  EXPECT_FALSE(UsageLimit({.output = "x"}).until(killed, "x", now));
  EXPECT_FALSE(UsageLimit({.output = "("}).until(exited(1), "(", now));
}

TEST(UsageLimit, ReadsTimesOfDay) {
  setenv("TZ", "UTC", 1);
  tzset();
  const auto read = [](std::string_view text) {
    const auto time = told_time(text, now);
    return time ? base::utc_text(*time) : "none";
  };
  EXPECT_EQ(read("15:30"), "2027-01-15T15:30:00.000Z");
  EXPECT_EQ(read("09:33:30"), "2027-01-15T09:33:30.000Z");
  EXPECT_EQ(read("3:15:07 pm"), "2027-01-15T15:15:07.000Z");
  EXPECT_EQ(read("3pm"), "2027-01-15T15:00:00.000Z");
  EXPECT_EQ(read("3:15 p.m."), "2027-01-15T15:15:00.000Z");
  EXPECT_EQ(read("7 am"), "2027-01-16T07:00:00.000Z");
  EXPECT_EQ(read("12am"), "2027-01-16T00:00:00.000Z");
  EXPECT_EQ(read("2027-01-15 09:00"), "2027-01-15T09:00:00.000Z");
  for (const char* text : {"25:00", "13pm", "3 o'clock", "", ":30", "3:99", "3:30:60", "3:30:", "3:30:10:1"})
    EXPECT_EQ(read(text), "none") << text;
}

TEST(UsageLimit, BytesThatAreNoTextDoNotHurt) {
  EXPECT_EQ(until({.output = "limit (?<until>\\d+)"}, 1, "\xff\xfe limit 1800000060 \xc3"), in(1min));
}

}  // namespace
}  // namespace duet::task
