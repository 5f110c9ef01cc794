#include "automation/ignore_list.h"

#include <gtest/gtest.h>

namespace duet::automation {
namespace {

TEST(IgnoreList, FollowsTheRulesOfGitignore) {
  const IgnoreList list({"*.o", "build/", "/top", "src/gen", "docs/**/*.html", "bad["});
  EXPECT_TRUE(list.ignores("a.o", false));
  EXPECT_TRUE(list.ignores("deep/down/a.o", false));
  EXPECT_TRUE(list.ignores("x/build", true));
  EXPECT_FALSE(list.ignores("x/build", false)) << "the slash means folders";
  EXPECT_TRUE(list.ignores("top", false));
  EXPECT_FALSE(list.ignores("x/top", false));
  EXPECT_TRUE(list.ignores("src/gen", true));
  EXPECT_FALSE(list.ignores("x/src/gen", true));
  EXPECT_TRUE(list.ignores("docs/a/b.html", false));
  EXPECT_FALSE(list.ignores("src/a.cpp", false));
}

TEST(IgnoreList, TheFoldersOfGitAndOfTheDaemonAreAlwaysIgnored) {
  const IgnoreList list;
  EXPECT_TRUE(list.ignores(".git", true));
  EXPECT_TRUE(list.ignores("sub/.git", true));
  EXPECT_TRUE(list.ignores(".aiwg", true));
  EXPECT_FALSE(list.ignores(".gitignore", false));
}

}  // namespace
}  // namespace duet::automation
