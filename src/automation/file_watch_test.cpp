#include "automation/file_watch.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "automation/scarcity_test.h"
#include "duet/base/few_descriptors_test.h"
#include "duet/base/sanitizer_test.h"
#include "duet/transport/temporary_folder_test.h"

namespace duet::automation {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using Names = std::vector<std::string>;

/// A project whose changes are collected. The kernel has queued an event when the call that caused it returns, and the
/// clock moves only when a test says so: nothing here depends on time.
class Project {
 public:
  explicit Project(
      fs::path path, WatchScope::Wanted wanted = [](std::string_view) { return true; })
      : path_(std::move(path)),
        root_(open(path_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)),
        wanted_(std::move(wanted)) {}

  void watch(const WatchSettings& settings = {}) {
    watch_ = std::make_unique<FileWatch>(
        loop_, root_.get(), settings,
        FileWatch::Actions{
            wanted_,
            [this](const FileChange& change) { told.push_back(std::string(name_of(change.type)) + " " + change.path); },
            [this] { ++tellings; }, [this](const std::string& text) { problems.push_back(text); }},
        limits);
  }
  void change(const WatchSettings& settings, bool (*wanted)(std::string_view)) { watch_->change(settings, wanted); }

  void write(const std::string& name, const std::string& text = "text") const { std::ofstream(path_ / name) << text; }
  void make_folder(const std::string& name) const { fs::create_directories(path_ / name); }
  void move(const std::string& from, const std::string& to) const { fs::rename(path_ / from, path_ / to); }
  void remove(const std::string& name) const { fs::remove_all(path_ / name); }
  const fs::path& path() const { return path_; }
  FileWatch& file_watch() { return *watch_; }

  void turn() { loop_.turn(loop_.now()); }
  void advance(base::Duration step) {
    turn();
    clock_.advance(step);
    turn();
  }
  void advance_before_turn(base::Duration step) {
    clock_.advance(step);
    turn();
  }
  /// Everything that was told since the last time, after all is quiet.
  Names told_changes() {
    for (int i = 0; i < 7; ++i) advance(200ms);
    return std::exchange(told, {});
  }

  /// Turns in which no time passes, until all is read.
  int turns_of_reading() {
    int turns = 0;
    for (; watch_->problem().find("still being read") != std::string::npos && turns < 1'000; ++turns) turn();
    return turns;
  }

  Names told;
  Names problems;
  int tellings = 0;
  WatchLimits limits;

 private:
  fs::path path_;
  base::Fd root_;
  WatchScope::Wanted wanted_;
  base::VirtualClock clock_;
  transport::Loop loop_{clock_};
  std::unique_ptr<FileWatch> watch_;
};

struct FileWatchTest : testing::Test {
  transport::TemporaryFolder folder;
  Project project{folder.path()};
};

TEST_F(FileWatchTest, TellsOfFilesThatAreCreatedModifiedAndDeleted) {
  project.write("old");
  project.watch();
  EXPECT_EQ(project.told_changes(), Names{}) << "what was there before is nothing new";
  project.write("new");
  EXPECT_EQ(project.told_changes(), Names{"file.create new"});
  project.write("old");
  EXPECT_EQ(project.told_changes(), Names{"file.modify old"});
  project.remove("old");
  EXPECT_EQ(project.told_changes(), Names{"file.delete old"});
  project.write("old");
  EXPECT_EQ(project.told_changes(), Names{"file.create old"});
}

TEST_F(FileWatchTest, ASaveByWritingBesideAndRenamingIsAModification) {
  project.write("a.cpp");
  project.watch();
  project.write(".a.cpp.tmp");
  project.move(".a.cpp.tmp", "a.cpp");
  EXPECT_EQ(project.told_changes(), Names{"file.modify a.cpp"});

  project.move("a.cpp", "a.cpp~");  // as vim does it
  project.write("a.cpp");
  project.remove("a.cpp~");
  EXPECT_EQ(project.told_changes(), Names{"file.modify a.cpp"});

  project.remove("a.cpp");
  project.write("a.cpp", "another");
  EXPECT_EQ(project.told_changes(), Names{"file.modify a.cpp"});
}

TEST_F(FileWatchTest, AFileThatComesAndGoesWasNotThere) {
  project.watch();
  project.write("passing");
  project.remove("passing");
  EXPECT_EQ(project.told_changes(), Names{});
}

TEST_F(FileWatchTest, OnlyWhatChangesAFileCounts) {
  project.write("a");
  project.watch();
  fs::permissions(project.path() / "a", fs::perms::owner_all);
  EXPECT_EQ(project.told_changes(), Names{}) << "permissions";
  close(open((project.path() / "a").c_str(), O_WRONLY));
  EXPECT_EQ(project.told_changes(), Names{}) << "opened for writing, but not written";
  fs::last_write_time(project.path() / "a", fs::file_time_type::clock::now() + 1s);
  EXPECT_EQ(project.told_changes(), Names{"file.modify a"}) << "touch";
}

TEST_F(FileWatchTest, WaitsUntilItIsQuietAndTellsABurstAtOnce) {
  project.watch();
  for (int i = 0; i < 5; ++i) {
    project.write("file" + std::to_string(i));
    project.advance(150ms);
  }
  EXPECT_EQ(project.told, Names{});
  EXPECT_EQ(project.told_changes().size(), 5U);
  EXPECT_EQ(project.tellings, 1);
}

TEST_F(FileWatchTest, AFileThatNeverComesToRestIsToldAfterAWhile) {
  project.watch();
  for (int i = 0; i < 110; ++i) {
    project.write("log", std::to_string(i));
    project.advance(100ms);
  }
  EXPECT_EQ(std::exchange(project.told, {}), Names{"file.create log"});
  EXPECT_EQ(project.told_changes(), Names{"file.modify log"});
}

TEST_F(FileWatchTest, AFileThatIsWrittenAllTheTimeIsToldAfterAWhile) {
  project.watch();
  for (int i = 0; i < 110; ++i) {
    project.write("log", std::to_string(i));
    project.advance_before_turn(100ms);  // so that there is always something to read
  }
  EXPECT_EQ(project.told, Names{"file.create log"});
}

TEST(FileWatch, AGitignoreThatNeverComesToRestCountsAfterAWhile) {
  const transport::TemporaryFolder folder;
  Project project(folder.path(), [](std::string_view path) { return path == "a.o"; });
  project.watch();
  for (int i = 0; i < 110; ++i) {
    project.write(".gitignore", "*.o\n");
    project.advance(100ms);
  }
  EXPECT_EQ(project.file_watch().why_not("a.o"), "it is ignored by .gitignore:1");
}

TEST_F(FileWatchTest, ABurstOfFiveThousandFilesIsToldAtOnce) {
  project.make_folder("src");
  project.watch();
  for (int i = 0; i < 5'000; ++i) {
    project.write("src/" + std::to_string(i));
    if (i % 500 == 0) project.turn();
  }
  EXPECT_EQ(project.told_changes().size(), 5'000U);
  EXPECT_EQ(project.tellings, 1);
}

TEST_F(FileWatchTest, ABurstMayPause) {
  project.watch();
  for (int i = 0; i < 100; ++i) project.write(std::to_string(i));
  project.advance(900ms);
  for (int i = 100; i < 200; ++i) project.write(std::to_string(i));
  EXPECT_EQ(project.told_changes().size(), 200U);
  EXPECT_EQ(project.tellings, 1);
}

TEST_F(FileWatchTest, AnOverflowOfTheQueueLosesNothing) {
  project.make_folder("src/deep");
  project.make_folder("gone");
  project.write("src/kept");
  project.write("src/changed");
  project.write("gone/file");
  project.watch();
  project.write("src/changed", "quite different");
  project.remove("gone");
  for (int i = 0; i < 40'000; ++i) {  // alternating, since the kernel joins equal events that follow each other
    project.write(i % 2 == 0 ? "src/x" : "src/y", "");
  }
  project.make_folder("src/new");
  project.write("src/new/file");
  EXPECT_EQ(project.told_changes(), (Names{"file.delete gone/file", "file.modify src/changed",
                                           "file.create src/new/file", "file.create src/x", "file.create src/y"}));
  project.write("src/deep/later");
  project.write("src/new/later");
  EXPECT_EQ(project.told_changes(), (Names{"file.create src/deep/later", "file.create src/new/later"}))
      << "still watched";
}

TEST_F(FileWatchTest, WhatGitNoLongerIgnoresIsNothingNewAlsoInAnOverflow) {
  project.make_folder("let-in");
  project.make_folder("left-out");
  project.write(".gitignore", "/let-in/\n");
  project.write("let-in/old");
  project.write("left-out/old");
  project.watch();
  project.write("left-out/old", "changed");
  project.write(".gitignore", "/left-out/\n");
  for (int i = 0; i < 40'000; ++i) project.write(i % 2 == 0 ? "x" : "y", "");
  EXPECT_EQ(project.told_changes(), (Names{"file.modify .gitignore", "file.create x", "file.create y"}));
  project.write("let-in/old", "changed");
  project.write("left-out/old", "changed again");
  EXPECT_EQ(project.told_changes(), Names{"file.modify let-in/old"});
}

TEST_F(FileWatchTest, FollowsFoldersAndMissesNoFileInThem) {
  project.watch();
  project.make_folder("a/b/c");
  project.write("a/b/c/early");  // before anybody could watch its folder
  EXPECT_EQ(project.told_changes(), Names{"file.create a/b/c/early"});
  project.write("a/b/late");
  EXPECT_EQ(project.told_changes(), Names{"file.create a/b/late"});
}

TEST_F(FileWatchTest, AFolderThatMovesTakesItsFilesAlong) {
  project.make_folder("old/deep");
  project.write("old/deep/file");
  project.write("older");
  project.watch();
  project.move("old", "new");
  EXPECT_EQ(project.told_changes(), (Names{"file.create new/deep/file", "file.delete old/deep/file"}));
  project.write("new/deep/file", "changed");
  EXPECT_EQ(project.told_changes(), Names{"file.modify new/deep/file"});
  project.remove("new");
  project.make_folder("new/deep");
  project.write("new/deep/file", "again");
  EXPECT_EQ(project.told_changes(), Names{"file.modify new/deep/file"});
}

/// A folder that moves while it is read, to where nobody has read yet. The kernel knows it by itself, not by its name:
/// under either name it is the same watch.
class MovingFolderTest : public FileWatchTest {
 protected:
  void SetUp() override {
    project.make_folder("A/a");
    project.write("A/a/f");
    project.make_folder("Z/y/x");
    moving.watch();
    ASSERT_TRUE(moved);
  }

  bool moved = false;
  Project moving{folder.path(), [this](std::string_view path) {
                   if (path == "A/a/f" && !std::exchange(moved, true)) project.move("A/a", "Z/y/x/b");
                   return true;
                 }};
};

TEST_F(MovingFolderTest, IsStillWatched) {
  moving.told_changes();
  moving.write("Z/y/x/b/g");
  EXPECT_EQ(moving.told_changes(), Names{"file.create Z/y/x/b/g"});
}

TEST_F(MovingFolderTest, IsWatchedUnderOtherSettingsToo) {
  moving.change({.paths = {"Z"}, .ignore = {}}, [](std::string_view) { return true; });
  moving.told_changes();
  moving.write("Z/y/x/b/g");
  EXPECT_EQ(moving.told_changes(), Names{"file.create Z/y/x/b/g"});
}

TEST_F(FileWatchTest, AFolderThatALinkHasReplacedHasNoFilesAnyMore) {
  project.make_folder("d/deep");
  project.make_folder("other/deep");
  for (const char* name : {"d/f", "d/deep/f", "other/f", "other/deep/f"}) project.write(name);
  project.watch();
  project.remove("d");
  fs::create_directory_symlink("other", project.path() / "d");
  EXPECT_EQ(project.told_changes(), (Names{"file.delete d/deep/f", "file.delete d/f"}));
}

TEST_F(FileWatchTest, WatchesOnlyTheGivenPathsAlsoWhenTheyComeLater) {
  project.make_folder("other");
  project.watch({.paths = {"./src/", "Makefile", "deep/er"}, .ignore = {}});
  project.write("other/file");
  project.write("Makefile");
  project.write("Makefile.old");
  project.make_folder("src/x");
  project.write("src/x/file");
  project.make_folder("srcs");
  project.write("srcs/file");
  project.make_folder("deep/er/and/deeper");
  project.write("deep/er/and/deeper/file");
  project.write("deep/file");
  EXPECT_EQ(project.told_changes(),
            (Names{"file.create Makefile", "file.create deep/er/and/deeper/file", "file.create src/x/file"}));
  project.remove("src");
  EXPECT_EQ(project.told_changes(), Names{"file.delete src/x/file"});
  project.make_folder("src");
  project.write("src/again");
  EXPECT_EQ(project.told_changes(), Names{"file.create src/again"});
}

TEST_F(FileWatchTest, IgnoredFilesAndFoldersAreNotFollowed) {
  project.make_folder(".git");
  project.make_folder(".aiwg/daemon");
  project.watch({.paths = {}, .ignore = {"*.o", "build/"}});
  for (const char* name : {".git/index", ".aiwg/daemon/daemon.log", "a.o"}) project.write(name);
  project.make_folder("x/build");
  project.write("x/build/out");
  project.make_folder("sub/.git");
  project.write("sub/.git/HEAD");
  project.write("a.c");
  EXPECT_EQ(project.told_changes(), Names{"file.create a.c"});
}

TEST_F(FileWatchTest, SymbolicLinksAreNeitherToldOfNorFollowed) {
  const transport::TemporaryFolder outside;
  fs::create_directory_symlink(outside.path(), project.path() / "before");
  project.watch();
  fs::create_directory_symlink(outside.path(), project.path() / "link");
  fs::create_symlink("me@here.123", project.path() / ".#a");  // as Emacs locks a file
  EXPECT_EQ(project.told_changes(), Names{});
  fs::remove(project.path() / ".#a");
  EXPECT_EQ(project.told_changes(), Names{});
  std::ofstream(outside.file("file")) << "text";
  EXPECT_EQ(project.told_changes(), Names{});
}

TEST_F(FileWatchTest, FilesThatNobodyAsksForHoldNothingUp) {
  Project picky(folder.path(), [](std::string_view path) { return path.ends_with(".c"); });
  picky.watch();
  picky.write("a.c");
  for (int i = 0; i < 3; ++i) {
    picky.advance(100ms);
    picky.write("log", std::to_string(i));
  }
  EXPECT_EQ(picky.told, Names{"file.create a.c"});
}

TEST_F(FileWatchTest, NamesMayBeAnyBytes) {
  project.watch();
  project.write("\xFF\n \"x\"");
  EXPECT_EQ(project.told_changes(), Names{"file.create \xFF\n \"x\""});
}

// ---- what git ignores ----

TEST_F(FileWatchTest, WhatGitIgnoresIsNeitherToldNorWatched) {
  project.make_folder("src/deep");
  project.make_folder("node_modules/x");
  project.write(".gitignore", "*.o\nnode_modules/\n/out\n!keep.o\n");
  project.write("src/.gitignore", "deep/gen*\n!*.o\n");
  project.watch();
  for (const char* name : {"a.o", "keep.o", "out", "node_modules/x/f", "src/a.o", "src/out", "src/deep/gen.c"}) {
    project.write(name);
  }
  EXPECT_EQ(project.told_changes(), (Names{"file.create keep.o", "file.create src/a.o", "file.create src/out"}));
  EXPECT_EQ(project.file_watch().why_not("a.o"), "it is ignored by .gitignore:1");
  EXPECT_EQ(project.file_watch().why_not("node_modules/x/f"), "node_modules is ignored by .gitignore:2");
  EXPECT_EQ(project.file_watch().why_not("src/deep/gen.c"), "it is ignored by src/.gitignore:1");
  EXPECT_EQ(project.file_watch().why_not("src/a.o"), std::nullopt);
}

TEST_F(FileWatchTest, AChangedGitignoreTakesEffect) {
  project.make_folder("build");
  project.write("build/old");
  project.write(".gitignore", "build/\n");
  project.watch();
  project.write("build/old", "changed");
  EXPECT_EQ(project.told_changes(), Names{});
  project.write(".gitignore", "*.log\n");
  EXPECT_EQ(project.told_changes(), Names{"file.modify .gitignore"}) << "what is let in is nothing new";
  project.write("build/old", "again");
  project.write("a.log");
  EXPECT_EQ(project.told_changes(), Names{"file.modify build/old"});
  project.write(".gitignore", "build/\n");
  project.told_changes();
  project.write("build/old", "once more");
  project.write("a.log", "is let in");
  EXPECT_EQ(project.told_changes(), Names{"file.modify a.log"});
  project.remove(".gitignore");
  EXPECT_EQ(project.told_changes(), Names{"file.delete .gitignore"});
  project.write("build/new");
  EXPECT_EQ(project.told_changes(), Names{"file.create build/new"});
}

TEST_F(FileWatchTest, AFolderThatComesWithItsGitignoreHasWhatItLetsIn) {
  project.watch();
  project.make_folder("x");
  project.write("x/a.tmp");
  project.write("x/b");
  project.write("x/.gitignore", "*.tmp");
  EXPECT_EQ(project.told_changes(), (Names{"file.create x/.gitignore", "file.create x/b"}));
}

TEST_F(FileWatchTest, TheExcludesOfTheRepositoryCount) {
  project.make_folder(".git/info");
  project.write(".git/info/exclude", "*.secret\n");
  project.watch();
  project.write("a.secret");
  project.write("a");
  EXPECT_EQ(project.told_changes(), Names{"file.create a"});
}

TEST_F(FileWatchTest, GitIsNotAskedIfTheSettingsSaySo) {
  project.write(".gitignore", "*.o\n");
  project.watch({.gitignore = false});
  project.write("a.o");
  EXPECT_EQ(project.told_changes(), Names{"file.create a.o"});
  project.change({}, [](std::string_view) { return true; });
  project.told_changes();
  project.write("a.o", "changed");
  EXPECT_EQ(project.told_changes(), Names{});
}

TEST_F(FileWatchTest, APathOfTheSettingsIsWatchedThoughGitIgnoresIt) {
  project.make_folder("gen/dist");
  project.write(".gitignore", "/gen\n*.map\n");
  project.watch({.paths = {"gen/dist"}});
  project.write("gen/dist/a.js");
  project.write("gen/dist/a.map");
  project.write("gen/b.js");
  EXPECT_EQ(project.told_changes(), Names{"file.create gen/dist/a.js"});
}

// ---- large trees, and other settings ----

TEST_F(FileWatchTest, ALargeTreeIsReadInPortionsAndThatIsSaidMeanwhile) {
  for (int i = 0; i < 300; ++i) project.write("file" + std::to_string(i));
  project.make_folder("a/b/c");
  project.limits.entries_a_slice = 50;
  project.watch();
  EXPECT_EQ(project.file_watch().problem(),
            "the project is still being read: changes in folders that are to come are not noticed");
  EXPECT_GE(project.turns_of_reading(), 6);
  EXPECT_EQ(project.file_watch().problem(), "");
  EXPECT_EQ(project.problems, Names{}) << "which is nothing to be warned of";
  project.write("file7");
  project.write("a/b/c/new");
  EXPECT_EQ(project.told_changes(), (Names{"file.create a/b/c/new", "file.modify file7"}));
}

TEST_F(FileWatchTest, WhatChangesWhileTheTreeIsReadAnewIsTold) {
  for (int i = 0; i < 20; ++i) {
    project.make_folder("folder" + std::to_string(i));
    project.write("folder" + std::to_string(i) + "/old");
  }
  project.limits.entries_a_slice = 5;
  project.watch();
  project.turns_of_reading();
  project.write("folder3/before");
  project.change({}, [](std::string_view) { return true; });
  project.write("folder5/new");
  project.turn();
  project.write("folder7/old", "changed");
  project.make_folder("fresh/deep");
  project.write("fresh/deep/file");
  project.turn();
  project.remove("folder9");
  project.change({}, [](std::string_view) { return true; });
  project.write("folder11/old", "changed");
  EXPECT_GT(project.turns_of_reading(), 5);
  EXPECT_EQ(project.told_changes(),
            (Names{"file.modify folder11/old", "file.create folder3/before", "file.create folder5/new",
                   "file.modify folder7/old", "file.delete folder9/old", "file.create fresh/deep/file"}));
  project.write("folder0/later");
  EXPECT_EQ(project.told_changes(), Names{"file.create folder0/later"});
}

TEST_F(FileWatchTest, WhatOtherSettingsAddIsNothingNewAndWhatTheyLeaveOutIsNotTold) {
  for (const std::string name : {"src", "lib", "build"}) {
    project.make_folder(name);
    project.write(name + "/a.c");
    project.write(name + "/a.h");
  }
  const auto c_files = [](std::string_view path) { return path.ends_with(".c"); };
  const auto all = [](std::string_view) { return true; };
  Project picky(folder.path(), c_files);
  picky.watch({.paths = {"src", "build"}, .ignore = {}});
  picky.change({.paths = {"src", "lib"}, .ignore = {}}, all);
  EXPECT_EQ(picky.told_changes(), Names{});
  for (const char* name : {"src/a.h", "lib/a.c", "build/a.c"}) picky.write(name, "changed");
  EXPECT_EQ(picky.told_changes(), (Names{"file.modify lib/a.c", "file.modify src/a.h"}));
}

// ---- what is needed is not there ----

void make_file_without_descriptor(const fs::path& path) { ASSERT_EQ(mknod(path.c_str(), S_IFREG | 0600, 0), 0); }

TEST_F(FileWatchTest, AFolderMadeWhileDescriptorsAreOutIsWatchedWhenThereAreSome) {
  if (base::under_sanitizer) GTEST_SKIP() << "the sanitizer needs the descriptors that this test takes away";
  project.watch();
  {
    const base::FewDescriptors none;
    project.make_folder("new/deep");
    make_file_without_descriptor(project.path() / "new/deep/file");
    make_file_without_descriptor(project.path() / "seen");
    EXPECT_EQ(project.told_changes(), Names{"file.create seen"});
    EXPECT_EQ(project.file_watch().problem(),
              "new cannot be watched: Too many open files: changes in it are not noticed until it can be");
    EXPECT_EQ(project.problems.size(), 1U) << "it is logged once";
  }
  EXPECT_EQ(project.told_changes(), Names{"file.create new/deep/file"});
  EXPECT_EQ(project.file_watch().problem(), "");
  project.write("new/deep/file", "changed");
  EXPECT_EQ(project.told_changes(), Names{"file.modify new/deep/file"});
}

TEST_F(FileWatchTest, BeginsWhenThereAreDescriptorsForIt) {
  if (base::under_sanitizer) GTEST_SKIP() << "the sanitizer needs the descriptors that this test takes away";
  project.make_folder("src");
  project.write("src/old");
  {
    const base::FewDescriptors none;
    project.watch();
    EXPECT_TRUE(project.file_watch().problem().starts_with("no file is watched: ")) << project.file_watch().problem();
  }
  EXPECT_EQ(project.told_changes(), Names{}) << "what was there is nothing new";
  EXPECT_EQ(project.file_watch().problem(), "");
  project.write("src/old", "changed");
  EXPECT_EQ(project.told_changes(), Names{"file.modify src/old"});
}

TEST_F(FileWatchTest, BeginsWhenTheLoopCanWatchItsQueue) {
  project.write("old");
  {
    const BlindLoops blind;
    project.watch();
    EXPECT_EQ(project.file_watch().problem(), "no file is watched: Invalid argument");
  }
  EXPECT_EQ(project.told_changes(), Names{});
  EXPECT_EQ(project.file_watch().problem(), "");
  project.write("old", "changed");
  EXPECT_EQ(project.told_changes(), Names{"file.modify old"});
}

TEST_F(FileWatchTest, AFileThatCannotBeLookedAtIsLookedAtLater) {
  if (base::under_sanitizer) GTEST_SKIP() << "the sanitizer needs the descriptors that this test takes away";
  project.make_folder("d");
  for (const char* name : {"d/changed", "d/gone", "d/same"}) project.write(name);
  project.watch();
  project.write("d/changed", "changed");
  project.remove("d/gone");
  {
    const base::FewDescriptors none;
    EXPECT_EQ(project.told_changes(), Names{});
  }
  EXPECT_EQ(project.told_changes(), (Names{"file.modify d/changed", "file.delete d/gone"}));
}

// ---- permissions ----

struct FileWatchPermissions : FileWatchTest {
  NoPrivileges none;

  void permit(const std::string& name, bool permitted) const {
    fs::permissions(project.path() / name, permitted ? fs::perms::owner_all : fs::perms::none);
  }
};

TEST_F(FileWatchPermissions, AFolderThatMayNotBeReadAndGoesIsNoProblemAnyMore) {
  project.make_folder("a/secret");
  permit("a/secret", false);
  project.watch();
  EXPECT_EQ(project.file_watch().problem(), "no permission to read a/secret: changes in it are not noticed");
  fs::remove(project.path() / "a/secret");
  EXPECT_EQ(project.told_changes(), Names{});
  EXPECT_EQ(project.file_watch().problem(), "");
  project.make_folder("a/b");
  permit("a/b", false);
  project.told_changes();
  EXPECT_EQ(project.problems.size(), 2U) << "another one is logged again";
  project.move("a", "c");
  project.told_changes();
  EXPECT_EQ(project.file_watch().problem(), "no permission to read c/b: changes in it are not noticed");
  permit("c/b", true);
  project.told_changes();
  EXPECT_EQ(project.file_watch().problem(), "");
}

TEST_F(FileWatchPermissions, FoldersBelowOneThatMayBeEnteredAgainAreRead) {
  project.make_folder("outer/inner/deep");
  project.write("outer/inner/deep/old");
  fs::permissions(project.path() / "outer", fs::perms::owner_read);
  project.watch();
  EXPECT_EQ(project.file_watch().problem(), "no permission to read outer/inner: changes in it are not noticed");
  permit("outer", true);
  EXPECT_EQ(project.told_changes(), Names{}) << "what was there is nothing new";
  EXPECT_EQ(project.file_watch().problem(), "");
  project.write("outer/inner/deep/new");
  EXPECT_EQ(project.told_changes(), Names{"file.create outer/inner/deep/new"});
}

TEST_F(FileWatchPermissions, TheProjectIsReadWhenItMayBeEnteredAgain) {
  project.make_folder("inner");
  permit("", false);
  project.watch();
  EXPECT_EQ(project.file_watch().problem(), "no permission to read the project: changes in it are not noticed");
  permit("", true);
  EXPECT_EQ(project.told_changes(), Names{});
  EXPECT_EQ(project.file_watch().problem(), "");
  project.make_folder("new");
  permit("", false);
  EXPECT_EQ(project.told_changes(), Names{});
  EXPECT_EQ(project.file_watch().problem(), "no permission to read new: changes in it are not noticed");
  permit("", true);
  project.write("new/file");
  EXPECT_EQ(project.told_changes(), Names{"file.create new/file"});
  EXPECT_EQ(project.file_watch().problem(), "");
}

TEST(FileWatch, WorksInAProjectWithAPathOfAThousandBytes) {
  const transport::TemporaryFolder folder;
  const fs::path path = fs::path(folder.file_of_length(1'000, "x")).parent_path();
  Project project(path);
  project.watch();
  project.make_folder("src");
  project.write("src/a");
  EXPECT_EQ(project.told_changes(), Names{"file.create src/a"});
}

TEST_F(FileWatchTest, NothingIsLeftInTheLoopWhenItGoes) {
  project.watch();
  project.make_folder("a");
  project.write("a/b");
  project.turn();
  project.watch();  // in the middle of settling
  EXPECT_EQ(project.told_changes(), Names{});
}

// The limit is one of a user namespace of its own, so that no other program feels it.
int told_of_the_limit(Project& project) {
  constexpr int cannot_test = 77;
  if (unshare(CLONE_NEWUSER) != 0) return cannot_test;
  std::ofstream limit("/proc/sys/user/max_inotify_watches");
  if (!(limit << 5 << std::flush)) return cannot_test;
  project.watch();
  const std::string problem = project.file_watch().problem();
  const bool named = problem.find("limit of watched folders") != std::string::npos &&
                     problem.find("fs.inotify.max_user_watches") != std::string::npos && project.problems.size() == 1;
  project.write("in-the-root");
  return named && project.told_changes() == Names{"file.create in-the-root"} ? 0 : 1;
}

// Watches are given back while others wait for them.
int watched_when_there_is_room(Project& project) {
  constexpr int cannot_test = 77;
  if (unshare(CLONE_NEWUSER) != 0) return cannot_test;
  std::ofstream limit("/proc/sys/user/max_inotify_watches");
  if (!(limit << 5 << std::flush)) return cannot_test;
  project.watch();
  if (project.file_watch().problem().empty()) return 2;
  for (int i = 0; i < 8; ++i) project.remove("folder" + std::to_string(i));
  project.told_changes();
  if (!project.file_watch().problem().empty()) return 3;
  project.write("folder9/file");
  return project.told_changes() == Names{"file.create folder9/file"} ? 0 : 4;
}

TEST_F(FileWatchTest, WatchesMoreFoldersWhenTheLimitHasRoomAgain) {
  for (int i = 0; i < 10; ++i) project.make_folder("folder" + std::to_string(i));
  const pid_t child = fork();
  if (child == 0) _exit(watched_when_there_is_room(project));
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "no user namespace with a limit of its own here";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_F(FileWatchTest, SaysThatTheLimitOfWatchesIsReachedAndGoesOnWithWhatItHas) {
  for (int i = 0; i < 10; ++i) project.make_folder("folder" + std::to_string(i));
  const pid_t child = fork();
  if (child == 0) _exit(told_of_the_limit(project));
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "no user namespace with a limit of its own here";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

// Any sequence of changes: what was told, applied to what was there, gives what is there now.
RC_GTEST_PROP(FileWatch, WhatIsToldAddsUpToWhatIsThere, ()) {
  const transport::TemporaryFolder folder;
  Project project(folder.path());
  project.watch();
  std::set<std::string> believed;
  const auto steps = *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 10));
  const auto any_name = [] { return *rc::gen::element<std::string>("a", "b", "a/x", "b/x", "a/x/y", "b/y/z", "c"); };
  for (const int step : steps) {
    std::error_code ignored;
    const fs::path path = project.path() / any_name();
    if (step < 3) fs::create_directories(path, ignored);
    if (step >= 3 && step < 6) std::ofstream(path) << "text";
    if (step == 6) fs::remove_all(path, ignored);
    if (step == 7) fs::rename(path, project.path() / any_name(), ignored);
    if (step == 8) project.turn();
    if (step == 9) project.advance(250ms);
  }
  for (const std::string& line : project.told_changes()) {
    const std::string path = line.substr(line.find(' ') + 1);
    if (line.starts_with("file.create")) RC_ASSERT(believed.insert(path).second);
    if (line.starts_with("file.modify")) RC_ASSERT(believed.contains(path));
    if (line.starts_with("file.delete")) RC_ASSERT(believed.erase(path) == 1U);
  }
  std::set<std::string> there;
  for (const auto& entry : fs::recursive_directory_iterator(project.path())) {
    if (entry.is_regular_file()) there.insert(fs::relative(entry.path(), project.path()));
  }
  RC_ASSERT(believed == there);
}

}  // namespace
}  // namespace duet::automation
