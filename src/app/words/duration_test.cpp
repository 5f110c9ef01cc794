#include "app/words/duration.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace duet::app {
namespace {

using namespace std::chrono_literals;

TEST(Duration, IsReadAsPeopleWriteIt) {
  EXPECT_EQ(parse_duration("500ms"), 500ms);
  EXPECT_EQ(parse_duration("10s"), 10s);
  EXPECT_EQ(parse_duration("5m"), 5min);
  EXPECT_EQ(parse_duration("1h"), 1h);
  EXPECT_EQ(parse_duration("7"), 7s);
  EXPECT_EQ(parse_duration("0.25"), 250ms);
  EXPECT_EQ(parse_duration("1.5h"), 90min);
  EXPECT_EQ(parse_duration("0"), 0ms);
  EXPECT_EQ(parse_duration("8760h"), longest_duration);
}

TEST(Duration, NeverRoundsSomethingToNothing) {
  EXPECT_EQ(parse_duration("0.1ms"), 1ms);
  EXPECT_EQ(parse_duration("1e-300"), 1ms);
}

TEST(Duration, NothingElseIsTaken) {
  for (const char* text : {"",      "s",    "ms",  "-1",  "-0",   "+1", "1 s",   " 1s",    "1s ",   "1S", "1w",
                           "1h30m", "1,5s", "nan", "inf", "0x10", "1e", "8761h", "1e300h", "1e999", "1\n"}) {
    EXPECT_EQ(parse_duration(text), std::nullopt) << text;
  }
}

RC_GTEST_PROP(Duration, WhatIsTakenIsInRange, (const std::string& text)) {
  const auto duration = parse_duration(text);
  if (!duration) return;
  RC_ASSERT(*duration >= 0ms);
  RC_ASSERT(*duration <= longest_duration);
}

RC_GTEST_PROP(Duration, WholeMillisecondsComeBack, ()) {
  const auto count = *rc::gen::inRange<std::int64_t>(0, longest_duration.count());
  RC_ASSERT(parse_duration(std::to_string(count) + "ms") == std::chrono::milliseconds(count));
}

TEST(Duration, IsShownInTheTwoUnitsThatMatter) {
  EXPECT_EQ(readable_duration(0ms), "0ms");
  EXPECT_EQ(readable_duration(850ms), "850ms");
  EXPECT_EQ(readable_duration(4s), "4s");
  EXPECT_EQ(readable_duration(4290ms), "4.2s");
  EXPECT_EQ(readable_duration(59999ms), "59s");
  EXPECT_EQ(readable_duration(80s), "1m 20s");
  EXPECT_EQ(readable_duration(2min), "2m");
  EXPECT_EQ(readable_duration(125min), "2h 5m");
  EXPECT_EQ(readable_duration(76h), "3d 4h");
}

}  // namespace
}  // namespace duet::app
