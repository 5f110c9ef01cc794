#include "bridge/choice.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "duet/transport/temporary_folder_test.h"

namespace duet::bridge {
namespace {

const Definition& named(const std::vector<Definition>& definitions, const std::string& name) {
  return *std::ranges::find(definitions, name, &Definition::name);
}

std::string chosen(const std::vector<Definition>& definitions, const std::string& path) {
  const std::optional<std::size_t> found = FileChoice(definitions).choose(path);
  return found ? definitions[*found].name : "";
}

TEST(ChoiceTest, KnowsTheUsualServers) {
  const std::vector<Definition> known = with_well_known({});
  EXPECT_EQ(chosen(known, "/a/b.cpp"), "clangd");
  EXPECT_EQ(chosen(known, "/a/b.h"), "clangd");
  EXPECT_EQ(chosen(known, "/a/b.py"), "pylsp");
  EXPECT_EQ(chosen(known, "/a/b.go"), "gopls");
  EXPECT_EQ(chosen(known, "/a/b.rs"), "rust-analyzer");
  EXPECT_EQ(chosen(known, "/a/b.tsx"), "typescript-language-server");
  EXPECT_EQ(chosen(known, "/a/b.sh"), "bash-language-server");
  EXPECT_EQ(chosen(known, "/a.cpp/b"), "");
  EXPECT_EQ(chosen(known, "/a/b.cpp.orig"), "");
}

TEST(ChoiceTest, AsksTheSettingsFirstAndInTheirOrder) {
  const std::vector<Definition> all = with_well_known({{.name = "one", .command = {"1"}, .files = {"*.cpp", "*.x"}},
                                                       {.name = "two", .command = {"2"}, .files = {"*.x"}}});
  EXPECT_EQ(chosen(all, "/a.cpp"), "one");
  EXPECT_EQ(chosen(all, "/a.x"), "one");
  EXPECT_EQ(chosen(all, "/a.c"), "clangd");
}

TEST(ChoiceTest, TakesTheGlobsThatRulesTake) {
  const std::vector<Definition> one = {{.name = "one", .command = {}, .files = {"bad[", "*.{x,y}", "[a-c]?"}}};
  EXPECT_EQ(chosen(one, "/q/a.y"), "one");
  EXPECT_EQ(chosen(one, "/q/bä"), "one");
  EXPECT_EQ(chosen(one, "/q/d."), "");
}

TEST(ChoiceTest, FillsInWhatTheSettingsLeaveOut) {
  const std::vector<Definition> all = with_well_known(
      {{.name = "clangd", .command = {"clangd-14", "-j=1"}}, {.name = "pylsp", .command = {}, .files = {"*.pyx"}}});
  EXPECT_EQ(named(all, "clangd").command.front(), "clangd-14");
  EXPECT_EQ(named(all, "clangd").files, named(well_known_servers(), "clangd").files);
  EXPECT_EQ(named(all, "pylsp").command.front(), "pylsp");
  EXPECT_EQ(chosen(all, "/a.py"), "");
  EXPECT_EQ(std::ranges::count(all, "clangd", &Definition::name), 1);
}

TEST(ChoiceTest, FindsTheRootByTheFirstMarkerThatIsThere) {
  const transport::TemporaryFolder folder;
  std::filesystem::create_directories(folder.path() / "project/part/deep");
  std::ofstream(folder.file("project/first")) << "";
  std::ofstream(folder.file("project/part/second")) << "";
  std::ofstream(folder.file("outside")) << "";
  const std::string project = folder.file("project");
  const std::string path = folder.file("project/part/deep/a.c");
  EXPECT_EQ(find_root({"first", "second"}, path, project), project);
  EXPECT_EQ(find_root({"second", "first"}, path, project), folder.file("project/part"));
  EXPECT_EQ(find_root({"outside"}, path, project), project);
  EXPECT_EQ(find_root({}, path, project), project);
  EXPECT_EQ(find_root({"outside"}, folder.file("elsewhere/b.c"), project), folder.path());
  EXPECT_EQ(find_root({"first"}, "/a.c", project), project);
}

TEST(ChoiceTest, NamesLanguages) {
  EXPECT_EQ(language_of("/a/b.cpp"), "cpp");
  EXPECT_EQ(language_of("/a/b.tsx"), "typescriptreact");
  EXPECT_EQ(language_of("/a/Makefile"), "makefile");
  EXPECT_EQ(language_of("/a/.bashrc"), "shellscript");
  EXPECT_EQ(language_of("/a/b"), "plaintext");
}

}  // namespace
}  // namespace duet::bridge
