#include "task/retry.h"

#include <gtest/gtest.h>

namespace duet::task {
namespace {

using namespace std::chrono_literals;

TEST(Retry, WaitsASecondAndTwiceAsLongEachTimeUpToFiveMinutes) {
  EXPECT_EQ(retry_delay(1, 0.5), 1s);
  EXPECT_EQ(retry_delay(2, 0.5), 2s);
  EXPECT_EQ(retry_delay(3, 0.5), 4s);
  EXPECT_EQ(retry_delay(9, 0.5), 256s);
  EXPECT_EQ(retry_delay(10, 0.5), 300s);
  EXPECT_EQ(retry_delay(4'000'000'000, 0.5), 300s);
}

TEST(Retry, AQuarterMoreOrLessIsAMatterOfChance) {
  EXPECT_EQ(retry_delay(1, 0), 750ms);
  EXPECT_EQ(retry_delay(1, 1), 1250ms);
  EXPECT_EQ(retry_delay(30, 0), 225s);
  EXPECT_EQ(retry_delay(30, 1), 300s);
}

}  // namespace
}  // namespace duet::task
