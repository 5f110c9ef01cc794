#include "app/project/state_folder.h"

#include <sys/stat.h>

#include <filesystem>

#include <gtest/gtest.h>

#include "app/project/temporary_project_test.h"

namespace duet::app {
namespace {

namespace fs = std::filesystem;

unsigned mode_of(const fs::path& path) {
  struct stat status {};
  EXPECT_EQ(stat(path.c_str(), &status), 0) << path;
  return status.st_mode & 07777U;
}

TEST(StateFolder, IsMadeForItsOwnerAlone) {
  const TemporaryProject place;
  const StateFolder folder = StateFolder::make(place.project());
  EXPECT_EQ(mode_of(place.state()), 0700U);
  EXPECT_EQ(place.read(place.state() / ".gitignore"), "*\n");
}

TEST(StateFolder, IsFoundOnlyIfItIsThere) {
  const TemporaryProject place;
  EXPECT_FALSE(StateFolder::find(place.project()));
  StateFolder::make(place.project());
  EXPECT_TRUE(StateFolder::find(place.project()));
}

TEST(StateFolder, AWiderModeIsMadeNarrowAgain) {
  const TemporaryProject place;
  StateFolder::make(place.project());
  fs::permissions(place.state(), fs::perms(0755));
  StateFolder::make(place.project());
  EXPECT_EQ(mode_of(place.state()), 0700U);
}

TEST(StateFolder, ALinkInItsPlaceIsRefused) {
  const TemporaryProject place;
  fs::create_directories(place.path() / "elsewhere");
  fs::create_directory(place.path() / ".aiwg");
  fs::create_directory_symlink(place.path() / "elsewhere", place.state());
  EXPECT_THROW(StateFolder::make(place.project()), Failure);
  EXPECT_FALSE(StateFolder::find(place.project()));
}

TEST(StateFolder, SmallFilesAreReplacedAsAWhole) {
  const TemporaryProject place;
  const StateFolder folder = StateFolder::make(place.project());
  EXPECT_EQ(folder.read_small("x"), "");
  folder.write_small("x", "a longer text\n");
  folder.write_small("x", "short\n");
  EXPECT_EQ(folder.read_small("x"), "short\n");
  EXPECT_EQ(mode_of(place.state() / "x"), 0600U);
  folder.remove("x");
  EXPECT_EQ(folder.read_small("x"), "");
}

TEST(StateFolder, GoesOnWhenTheProjectIsMoved) {
  const TemporaryProject place;
  const fs::path project = place.path() / "project";
  fs::create_directory(project);
  const StateFolder folder = StateFolder::make(find_project(project.string()));
  fs::rename(project, place.path() / "moved");
  folder.write_small("x", "y");
  EXPECT_EQ(place.read(place.path() / "moved/.aiwg/daemon/x"), "y");
}

TEST(DaemonLock, OneHasItAtATime) {
  const TemporaryProject place;
  const StateFolder folder = StateFolder::make(place.project());
  EXPECT_FALSE(DaemonLock::is_held(folder));
  {
    const std::optional<DaemonLock> lock = DaemonLock::take(folder);
    EXPECT_TRUE(lock);
    EXPECT_TRUE(DaemonLock::is_held(folder));
    EXPECT_FALSE(DaemonLock::take(folder));
  }
  EXPECT_FALSE(DaemonLock::is_held(folder));
  EXPECT_TRUE(DaemonLock::take(folder));
}

TEST(DaemonLock, IsHandedOnToTheProgramThatTheProcessGoesOnAs) {
  const TemporaryProject place;
  const StateFolder folder = StateFolder::make(place.project());
  std::optional<DaemonLock> lock = DaemonLock::take(folder);
  lock->hand_on();
  const std::optional<DaemonLock> next = DaemonLock::take(folder);
  EXPECT_TRUE(next);
  lock.reset();
  EXPECT_TRUE(DaemonLock::is_held(folder));
  EXPECT_FALSE(DaemonLock::take(folder)) << "it is handed on once";
}

struct LockInPlace : testing::Test {
  bool in_place() const { return lock->is_in_place(place.project()); }

  TemporaryProject place;
  StateFolder folder = StateFolder::make(place.project());
  std::optional<DaemonLock> lock = DaemonLock::take(folder);
};

TEST_F(LockInPlace, UntilTheFolderIsReplaced) {
  EXPECT_TRUE(in_place());
  fs::rename(place.state(), place.path() / "aside");
  EXPECT_FALSE(in_place());
  StateFolder::make(place.project());
  EXPECT_FALSE(in_place());
  EXPECT_TRUE(DaemonLock::take(StateFolder::make(place.project())));
  EXPECT_FALSE(in_place()) << "another lock file is there now";
}

TEST_F(LockInPlace, UntilTheLinkThatLedThereLeadsElsewhere) {
  fs::rename(place.path() / ".aiwg", place.path() / "real");
  fs::create_directory_symlink("real", place.path() / ".aiwg");
  EXPECT_TRUE(in_place());
  fs::remove(place.path() / ".aiwg");
  EXPECT_FALSE(in_place());
  EXPECT_TRUE(DaemonLock::take(StateFolder::make(place.project())));
  EXPECT_FALSE(in_place());
}

TEST(WrittenPid, IsANumberOrNothing) {
  const TemporaryProject place;
  const StateFolder folder = StateFolder::make(place.project());
  EXPECT_FALSE(written_pid(folder));
  for (const char* const text : {"", "x\n", "0\n", "-4\n", "99999999999999999999\n"}) {
    folder.write_small(pid_name, text);
    EXPECT_FALSE(written_pid(folder)) << text;
  }
  folder.write_small(pid_name, "4711\n");
  EXPECT_EQ(written_pid(folder), 4711);
}

}  // namespace
}  // namespace duet::app
