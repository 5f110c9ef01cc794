#include "app/doctor/doctor.h"

#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

namespace duet::app {
namespace {

using Verdict = Finding::Verdict;

/// A project whose daemon is dead.
class DoctorTest : public ::testing::Test {
 protected:
  DoctorTest() {
    std::string path = (std::filesystem::temp_directory_path() / "doctor-XXXXXX").string();
    root_ = mkdtemp(path.data());
    project_ = find_project(root_.string());
  }
  ~DoctorTest() override { std::filesystem::remove_all(root_); }

  void write(const std::string& name, const std::string& text) const {
    std::ofstream(root_ / ".aiwg/daemon" / name) << text;
  }

  void write_file(const std::string& name, const std::string& text) const { std::ofstream(root_ / name) << text; }

  std::filesystem::path root_;
  Project project_;
};

TEST_F(DoctorTest, FindsAndClearsAwayWhatADeadDaemonLeft) {
  const StateFolder folder = StateFolder::make(project_);
  write("daemon.pid", "4711\n");
  const std::vector<Finding> found = check_leftovers(folder, false);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].verdict, Verdict::wrong);
  EXPECT_NE(found[0].text.find("daemon.pid"), std::string::npos);
  EXPECT_EQ(check_leftovers(folder, true).at(0).verdict, Verdict::fixed);
  EXPECT_EQ(check_leftovers(folder, false).at(0).verdict, Verdict::good);
}

TEST_F(DoctorTest, AFolderInTheSocketsPlaceIsNoLeftover) {
  const StateFolder folder = StateFolder::make(project_);
  std::filesystem::create_directory(root_ / ".aiwg/daemon/daemon.sock");
  EXPECT_EQ(check_leftovers(folder, true).at(0).verdict, Verdict::good);
  EXPECT_TRUE(std::filesystem::exists(root_ / ".aiwg/daemon/daemon.sock"));
}

/// What is wrong with the place, or nothing.
std::string fault_of(const std::vector<Finding>& found) {
  return found.at(0).verdict == Verdict::good ? "" : found.at(0).text;
}

TEST_F(DoctorTest, WhatKeepsADaemonFromStartingIsFound) {
  EXPECT_EQ(fault_of(check_place(project_)), "") << "a new project";
  EXPECT_FALSE(std::filesystem::exists(root_ / ".aiwg")) << "nothing is made to find out";
  write_file(".aiwg", "");
  EXPECT_NE(fault_of(check_place(project_)).find(".aiwg cannot be opened (Not a directory)"), std::string::npos);
  std::filesystem::remove(root_ / ".aiwg");
  const StateFolder folder = StateFolder::make(project_);
  EXPECT_EQ(fault_of(check_place(project_)), "");
  for (const char* name : {"daemon.sock", "daemon.lock", "daemon.log"}) {
    const std::filesystem::path path = root_ / ".aiwg/daemon" / name;
    if (std::string_view(name) == "daemon.sock") {
      write(name, "no socket");
    } else {
      std::filesystem::create_directory(path);
    }
    EXPECT_EQ(fault_of(check_place(project_)).find(std::string(".aiwg/daemon/") + name + " is no "), 0U);
    std::filesystem::remove(path);
  }
}

TEST_F(DoctorTest, AFolderNobodyMayWriteToIsFound) {
  chmod(root_.c_str(), 0555);
  const bool is_root = geteuid() == 0;  // who may write everywhere
  EXPECT_EQ(is_root ? seteuid(65534) : 0, 0);
  const std::vector<Finding> found = check_place(project_);
  EXPECT_EQ(is_root ? seteuid(0) : 0, 0);
  EXPECT_NE(fault_of(found).find("nothing can be written"), std::string::npos);
}

TEST_F(DoctorTest, AReadOnlyFileSystemIsFound) {
  if (mount("none", root_.c_str(), "tmpfs", MS_RDONLY, nullptr) != 0) GTEST_SKIP() << "may not mount";
  const std::vector<Finding> found = check_place(find_project(root_.string()));
  umount2(root_.c_str(), MNT_DETACH);
  EXPECT_NE(fault_of(found).find("Read-only file system"), std::string::npos);
}

TEST_F(DoctorTest, AFullDiskIsFound) {
  if (mount("none", root_.c_str(), "tmpfs", 0, "size=64k") != 0) GTEST_SKIP() << "may not mount";
  const std::vector<Finding> found = check_place(find_project(root_.string()));
  umount2(root_.c_str(), MNT_DETACH);
  EXPECT_NE(fault_of(found).find("make room"), std::string::npos);
}

TEST_F(DoctorTest, AStateFolderOfAnotherUserIsFound) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to give a folder away";
  const StateFolder folder = StateFolder::make(project_);
  ASSERT_EQ(chown((root_ / ".aiwg/daemon").c_str(), 65534, 65534), 0);
  EXPECT_NE(fault_of(check_place(project_)).find("belongs to another user"), std::string::npos);
}

TEST(Doctor, ALanguageServerWithoutItsProgramIsWrong) {
  const std::vector<Finding> found = check_servers({{.name = "good", .command = {"sh"}},
                                                    {.name = "lost", .command = {"no-such-server"}},
                                                    {.name = "clangd", .command = {}}},
                                                   {{"PATH", "/bin"}});
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[0].verdict, Verdict::good);
  EXPECT_EQ(found[1].verdict, Verdict::wrong);
  EXPECT_NE(found[1].text.find("no-such-server is not found"), std::string::npos);
  EXPECT_EQ(found[2].subject, "language server clangd");
}

TEST_F(DoctorTest, AStoreThatWasCutOffIsWrong) {
  const StateFolder folder = StateFolder::make(project_);
  EXPECT_EQ(check_store(folder).verdict, Verdict::good);
  write("tasks.db", "no database");
  EXPECT_EQ(check_store(folder).verdict, Verdict::wrong);
}

TEST(Doctor, AnAgentWithoutItsProgramIsWrongAndNoDefaultIsANote) {
  task::TaskSettings settings;
  settings.agents["good"] = {.command = {"/bin/sh", "{prompt}"}};
  settings.agents["lost"] = {.command = {"no-such-program", "{prompt}"}};
  settings.agents["mute"] = {.command = {"/bin/true"}};
  const std::vector<Finding> found = check_agents(settings, {{"PATH", "/bin"}}, "/");
  ASSERT_EQ(found.size(), 4U);
  EXPECT_EQ(found[0].verdict, Verdict::note);
  EXPECT_EQ(found[1].verdict, Verdict::good);
  EXPECT_EQ(found[2].verdict, Verdict::wrong);
  EXPECT_EQ(found[3].verdict, Verdict::note) << "it never sees its prompt";
}

TEST(Doctor, ABuiltInAgentWhoseCommandIsLeftAsItIsIsLookedFor) {
  task::TaskSettings settings;
  settings.agents["shell"].max_running = 2;
  settings.agents["claude"].max_running = 2;
  const std::vector<Finding> findings = check_agents(settings, {{"PATH", "/nowhere"}}, "/");
  ASSERT_EQ(findings.size(), 3U);
  EXPECT_EQ(findings[1].verdict, Verdict::wrong) << findings[1].text;
  EXPECT_EQ(findings[2].verdict, Verdict::good) << findings[2].text;
}

TEST(Doctor, AnAgentOfTheProjectIsLookedForFromItsRoot) {
  task::TaskSettings settings;
  settings.agents["mine"] = {.command = {"bin/sh", "{prompt}"}};
  EXPECT_EQ(check_agents(settings, {{"PATH", "/nowhere"}}, "/").at(1).verdict, Verdict::good);
  EXPECT_EQ(check_agents(settings, {{"PATH", "/nowhere"}}, "/nowhere").at(1).verdict, Verdict::wrong);
}

TEST(Doctor, ADefaultAgentThatIsNotInstalledIsWrong) {
  task::TaskSettings settings;
  settings.default_agent = "claude";
  EXPECT_EQ(check_agents(settings, {{"PATH", "/nowhere"}}, "/").at(0).verdict, Verdict::wrong);
  settings.agents["claude"] = {.command = {"/bin/sh", "{prompt}"}};
  EXPECT_EQ(check_agents(settings, {{"PATH", "/nowhere"}}, "/").at(0).verdict, Verdict::good);
}

TEST(Doctor, BadSettingsAreWrongWithTheirText) {
  const Finding found = check_settings(SettingsError{"file:1:2: bad"});
  EXPECT_EQ(found.verdict, Verdict::wrong);
  EXPECT_EQ(found.text, "file:1:2: bad");
}

}  // namespace
}  // namespace duet::app
