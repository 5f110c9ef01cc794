#include "duet/transport/moved.h"

#include <gtest/gtest.h>

namespace duet::transport {
namespace {

Moved::State after(Moved (*meaning)(ssize_t), ssize_t count, int error = 0) {
  errno = error;
  return meaning(count).state;
}

TEST(Moved, AReadThatGivesNothingIsTheEnd) {
  EXPECT_EQ(after(moved_by_read, 5), Moved::State::some);
  EXPECT_EQ(after(moved_by_read, 0), Moved::State::ended);
}

TEST(Moved, AWriteThatTakesNothingIsToBeTriedLater) {
  EXPECT_EQ(after(moved_by_write, 5), Moved::State::some);
  EXPECT_EQ(after(moved_by_write, 0), Moved::State::blocked);
}

TEST(Moved, ErrorsAreWaitsOrFailures) {
  for (const auto meaning : {moved_by_read, moved_by_write}) {
    EXPECT_EQ(after(meaning, -1, EAGAIN), Moved::State::blocked);
    EXPECT_EQ(after(meaning, -1, EINTR), Moved::State::blocked);
    EXPECT_EQ(after(meaning, -1, ECONNRESET), Moved::State::broken);
    EXPECT_EQ(meaning(-1).error, ECONNRESET);
  }
}

}  // namespace
}  // namespace duet::transport
