#include "app/settings/autostart.h"

#include <sys/stat.h>

#include <string>

#include <gtest/gtest.h>

#include "app/project/temporary_project_test.h"

namespace duet::app {
namespace {

bool wanted_by(const std::string& text) {
  const TemporaryProject folder;
  const std::string file = folder.path() / "config.toml";
  TemporaryProject::write(file, text);
  return autostart_wanted({.user = file});
}

TEST(Autostart, IsWhatTheUsersFileSays) {
  EXPECT_TRUE(wanted_by("[daemon]\nautostart = true\n"));
  EXPECT_TRUE(wanted_by("daemon.autostart = true\n"));
  EXPECT_FALSE(wanted_by("[daemon]\nautostart = false\n"));
  EXPECT_FALSE(wanted_by("max_running = 2\n"));
}

TEST(Autostart, AFileThatSaysNothingCertainStartsNothing) {
  for (const char* text : {"", "[daemon]\nautostart = 1\n", "[daemon]\nautostart = \"true\"\n", "daemon = true\n",
                           "autostart = true\n", "[daemon\nautostart = true\n"}) {
    EXPECT_FALSE(wanted_by(text)) << text;
  }
  EXPECT_FALSE(autostart_wanted({}));
  EXPECT_FALSE(autostart_wanted({.user = "/nowhere/config.toml"}));
}

TEST(Autostart, AFileThatOthersMayWriteDoesNotCount) {
  const TemporaryProject folder;
  const std::string file = folder.path() / "config.toml";
  TemporaryProject::write(file, "[daemon]\nautostart = true\n");
  ASSERT_EQ(chmod(file.c_str(), 0666), 0);
  EXPECT_FALSE(autostart_wanted({.user = file}));
}

TEST(Autostart, TheFileOfTheEnvironmentStandsForTheUsersOwn) {
  const TemporaryProject folder;
  const std::string file = folder.path() / "config.toml";
  TemporaryProject::write(file, "[daemon]\nautostart = true\n");
  EXPECT_FALSE(autostart_wanted({.only = "/nowhere/config.toml", .user = file}));
  EXPECT_TRUE(autostart_wanted({.only = file}));
}

}  // namespace
}  // namespace duet::app
