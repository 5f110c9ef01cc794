#include "automation/watch_scope.h"

#include <gtest/gtest.h>

namespace duet::automation {
namespace {

bool all(std::string_view) { return true; }

TEST(WatchScope, IsTheWholeProjectUnlessPathsAreNamed) {
  const WatchScope whole({}, all);
  EXPECT_TRUE(whole.follows("") && whole.follows("a/b") && whole.tells("a/b/c"));
  const WatchScope part({.paths = {"./src//x/", "Makefile"}}, all);
  EXPECT_TRUE(part.follows("src")) << "on the way there";
  EXPECT_FALSE(part.follows("srcs"));
  EXPECT_TRUE(part.tells("src/x/y") && part.tells("Makefile"));
  EXPECT_FALSE(part.tells("src/y") || part.tells("Makefile.old"));
}

TEST(WatchScope, ReachesNothingInAFolderThatIsIgnored) {
  const WatchScope scope({.ignore = {"build/", "*.o"}}, all);
  EXPECT_TRUE(scope.tells("build/x")) << "if its folder were followed";
  EXPECT_FALSE(scope.reaches("build/x"));
  EXPECT_FALSE(scope.reaches("a/build/b/x"));
  EXPECT_FALSE(scope.reaches("a/x.o"));
  EXPECT_FALSE(scope.reaches(".git/x"));
  EXPECT_TRUE(scope.reaches("a/b/x") && scope.reaches("x"));
}

TEST(WatchScope, TellsOnlyWhatSomebodyAsksFor) {
  const WatchScope scope({}, [](std::string_view path) { return path.ends_with(".c"); });
  EXPECT_TRUE(scope.reaches("a/b.c"));
  EXPECT_FALSE(scope.reaches("a/b.h"));
  EXPECT_FALSE(scope.reaches(std::string(5'000, 'x') + ".c")) << "too long to be looked at";
}

}  // namespace
}  // namespace duet::automation
