#include "app/mcp/scope.h"

#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "app/project/temporary_project_test.h"

namespace duet::app::mcp {
namespace {

namespace fs = std::filesystem;

class ScopeTest : public ::testing::Test {
 protected:
  ScopeTest() {
    fs::create_directories(home_ / ".git");
    fs::create_directories(home_ / "src");
    TemporaryProject::write(home_ / "src/a.cpp", "int a;\n");
    TemporaryProject::write(other_.path() / "b.cpp", "int b;\n");
  }
  Scope scope(std::vector<std::string> allow = {}) {
    return Scope({.project = home_.string(), .allow = std::move(allow)});
  }

  TemporaryProject folder_;
  TemporaryProject other_;
  fs::path home_ = folder_.path() / "home";
};

TEST_F(ScopeTest, FilesAreFromTheRootOrAbsoluteOrUris) {
  Scope home = scope();
  const std::string file = (home_ / "src/a.cpp").string();
  for (const std::string& given :
       {std::string("src/a.cpp"), std::string("./src/../src/a.cpp"), file, "file://" + file}) {
    const auto target = home.locate_file(given);
    ASSERT_TRUE(target) << given;
    EXPECT_EQ(target->path, file);
    EXPECT_EQ(target->root, home_);
  }
}

TEST_F(ScopeTest, WhatLiesOutsideIsRefusedAlsoThroughALink) {
  fs::create_symlink(other_.path() / "b.cpp", home_ / "link.cpp");
  Scope home = scope();
  for (const std::string& given : {(other_.path() / "b.cpp").string(), std::string("link.cpp"), std::string("../x")}) {
    EXPECT_EQ(home.locate(given).error().code, "outside-project") << given;
  }
  EXPECT_EQ(home.locate(home_.string() + "-not/x").error().code, "outside-project");
}

TEST_F(ScopeTest, WhatIsAllowedIsAskedOfItsOwnRoot) {
  fs::create_directories(other_.path() / "inner/.git");
  TemporaryProject::write(other_.path() / "inner/c.cpp", "");
  Scope home = scope({other_.path().string()});
  EXPECT_EQ(home.locate((other_.path() / "b.cpp").string())->root, other_.path());
  EXPECT_EQ(home.locate((other_.path() / "inner/c.cpp").string())->root, other_.path() / "inner");
}

TEST_F(ScopeTest, AnotherWorktreeOfTheSameRepositoryIsInside) {
  fs::create_directories(home_ / ".git/worktrees/w");
  TemporaryProject::write(home_ / ".git/worktrees/w/commondir", "../..\n");
  TemporaryProject::write(other_.path() / ".git", "gitdir: " + (home_ / ".git/worktrees/w").string() + "\n");
  TemporaryProject::write(home_ / ".git/worktrees/w/gitdir", (other_.path() / ".git").string() + "\n");
  Scope home = scope();
  EXPECT_EQ(home.locate((other_.path() / "b.cpp").string())->root, other_.path());
}

TEST_F(ScopeTest, AFolderThatOnlySaysThatItIsAWorktreeIsOutside) {
  const std::string file = (other_.path() / "b.cpp").string();
  const auto code = [&] { return scope().locate(file).error().code; };
  fs::create_directories(home_ / ".git/worktrees/w");
  TemporaryProject::write(home_ / ".git/worktrees/w/commondir", "../..\n");
  TemporaryProject::write(home_ / ".git/worktrees/w/gitdir", (home_ / "elsewhere/.git").string() + "\n");
  TemporaryProject::write(other_.path() / ".git", "gitdir: " + (home_ / ".git/worktrees/w").string() + "\n");
  EXPECT_EQ(code(), "outside-project");
  TemporaryProject::write(other_.path() / ".git", "gitdir: " + (home_ / ".git").string() + "\n");
  EXPECT_EQ(code(), "outside-project");
  fs::remove(other_.path() / ".git");
  fs::create_directory_symlink(home_ / ".git", other_.path() / ".git");
  EXPECT_EQ(code(), "outside-project");
}

TEST_F(ScopeTest, WhatGitNeverMakesIsNotWaitedFor) {
  ASSERT_EQ(mkfifo((other_.path() / ".git").c_str(), 0600), 0);
  EXPECT_EQ(scope().locate((other_.path() / "b.cpp").string()).error().code, "outside-project");
  fs::remove(other_.path() / ".git");
  fs::create_symlink("/dev/zero", other_.path() / ".git");
  EXPECT_EQ(scope().locate((other_.path() / "b.cpp").string()).error().code, "outside-project");
}

TEST_F(ScopeTest, AFileThatIsNotThereIsNotFound) {
  Scope home = scope();
  EXPECT_EQ(home.locate_file("src/none.cpp").error().code, "not-found");
  EXPECT_EQ(home.locate_file("src").error().code, "not-found");
}

TEST_F(ScopeTest, WithoutAFolderThereIsNoProject) {
  Scope none({.project = (home_ / "none").string()});
  EXPECT_EQ(none.home().error().code, "no-project");
  EXPECT_EQ(none.locate("a").error().code, "no-project");
  Scope everything({.project = "/"});
  EXPECT_EQ(everything.home().error().code, "no-project");
}

TEST(SplitPlace, TakesWhatCompilersWrite) {
  EXPECT_EQ(split_place("a.cpp:7:21").line, 7);
  EXPECT_EQ(split_place("a.cpp:7:21").column, 21);
  EXPECT_EQ(split_place("a.cpp:7:21").file, "a.cpp");
  EXPECT_EQ(split_place("a.cpp:7").column, std::nullopt);
  EXPECT_EQ(split_place("a.cpp").line, std::nullopt);
  EXPECT_EQ(split_place("a:b").file, "a:b");
}

}  // namespace
}  // namespace duet::app::mcp
