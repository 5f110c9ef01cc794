#include "task/postgres/pauses.h"

#include <gtest/gtest.h>

namespace duet::task::postgres {
namespace {

using namespace std::chrono_literals;

TEST(PostgresPauses, TheFirstAttemptComesAtOnceAndTheNextOnesLaterAndLater) {
  Pauses pauses;
  EXPECT_EQ(pauses.next(1), 0ms);
  EXPECT_EQ(pauses.next(1), 250ms);
  EXPECT_EQ(pauses.next(1), 500ms);
  EXPECT_EQ(pauses.next(1), 1s);
  EXPECT_EQ(pauses.next(1), 2s);
  EXPECT_EQ(pauses.next(1), 4s);
  EXPECT_EQ(pauses.next(1), Pauses::most);
  EXPECT_EQ(pauses.next(1), Pauses::most);
  EXPECT_EQ(pauses.next(0.5), Pauses::most / 2);
  pauses.begin_anew();
  EXPECT_EQ(pauses.next(1), 0ms);
}

}  // namespace
}  // namespace duet::task::postgres
