#include "bridge/compile_commands.h"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "duet/transport/temporary_folder_test.h"

namespace duet::bridge {
namespace {

namespace fs = std::filesystem;

struct CompileCommandsTest : testing::Test {
  /// `age`: so many hours ago.
  std::string add(const std::string& name, int age = 0) {
    const fs::path path = folder.path() / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << "[]";
    fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::hours(age));
    return path.parent_path().string();
  }
  std::optional<std::string> find() { return find_compile_commands(folder.path().string()); }

  transport::TemporaryFolder folder;
};

TEST_F(CompileCommandsTest, TheNewestOfAllBuildFoldersCounts) {
  EXPECT_EQ(find(), std::nullopt);
  const std::string debug = add("build-debug/compile_commands.json", 3);
  EXPECT_EQ(find(), debug);
  const std::string dev = add("build/dev/compile_commands.json", 2);
  EXPECT_EQ(find(), dev);
  const std::string release = add("build_release/compile_commands.json", 1);
  EXPECT_EQ(find(), release);
  const std::string build = add("build/compile_commands.json");
  EXPECT_EQ(find(), build);
  add("other/compile_commands.json");
  add("build/dev/deeper/compile_commands.json");
  EXPECT_EQ(find(), build);
}

TEST_F(CompileCommandsTest, WhatIsInTheRootIsFoundWithoutBeingTold) {
  add("build/dev/compile_commands.json");
  add("compile_flags.txt");
  EXPECT_EQ(find(), std::nullopt);
}

TEST_F(CompileCommandsTest, WhatTheProjectSaysItselfCounts) {
  const std::string dev = add("build/dev/compile_commands.json");
  std::ofstream(folder.path() / ".clangd") << "Diagnostics:\n  UnusedIncludes: Strict\n";
  EXPECT_EQ(find(), dev);
  EXPECT_FALSE(finds_compile_commands(folder.file("c.cpp")));
  std::ofstream(folder.path() / ".clangd") << "CompileFlags:\n  CompilationDatabase: out/debug\n";
  EXPECT_EQ(find(), std::nullopt);
  EXPECT_TRUE(finds_compile_commands(folder.file("c.cpp")));
}

TEST_F(CompileCommandsTest, AFolderOfThatNameIsNone) {
  fs::create_directories(folder.path() / "build-x" / "compile_commands.json");
  EXPECT_EQ(find(), std::nullopt);
  EXPECT_EQ(find_compile_commands("/nowhere/at/all"), std::nullopt);
}

TEST_F(CompileCommandsTest, ClangdLooksUpwardByItself) {
  const std::string file = folder.file("a/b/c.cpp");
  EXPECT_FALSE(finds_compile_commands(file));
  add("a/build/compile_commands.json");
  EXPECT_TRUE(finds_compile_commands(file));
  EXPECT_FALSE(finds_compile_commands(folder.file("c.cpp")));
}

TEST(CompileCommands, ClangdIsKnownByItsNameUnlessItIsToldAlready) {
  EXPECT_TRUE(is_clangd({.name = "x", .command = {"/usr/bin/clangd-14", "--log=error"}}));
  EXPECT_FALSE(is_clangd({.name = "clangd", .command = {"ccls"}}));
  EXPECT_FALSE(is_clangd({.name = "clangd", .command = {"clangd", "--compile-commands-dir=x"}}));
  EXPECT_FALSE(is_clangd({.name = "clangd", .command = {}}));
}

}  // namespace
}  // namespace duet::bridge
