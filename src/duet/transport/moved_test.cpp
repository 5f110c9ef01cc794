#include "duet/transport/moved.h"

#include <gtest/gtest.h>

namespace duet::transport {
namespace {

IoResult::State after(IoResult (*meaning)(ssize_t), ssize_t count, int error = 0) {
  errno = error;
  return meaning(count).state;
}

TEST(IoResult, AReadThatGivesNothingIsTheEnd) {
  EXPECT_EQ(after(moved_by_read, 5), IoResult::State::some);
  EXPECT_EQ(after(moved_by_read, 0), IoResult::State::ended);
}

TEST(IoResult, AWriteThatTakesNothingIsToBeTriedLater) {
  EXPECT_EQ(after(moved_by_write, 5), IoResult::State::some);
  EXPECT_EQ(after(moved_by_write, 0), IoResult::State::blocked);
}

TEST(IoResult, ErrorsAreWaitsOrFailures) {
  for (const auto meaning : {moved_by_read, moved_by_write}) {
    EXPECT_EQ(after(meaning, -1, EAGAIN), IoResult::State::blocked);
    EXPECT_EQ(after(meaning, -1, EINTR), IoResult::State::blocked);
    EXPECT_EQ(after(meaning, -1, ECONNRESET), IoResult::State::broken);
    EXPECT_EQ(meaning(-1).error, ECONNRESET);
  }
}

}  // namespace
}  // namespace duet::transport
