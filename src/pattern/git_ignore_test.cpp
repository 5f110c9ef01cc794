#include "pattern/git_ignore.h"

#include <optional>
#include <string>

#include <gtest/gtest.h>

namespace duet::pattern {
namespace {

bool ignores(const std::string& text, const std::string& path, bool is_folder = false) {
  const auto match = GitIgnore(text).match(path, is_folder);
  return match && match->ignored;
}

TEST(GitIgnore, TheLastPatternThatMatchesDecides) {
  const GitIgnore file("# a comment\n*.o\n!keep.o\n\nkeep.o/\n");
  EXPECT_EQ(file.match("a.o", false), (GitIgnore::Match{2, true}));
  EXPECT_EQ(file.match("keep.o", false), (GitIgnore::Match{3, false}));
  EXPECT_EQ(file.match("keep.o", true), (GitIgnore::Match{5, true}));
  EXPECT_EQ(file.match("a.c", false), std::nullopt);
}

TEST(GitIgnore, APatternWithASlashIsForAPath) {
  EXPECT_TRUE(ignores("a", "x/a"));
  EXPECT_FALSE(ignores("/a", "x/a"));
  EXPECT_FALSE(ignores("y/a", "x/y/a"));
  EXPECT_TRUE(ignores("**/y/a", "x/y/a"));
  EXPECT_TRUE(ignores("x/**/a", "x/a"));
  EXPECT_TRUE(ignores("x/**", "x/y/a"));
  EXPECT_FALSE(ignores("x/*", "x/y/a"));
}

TEST(GitIgnore, LinesEndAsTheyDo) {
  EXPECT_TRUE(
      ignores("\xEF\xBB\xBF"
              "a\r\nb",
              "a"));
  EXPECT_TRUE(ignores("a \t\\ \nb  ", "b"));
  EXPECT_TRUE(ignores("b\\ ", "b "));
  EXPECT_TRUE(ignores("\\#a\n\\!b", "!b"));
}

TEST(GitIgnore, OfAHostileFileOnlyTheFirstPatternsCount) {
  std::string text = "*.log\n";
  for (int line = 0; line < 256; ++line) {
    for (int i = 0; i < 2048; ++i) text += "*?";
    text += '\n';
  }
  text += "/build\n";
  const GitIgnore ignore(text);
  EXPECT_TRUE(ignore.match("a.log", false));
  EXPECT_TRUE(ignore.match("build", true)) << "there is room for what is cheap";
  std::string many;
  for (int line = 0; line < 100'000; ++line) many += "a" + std::to_string(line) + '\n';
  EXPECT_TRUE(GitIgnore(many).match("a19999", false));
  EXPECT_FALSE(GitIgnore(many).match("a20000", false));
  EXPECT_FALSE(ignore.match("*?" + std::string(200, 'x'), false));
}

TEST(GitIgnore, AHostilePatternCostsNoTime) {
  std::string stars;
  for (int i = 0; i < 60; ++i) stars += "**/a*";
  const std::string path = std::string(2'000, 'a') + "/b";
  EXPECT_FALSE(ignores(stars + "/**/c", path));
  EXPECT_FALSE(ignores("*" + stars + "*[!a]b", std::string(4'000, 'a')));
}

}  // namespace
}  // namespace duet::pattern
