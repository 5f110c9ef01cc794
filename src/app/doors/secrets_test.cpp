#include "app/doors/secrets.h"

#include <set>

#include <gtest/gtest.h>

namespace duet::app {
namespace {

TEST(RandomText, HasSixBitsACharacterAndNoPadding) {
  EXPECT_EQ(random_text(32).size(), 43U);
  EXPECT_EQ(random_text(16).size(), 22U);
  EXPECT_EQ(random_text(0), "");
}

TEST(RandomText, IsAnotherOneEachTimeAndFitForUrls) {
  std::set<std::string> seen;
  std::set<char> letters;
  for (int i = 0; i < 1000; ++i) {
    const std::string text = random_text(32);
    letters.insert(text.begin(), text.end());
    EXPECT_TRUE(seen.insert(text).second);
  }
  EXPECT_EQ(std::string(letters.begin(), letters.end()),
            "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz");
}

TEST(SameSecret, IsTheSameByteForByte) {
  EXPECT_TRUE(is_same_secret("", ""));
  EXPECT_TRUE(is_same_secret("abc", "abc"));
  for (const char* const other : {"abd", "bbc", "aBc", "ab", "abcd", ""}) EXPECT_FALSE(is_same_secret("abc", other));
  EXPECT_FALSE(is_same_secret("\x80", std::string_view("\0", 1)));
}

}  // namespace
}  // namespace duet::app
