#include "app/daemon/socket_guard.h"

#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "app/project/temporary_project_test.h"
#include "duet/base/log_sink.h"

namespace duet::app {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

struct SocketGuardTest : testing::Test {
  void guard() {
    guarded.emplace(loop, log, place.project(), *folder, [this] {
      ++looks;
      return content;
    });
  }
  /// All notices that have come are taken, and `step` goes by.
  void pass(base::Duration step) {
    for (int i = 0; i < 3; ++i) loop.turn(loop.now());
    clock.advance(step);
    loop.turn(loop.now());
  }
  int looks_within(base::Duration step) {
    const int before = looks;
    pass(step);
    return looks - before;
  }
  void look_twice() {  // a look, and another one for the notices of putting a watch elsewhere
    pass(300ms);
    pass(300ms);
  }

  TemporaryProject place;
  std::optional<StateFolder> folder = StateFolder::make(place.project());
  base::VirtualClock clock;
  transport::Loop loop{clock};
  base::Log log{nullptr};
  int looks = 0;
  bool content = true;
  std::optional<SocketGuard> guarded;
};

TEST_F(SocketGuardTest, NothingHappensWhileNothingChanges) {
  guard();
  EXPECT_EQ(guarded->problem(), "");
  EXPECT_EQ(looks_within(1h), 0);
}

TEST_F(SocketGuardTest, AChangeIsLookedAtOnceAMomentLater) {
  guard();
  place.write(place.state() / "a", "");
  fs::remove(place.state() / "a");
  EXPECT_EQ(looks_within(299ms), 0);
  EXPECT_EQ(looks_within(1ms), 1);
  EXPECT_EQ(looks_within(1h), 0);
}

TEST_F(SocketGuardTest, WhatIsNotRightYetIsLookedAtAgain) {
  guard();
  content = false;
  place.write(place.state() / "a", "");
  EXPECT_EQ(looks_within(300ms), 1);
  EXPECT_EQ(looks_within(2s), 1);
  content = true;
  EXPECT_EQ(looks_within(2s), 1);
  EXPECT_EQ(looks_within(1h), 0);
}

TEST_F(SocketGuardTest, AMovedFolderIsNoticed) {
  guard();
  fs::rename(place.state(), place.path() / "aside");
  EXPECT_EQ(looks_within(300ms), 1);
}

TEST_F(SocketGuardTest, WhereALinkLeadsIsLookedAtNowAndThen) {
  fs::rename(place.path() / ".aiwg", place.path() / "real");
  fs::create_directory_symlink("real", place.path() / ".aiwg");
  guard();
  EXPECT_EQ(looks_within(2s), 1);
  fs::remove(place.path() / ".aiwg");
  EXPECT_EQ(looks_within(2s), 1);
  place.write(place.path() / "real/daemon/a", "");
  EXPECT_EQ(looks_within(300ms), 1) << "changes are still looked at soon";
}

TEST_F(SocketGuardTest, WhatBecomesALinkIsLookedAtNowAndThen) {
  for (const char* part : {".aiwg", ".aiwg/daemon"}) {
    guard();
    fs::rename(place.path() / part, place.path() / "real");
    fs::create_directory_symlink(place.path() / "real", place.path() / part);
    look_twice();
    EXPECT_EQ(looks_within(2s), 1) << part;
    fs::remove(place.path() / part);
    EXPECT_EQ(looks_within(2s), 1) << part;
    fs::rename(place.path() / "real", place.path() / part);
    look_twice();
    pass(2s);
    EXPECT_EQ(looks_within(1h), 0) << part << " is no link any more";
    guarded.reset();
  }
}

struct SocketElsewhere : SocketGuardTest {
  SocketElsewhere() {
    fs::create_directory(there);
    guard();
    guarded->watch_socket(there / "socket");
  }
  fs::path there = place.path() / "there";
};

TEST_F(SocketElsewhere, FilesOfOthersThereConcernNobody) {
  place.write(there / "other", "");
  EXPECT_EQ(looks_within(1h), 0);
  place.write(there / "socket", "");
  EXPECT_EQ(looks_within(300ms), 1);
}

TEST_F(SocketElsewhere, AfterItsFolderWasReplacedTheNewOneIsWatched) {
  fs::rename(there, place.path() / "aside");
  fs::create_directory(there);
  look_twice();
  EXPECT_GE(looks, 1);
  place.write(there / "socket", "");
  EXPECT_EQ(looks_within(300ms), 1);
  fs::remove(there / "socket");
  EXPECT_EQ(looks_within(300ms), 1);
  place.write(place.path() / "aside/socket", "");
  EXPECT_EQ(looks_within(300ms), 0) << "the old folder concerns nobody any more";
}

TEST_F(SocketElsewhere, AFolderThatIsGoneIsWaitedFor) {
  fs::remove_all(there);
  look_twice();
  EXPECT_GE(looks_within(2s), 1);
  fs::create_directory(there);
  EXPECT_GE(looks_within(2s), 1);
  EXPECT_EQ(looks_within(1h), 0) << "it is watched again";
  place.write(there / "socket", "");
  EXPECT_EQ(looks_within(300ms), 1);
}

}  // namespace
}  // namespace duet::app
