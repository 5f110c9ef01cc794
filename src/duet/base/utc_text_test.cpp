#include "duet/base/utc_text.h"

#include <gtest/gtest.h>

namespace duet::base {
namespace {

using std::chrono::milliseconds;
using std::chrono::system_clock;

system_clock::time_point at(std::int64_t since_epoch) { return system_clock::time_point(milliseconds(since_epoch)); }

TEST(UtcTextTest, WritesDaysAndMilliseconds) {
  EXPECT_EQ(utc_text(at(0)), "1970-01-01T00:00:00.000Z");
  EXPECT_EQ(utc_text(at(951'827'696'789)), "2000-02-29T12:34:56.789Z");
  EXPECT_EQ(utc_text(at(4'102'444'799'999)), "2099-12-31T23:59:59.999Z");
}

TEST(UtcTextTest, CutsWhatIsFinerThanAMillisecond) {
  EXPECT_EQ(utc_text(at(1) + std::chrono::microseconds(999)), "1970-01-01T00:00:00.001Z");
}

TEST(UtcTextTest, CountsDownFromTheEpoch) { EXPECT_EQ(utc_text(at(-1)), "1969-12-31T23:59:59.999Z"); }

TEST(UtcTextTest, TheKeptSecondIsLeftInBothDirections) {
  UtcText text;
  std::string out = "at ";
  for (const std::int64_t time : {59'999, 60'000, 60'001, 59'000}) text.append(out, at(time));
  EXPECT_EQ(out, "at 1970-01-01T00:00:59.999Z1970-01-01T00:01:00.000Z1970-01-01T00:01:00.001Z1970-01-01T00:00:59.000Z");
}

}  // namespace
}  // namespace duet::base
