#include "app/project/state_owner.h"

#include <unistd.h>

#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "app/project/temporary_project_test.h"

namespace duet::app {
namespace {

namespace fs = std::filesystem;

/// An index of git, version 2, with one path.
std::string index_with(const std::string& path) {
  std::string entry(60, '\0');  // times, inode, mode, owner, size, SHA-1
  entry += static_cast<char>(0);
  entry += static_cast<char>(path.size());
  entry += path;
  entry.append(8 - entry.size() % 8, '\0');
  return std::string("DIRC\0\0\0\2\0\0\0\1", 12) + entry + std::string(20, '\0');
}

std::string refusal_with(const std::string& path) {
  const TemporaryProject place;
  fs::create_directory(place.path() / ".git");
  TemporaryProject::write(place.path() / ".git/index", index_with(path));
  return why_not_our_state(place.project(), StateFolder::make(place.project())).value_or("");
}

TEST(StateOwner, IsNotWhoHasCommittedIt) {
  EXPECT_NE(refusal_with(".aiwg/daemon/tasks.db").find("files in it"), std::string::npos);
  EXPECT_NE(refusal_with(".aiwg/daemon/tasks/7.1/record").find("git rm -r --cached .aiwg/daemon"), std::string::npos);
  EXPECT_NE(refusal_with(".aiwg").find("the link that leads there"), std::string::npos);
}

TEST(StateOwner, IsNotWhoHasCommittedItInLargeLetters) {
  EXPECT_NE(refusal_with(".AIWG/Daemon/tasks.db").find("files in it"), std::string::npos);
  EXPECT_NE(refusal_with(".Aiwg").find("the link that leads there"), std::string::npos);
}

TEST(StateOwner, IsToldTheNameThatGitHas) {
  const auto cure = [](const std::string& path) {
    const std::string refusal = refusal_with(path);
    return refusal.substr(refusal.find("'git"));
  };
  EXPECT_EQ(cure(".AIWG/Daemon/tasks.db"), "'git rm -r --cached .AIWG/Daemon' there");
  EXPECT_EQ(cure(".aiwg/DAEMON"), "'git rm -r --cached .aiwg/DAEMON' there");
  EXPECT_EQ(cure(".Aiwg"), "'git rm -r --cached .Aiwg' there");
}

TEST(StateOwner, IsTheUserWhateverElseIsCommitted) {
  EXPECT_EQ(refusal_with("README.md"), "");
  EXPECT_EQ(refusal_with(".aiwg/daemon/.gitignore"), "");
  EXPECT_EQ(refusal_with(".aiwg/notes.md"), "");
}

TEST(StateOwner, IsNotForAnotherUsersRepositoryToSay) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a folder away";
  const TemporaryProject above;
  const fs::path own = above.path() / "own";
  fs::create_directory(own);
  fs::create_directory(above.path() / ".git");
  TemporaryProject::write(above.path() / ".git/index", index_with("own/.aiwg/daemon/tasks.db"));
  const auto refusal = [&] {
    const Project project = find_project(own.string());
    return why_not_our_state(project, StateFolder::make(project)).value_or("");
  };
  EXPECT_NE(refusal(), "");
  ASSERT_EQ(chown((above.path() / ".git").c_str(), 4242, 4242), 0);
  EXPECT_EQ(refusal(), "");
  ASSERT_EQ(chown(own.c_str(), 4242, 4242), 0);
  EXPECT_NE(refusal(), "") << "the project is that user's, too";
}

TEST(StateOwner, IsTheUserWithoutGit) {
  const TemporaryProject place;
  EXPECT_FALSE(why_not_our_state(place.project(), StateFolder::make(place.project())));
}

}  // namespace
}  // namespace duet::app
