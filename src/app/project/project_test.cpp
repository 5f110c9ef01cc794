#include "app/project/project.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "app/project/failure.h"

namespace duet::app {
namespace {

namespace fs = std::filesystem;

/// A folder of its own, with the working directory and $HOME put back at the end.
class ProjectRoot : public testing::Test {
 protected:
  ProjectRoot() : before_(open(".", O_PATH | O_DIRECTORY | O_CLOEXEC)) {
    std::string name = testing::TempDir() + "duet-project-XXXXXX";
    top_ = fs::canonical(mkdtemp(name.data()));
    if (const char* home = std::getenv("HOME")) home_ = home;
    setenv("HOME", (top_ / "home").c_str(), 1);
  }
  ~ProjectRoot() override {
    EXPECT_EQ(fchdir(before_.get()), 0);
    home_.empty() ? unsetenv("HOME") : setenv("HOME", home_.c_str(), 1);
    std::error_code ignored;
    fs::remove_all(top_, ignored);
  }

  fs::path folder(const std::string& name) const {
    fs::create_directories(top_ / name);
    return top_ / name;
  }
  void enter(const std::string& name) const { fs::current_path(folder(name)); }
  static std::string found(const std::optional<std::string>& given = {}) {
    const Project project = find_project(given);
    struct stat by_name {};
    struct stat by_descriptor {};
    EXPECT_EQ(fstat(project.directory.get(), &by_descriptor), 0);
    if (stat(project.root.c_str(), &by_name) == 0) {
      EXPECT_EQ(by_name.st_ino, by_descriptor.st_ino) << project.root;
    }
    return project.root;
  }

  base::Fd before_;
  fs::path top_;
  std::string home_;
};

TEST_F(ProjectRoot, IsTheNearestFolderUpwardWithAMark) {
  folder("a/.git");
  folder("a/b/.aiwg");
  enter("a/b/c/d");
  EXPECT_EQ(found(), top_ / "a/b");
  enter("a/e");
  EXPECT_EQ(found(), top_ / "a");
  enter("a");
  EXPECT_EQ(found(), top_ / "a");
}

TEST_F(ProjectRoot, AWorktreeHasAFileInsteadOfAGitFolder) {
  folder("a/.git");
  std::ofstream(folder("a/tree") / ".git") << "gitdir: elsewhere\n";
  std::ofstream(folder("a/other") / ".aiwg") << "no folder\n";
  enter("a/tree/src");
  EXPECT_EQ(found(), top_ / "a/tree");
  enter("a/other/src");
  EXPECT_EQ(found(), top_ / "a");
}

TEST_F(ProjectRoot, IsTheWorkingDirectoryIfThereIsNoMark) {
  enter("a/b");
  EXPECT_EQ(found(), top_ / "a/b");
}

TEST_F(ProjectRoot, IsNeverFoundInHome) {
  folder("home/.aiwg");
  folder("home/work/.git");
  enter("home/plain/sub");
  EXPECT_EQ(found(), top_ / "home/plain/sub");
  enter("home/work/sub");
  EXPECT_EQ(found(), top_ / "home/work");
}

TEST_F(ProjectRoot, IsNeverFoundInAFolderOfAnotherUser) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a folder away";
  folder("a/.git");
  folder("a/b/.git");
  enter("a/b/c");
  ASSERT_EQ(chown((top_ / "a/b").c_str(), 4242, 4242), 0);
  EXPECT_EQ(found(), top_ / "a");
  ASSERT_EQ(chown((top_ / "a/.git").c_str(), 4242, 4242), 0);
  EXPECT_EQ(found(), top_ / "a/b/c") << "somebody else's mark";
}

TEST_F(ProjectRoot, IsNamedWithoutLinks) {
  folder("a/b/.aiwg");
  folder("a/b/c");
  fs::create_directory_symlink(top_ / "a/b/c", top_ / "link");
  enter("link");
  EXPECT_EQ(found(), top_ / "a/b");
  enter("other");
  EXPECT_EQ(found(top_ / "link"), top_ / "a/b/c") << "what is given is not searched from";
  EXPECT_EQ(found("../link/.."), top_ / "a/b");
  EXPECT_EQ(fs::current_path(), top_ / "other") << "the working directory is as before";
}

TEST_F(ProjectRoot, MustExistIfItIsGiven) {
  std::ofstream(top_ / "file") << "x";
  for (const char* name : {"missing", "file", ""}) {
    try {
      (void)find_project(top_ / name / (*name == '\0' ? "nothing/here" : ""));
      ADD_FAILURE() << name;
    } catch (const Failure& failure) {
      EXPECT_NE(std::string(failure.what()).find("--project wants a folder that exists"), std::string::npos);
    }
  }
}

TEST_F(ProjectRoot, AWorkingDirectoryThatIsGoneIsAFailure) {
  enter("a/b");
  fs::remove_all(top_ / "a");
  EXPECT_THROW((void)find_project({}), Failure);
}

TEST_F(ProjectRoot, MayHaveAPathLongerThanTheSystemTakes) {
  const std::string name(250, 'n');
  std::string expected = top_;
  enter(".");
  for (int i = 0; i < 20; ++i) {
    ASSERT_EQ(mkdir(name.c_str(), 0700), 0);
    ASSERT_EQ(chdir(name.c_str()), 0);
    expected += "/" + name;
  }
  ASSERT_EQ(mkdir(".git", 0700), 0);
  ASSERT_EQ(mkdir("sub", 0700), 0);
  ASSERT_EQ(chdir("sub"), 0);
  EXPECT_EQ(found(), expected);
  EXPECT_EQ(found(".."), expected);
}

}  // namespace
}  // namespace duet::app
