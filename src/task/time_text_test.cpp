#include "task/time_text.h"

#include <gtest/gtest.h>

#include "duet/base/utc_text.h"

namespace duet::task {
namespace {

std::string read(std::string_view text) {
  const auto time = parse_time(text);
  return time ? base::utc_text(*time) : "none";
}

TEST(TimeText, ReadsTimesWithTheirZone) {
  EXPECT_EQ(read("2026-11-16T15:30:00Z"), "2026-11-16T15:30:00.000Z");
  EXPECT_EQ(read("2026-11-16 15:30Z"), "2026-11-16T15:30:00.000Z");
  EXPECT_EQ(read("2026-11-16T15:30:01.5+01:00"), "2026-11-16T14:30:01.500Z");
  EXPECT_EQ(read("2026-11-16T15:30:01,123456-0230"), "2026-11-16T18:00:01.123Z");
  EXPECT_EQ(read("2024-02-29T00:00:00+01"), "2024-02-28T23:00:00.000Z");
}

TEST(TimeText, RefusesWhatIsNone) {
  for (const char* text : {"", "2026-11-16", "2026-11-16T15:30:00", "2026-02-29T00:00Z", "2026-11-16T24:00Z",
                           "2026-11-16T15:30:00Z ", "2026-11-16T15:30:00+1", "1969-12-31T23:59Z", "9999-01-01T00:00Z",
                           "2026-11-16T15:30:00+24:00", "tomorrow", "2026-11-16T15:30:00.Z"}) {
    EXPECT_EQ(read(text), "none") << text;
  }
}

}  // namespace
}  // namespace duet::task
