#include "duet/framing/input_buffer.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace duet::framing {
namespace {

TEST(InputBuffer, BorrowsWhatIsFedWhileItHoldsNothing) {
  BlockPool pool;
  InputBuffer buffer(pool);
  const std::string bytes = "abc";
  buffer.feed(bytes);
  EXPECT_EQ(buffer.view().data(), bytes.data());
  buffer.drop(1);
  EXPECT_EQ(buffer.view(), "bc");
  EXPECT_EQ(buffer.view().data(), bytes.data() + 1);
}

TEST(InputBuffer, OwnsWhatItKeeps) {
  BlockPool pool;
  InputBuffer buffer(pool);
  std::string bytes = "abc";
  buffer.feed(bytes);
  buffer.keep();
  bytes = "xyz";
  EXPECT_EQ(buffer.view(), "abc");
  EXPECT_NE(buffer.view().data(), bytes.data());
}

TEST(InputBuffer, PutsWhatIsFedBehindWhatItHolds) {
  BlockPool pool;
  InputBuffer buffer(pool);
  buffer.feed("abc");
  buffer.feed("def");
  EXPECT_EQ(buffer.view(), "abcdef");
  buffer.drop(4);
  buffer.feed("gh");
  EXPECT_EQ(buffer.view(), "efgh");
}

TEST(InputBuffer, TakesNothingWithoutHarm) {
  BlockPool pool;
  InputBuffer buffer(pool);
  buffer.feed({});
  EXPECT_EQ(buffer.view(), "");
  buffer.feed("a");
  buffer.keep();
  buffer.feed({});
  buffer.drop(0);
  EXPECT_EQ(buffer.view(), "a");
}

TEST(InputBuffer, HasRoomOnlyBehindSomething) {
  BlockPool pool;
  InputBuffer buffer(pool);
  EXPECT_TRUE(buffer.room().empty());
  buffer.feed("abc");
  buffer.keep();
  const std::span<char> room = buffer.room();
  ASSERT_GE(room.size(), 3U);
  std::memcpy(room.data(), "def", 3);
  buffer.commit(3);
  EXPECT_EQ(buffer.view(), "abcdef");
  buffer.drop(6);
  EXPECT_TRUE(buffer.room().empty());
}

TEST(InputBuffer, OwnsNoMemoryWhenItIsEmpty) {
  BlockPool pool;
  InputBuffer buffer(pool);
  const std::string bytes(BlockPool::large, 'x');
  buffer.feed(bytes);
  buffer.keep();
  buffer.drop(bytes.size() - 1);
  EXPECT_FALSE(pool.keeps_any());
  buffer.drop(1);
  EXPECT_TRUE(pool.keeps_any());
  EXPECT_EQ(buffer.view(), "");
}

TEST(InputBuffer, OffersRoomInProportionToWhatItHolds) {
  BlockPool pool;
  InputBuffer buffer(pool);
  const std::string bytes(1'000'000, 'x');
  buffer.feed(bytes);
  buffer.keep();
  EXPECT_GE(buffer.room().size(), 2048U);
  EXPECT_LE(buffer.room().size(), 256U * 1024);
}

RC_GTEST_PROP(InputBuffer, IsAQueueOfBytes, (const std::vector<unsigned>& steps)) {
  BlockPool pool;
  InputBuffer buffer(pool);
  std::string expected;
  char next = 0;
  const auto fresh = [&next](std::size_t count) {
    std::string out(count, '\0');
    for (char& c : out) c = next++;
    return out;
  };
  for (const unsigned step : steps) {
    const std::size_t count = step / 4 % 9000 * (step % 64 == 0 ? 50 : 1);
    if (step % 4 < 2) {
      const std::string bytes = fresh(count);
      buffer.feed(bytes);
      buffer.keep();
      expected += bytes;
    } else if (step % 4 == 2) {
      const std::span<char> room = buffer.room();
      const std::string bytes = fresh(std::min(count, room.size()));
      std::copy(bytes.begin(), bytes.end(), room.begin());
      buffer.commit(bytes.size());
      expected += bytes;
    } else {
      const std::size_t dropped = std::min(count, expected.size());
      buffer.drop(dropped);
      expected.erase(0, dropped);
    }
    RC_ASSERT(buffer.view() == expected);
  }
}

}  // namespace
}  // namespace duet::framing
