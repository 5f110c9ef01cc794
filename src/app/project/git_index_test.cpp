#include "app/project/git_index.h"

#include <cstdlib>
#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "app/project/temporary_project_test.h"

namespace duet::app {
namespace {

namespace fs = std::filesystem;

/// A repository whose index git has made.
struct GitIndex : testing::Test {
  void SetUp() override {
    if (std::system("git --version >/dev/null 2>&1") != 0) GTEST_SKIP() << "git is needed";
  }
  void git(const std::string& words) const {
    const std::string command = "git -C '" + place.path().string() + "' -c user.name=x -c user.email=x@y " + words;
    ASSERT_EQ(std::system((command + " >/dev/null 2>&1").c_str()), 0) << command;
  }
  void add(const std::string& path) const {
    fs::create_directories((place.path() / path).parent_path());
    TemporaryProject::write(place.path() / path, "x");
    git("add -f '" + path + "'");
  }
  bool has(const std::string& path, const std::string& project = "") const {
    const Project found = find_project((place.path() / project).string());
    return find_tracked(found, [&](std::string_view tracked) { return tracked == path; }).has_value();
  }

  TemporaryProject place;
};

TEST_F(GitIndex, TellsWhatIsCheckedOut) {
  for (const std::string version : {"2", "4"}) {
    fs::remove_all(place.path() / ".git");
    git("-c index.version=" + version + " init -q");
    git("config index.version " + version);
    add(".aiwg/data");
    add(".aiwg/daemon/tasks.db");
    add("z/" + std::string(200, 'n') + "/long");
    EXPECT_TRUE(has(".aiwg/daemon/tasks.db")) << version;
    EXPECT_TRUE(has("z/" + std::string(200, 'n') + "/long")) << version;
    EXPECT_FALSE(has(".aiwg/daemon/tasks.d")) << version;
    EXPECT_FALSE(has("tasks.db")) << version;
    EXPECT_EQ(TemporaryProject::read(place.path() / ".git/index").at(7), version == "2" ? 2 : 4);
    git("rm -q --cached .aiwg/daemon/tasks.db");
    EXPECT_FALSE(has(".aiwg/daemon/tasks.db")) << version;
  }
}

TEST_F(GitIndex, KnowsHashesOfBothSizes) {
  git("init -q --object-format=sha256");
  add("a");
  add("some/b");
  EXPECT_TRUE(has("some/b"));
}

TEST_F(GitIndex, OfAFolderBelowAndOfAnotherWorktree) {
  git("init -q");
  add("below/deeper/x");
  EXPECT_TRUE(has("deeper/x", "below"));
  EXPECT_TRUE(has("x", "below/deeper"));
  EXPECT_FALSE(has("below/deeper/x", "below"));
  git("commit -qm x");
  git("worktree add -q other");
  EXPECT_TRUE(has("below/deeper/x", "other"));
  EXPECT_TRUE(has("deeper/x", "other/below"));
}

TEST_F(GitIndex, TellsPathsAsGitSpellsThemFromTheProjectsRoot) {
  git("init -q");
  add("Below/Deeper/X");
  EXPECT_TRUE(has("below/deeper/x"));
  EXPECT_TRUE(has("deeper/x", "Below"));
  const Project below = find_project((place.path() / "Below").string());
  EXPECT_EQ(find_tracked(below, [](std::string_view) { return true; }), "Deeper/X");
}

TEST(GitIndexBytes, ThatAreCutOffAreNoEntries) {
  const auto all = [](std::string_view) { return true; };
  EXPECT_FALSE(find_in_index("", all));
  EXPECT_FALSE(find_in_index("DIRC", all));
  std::string index{"DIRC\0\0\0\4\xff\xff\xff\xff", 12};
  for (int i = 0; i < 200; ++i) {
    EXPECT_FALSE(find_in_index(index, all)) << i;
    index += '\xff';
  }
}

}  // namespace
}  // namespace duet::app
