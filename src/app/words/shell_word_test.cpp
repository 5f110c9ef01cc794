#include "app/words/shell_word.h"

#include <gtest/gtest.h>

namespace duet::app {
namespace {

TEST(ShellWord, IsInQuotesUnlessItIsPlain) {
  EXPECT_EQ(shell_word("/srv/shop-2.0"), "/srv/shop-2.0");
  EXPECT_EQ(shell_word("/srv/my shop"), "'/srv/my shop'");
  EXPECT_EQ(shell_word("it's"), R"('it'\''s')");
  for (const char* word : {"~", "$HOME", "a;b", "*", "\u00e9", ""}) {
    EXPECT_EQ(shell_word(word), "'" + std::string(word) + "'");
  }
}

}  // namespace
}  // namespace duet::app
