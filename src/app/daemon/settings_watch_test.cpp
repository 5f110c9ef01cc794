#include "app/daemon/settings_watch.h"

#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "duet/base/log.h"
#include "duet/base/log_sink.h"
#include "duet/transport/refused_watches_test.h"
#include "duet/transport/temporary_folder_test.h"

namespace duet::app {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

struct SettingsWatchTest : testing::Test {
  void begin(std::vector<std::string> files) {
    watch.emplace(
        loop, log, std::move(files), [this] { ++told; }, SettingsWatch::Limits{.quiet = 5ms, .most = 50ms});
  }
  static void write(const fs::path& file, const std::string& text) { std::ofstream(file) << text; }
  // Waits until it is told once more, and until nothing is on its way any more.
  bool is_told() {
    const int before = told;
    const auto deadline = std::chrono::steady_clock::now() + 60s;
    while (told == before && std::chrono::steady_clock::now() < deadline) loop.turn(20ms);
    settle();
    return told > before;
  }
  void settle() {
    for (int before = -1; before != told;) {
      before = told;
      for (int i = 0; i < 3; ++i) loop.turn(10ms);
    }
  }

  transport::TemporaryFolder folder;
  transport::Loop loop;
  base::Log log{nullptr};
  std::optional<SettingsWatch> watch;
  int told = 0;
};

TEST_F(SettingsWatchTest, TellsOfAFileThatIsWritten) {
  write(folder.file("a"), "1");
  begin({folder.file("a")});
  write(folder.file("a"), "12");
  EXPECT_TRUE(is_told());
  write(folder.file("b"), "another");
  settle();
  EXPECT_EQ(told, 1);
}

TEST_F(SettingsWatchTest, TellsOfAFileThatIsReplacedMadeOrRemoved) {
  begin({folder.file("a")});
  write(folder.file("new"), "1");
  fs::rename(folder.file("new"), folder.file("a"));
  EXPECT_TRUE(is_told());
  fs::remove(folder.file("a"));
  EXPECT_TRUE(is_told());
  write(folder.file("a"), "2");
  EXPECT_TRUE(is_told());
  ASSERT_EQ(chmod(folder.file("a").c_str(), 0666), 0);
  EXPECT_TRUE(is_told());
}

TEST_F(SettingsWatchTest, TellsOfFilesInFoldersThatAreMadeLater) {
  begin({folder.file("one/two/a")});
  fs::create_directory(folder.file("one"));
  settle();
  fs::create_directory(folder.file("one/two"));
  write(folder.file("one/two/a"), "1");
  EXPECT_TRUE(is_told());
  write(folder.file("one/two/a"), "2");
  EXPECT_TRUE(is_told());
  fs::remove_all(folder.file("one"));
  EXPECT_TRUE(is_told());
  fs::create_directories(folder.file("one/two"));
  write(folder.file("one/two/a"), "3");
  EXPECT_TRUE(is_told());
}

TEST_F(SettingsWatchTest, TellsOfTheFileThatALinkLeadsTo) {
  fs::create_directory(folder.file("there"));
  write(folder.file("there/real"), "1");
  fs::create_symlink("there/real", folder.file("a"));
  begin({folder.file("a")});
  write(folder.file("there/real"), "2");
  EXPECT_TRUE(is_told());
  write(folder.file("there/new"), "3");
  fs::rename(folder.file("there/new"), folder.file("there/real"));
  EXPECT_TRUE(is_told());
  write(folder.file("other"), "4");
  fs::create_symlink("other", folder.file("link"));
  fs::rename(folder.file("link"), folder.file("a"));
  EXPECT_TRUE(is_told());
  write(folder.file("other"), "45");
  EXPECT_TRUE(is_told());
}

TEST_F(SettingsWatchTest, TellsOfTheFileThatALinkLeadsToWhenItComesBack) {
  fs::create_directory(folder.file("there"));
  fs::create_symlink("there/real", folder.file("a"));
  begin({folder.file("a")});
  for (int i = 0; i < 2; ++i) {
    write(folder.file("there/real"), "1");
    EXPECT_TRUE(is_told());
    fs::remove(folder.file("there/real"));
    EXPECT_TRUE(is_told());
  }
}

TEST_F(SettingsWatchTest, TellsOfEachLinkOnTheWay) {
  write(folder.file("b"), "1");
  write(folder.file("c"), "2");
  fs::create_symlink(folder.file("b"), folder.file("middle"));
  fs::create_symlink("middle", folder.file("a"));
  begin({folder.file("a")});
  fs::create_symlink("c", folder.file("new"));
  fs::rename(folder.file("new"), folder.file("middle"));
  EXPECT_TRUE(is_told());
  write(folder.file("c"), "3");
  EXPECT_TRUE(is_told());
}

TEST_F(SettingsWatchTest, TellsOfManyChangesOnce) {
  begin({folder.file("a")});
  for (int i = 0; i < 50; ++i) write(folder.file("a"), std::to_string(i));
  EXPECT_TRUE(is_told());
  EXPECT_EQ(told, 1);
}

TEST_F(SettingsWatchTest, LooksNowAndThenWhereNothingMoreCanBeWatched) {
  transport::on_own_thread([this] {
    transport::Loop own;
    if (!transport::refuse_watches()) return;
    SettingsWatch polling(own, log, {folder.file("a")}, [this] { ++told; }, {.poll = 5ms});
    write(folder.file("a"), "1");
    const auto deadline = std::chrono::steady_clock::now() + 60s;
    while (told == 0 && std::chrono::steady_clock::now() < deadline) own.turn(20ms);
    EXPECT_EQ(told, 1);
  });
}

}  // namespace
}  // namespace duet::app
