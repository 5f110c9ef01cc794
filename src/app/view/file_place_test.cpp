#include "app/view/file_place.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "duet/transport/temporary_folder_test.h"

namespace duet::app {
namespace {

std::string shown(const FilePlace& place) {
  return place.file + '|' + (place.line ? std::to_string(*place.line) : "-") + '|' +
         (place.column ? std::to_string(*place.column) : "-");
}

TEST(FilePlaceTest, ReadsLineAndColumn) {
  EXPECT_EQ(shown(parse_file_place("a.c")), "a.c|-|-");
  EXPECT_EQ(shown(parse_file_place("a.c:3")), "a.c|3|-");
  EXPECT_EQ(shown(parse_file_place("a.c:3:14")), "a.c|3|14");
  EXPECT_EQ(shown(parse_file_place("a.c:3:14:")), "a.c|3|14");
  EXPECT_EQ(shown(parse_file_place("a:b.c:3:14")), "a:b.c|3|14");
  EXPECT_EQ(shown(parse_file_place(":3")), ":3|-|-");
  EXPECT_EQ(shown(parse_file_place("a.c:x")), "a.c:x|-|-");
  EXPECT_EQ(shown(parse_file_place("a.c:99999999999999999999")), "a.c:99999999999999999999|-|-");
}

TEST(FilePlaceTest, BelievesTheFileSystemMoreThanTheColons) {
  const transport::TemporaryFolder folder;
  std::ofstream(folder.file("a:5")) << "";
  EXPECT_EQ(shown(parse_file_place(folder.file("a:5"))), folder.file("a:5") + "|-|-");
  EXPECT_EQ(shown(parse_file_place(folder.file("a:5:7"))), folder.file("a:5") + "|7|-");
  EXPECT_EQ(shown(parse_file_place(folder.file("a:5:7:9"))), folder.file("a:5") + "|7|9");
}

TEST(FilePlaceTest, BelievesTheFileSystemMoreThanTheHash) {
  const transport::TemporaryFolder folder;
  std::ofstream(folder.file("#1.c")) << "";
  EXPECT_EQ(shown(parse_file_place(folder.file("#1.c:5:7"))), folder.file("#1.c") + "|5|7");
  EXPECT_EQ(parse_file_place(folder.file("#1.c:5:7")).symbol, std::nullopt);
  EXPECT_EQ(parse_file_place(folder.file("#1.c#name")).symbol, "name");
  EXPECT_EQ(parse_file_place("#name").symbol, "name");
}

TEST(FilePlaceTest, LooksForNoFileOfAnotherMachine) {
  const transport::TemporaryFolder folder;
  std::ofstream(folder.file("a:5")) << "";
  EXPECT_EQ(shown(parse_file_place(folder.file("a:5"), false)), folder.file("a") + "|5|-");
  EXPECT_EQ(shown(parse_file_place("src/a.c:3:14", false)), "src/a.c|3|14");
}

TEST(FilePlaceTest, NamesFilesForTheDaemonAndForPeople) {
  const std::string here = std::filesystem::current_path();
  EXPECT_EQ(file_for_daemon("./x/../a.c"), here + "/a.c");
  EXPECT_EQ(file_for_daemon("/\xFF.c"), "file:///%FF.c");
  EXPECT_EQ(file_for_people(here + "/x/a.c"), "x/a.c");
  EXPECT_EQ(file_for_people("/elsewhere/a.c"), "/elsewhere/a.c");
  EXPECT_EQ(file_for_people("file:///%FF.c"), "/\xFF.c");
}

TEST(FilePlaceTest, SaysWhyAFileCannotBeNamed) {
  EXPECT_EQ(file_for_daemon("").error(), "'' names no file");
  EXPECT_EXIT(
      {
        const std::string folder = transport::TemporaryFolder().path();
        std::filesystem::create_directory(folder);
        std::filesystem::current_path(folder);
        std::filesystem::remove(folder);
        const bool told =
            !file_for_daemon("a.c") && file_for_daemon("/a.c") == "/a.c" && file_for_people("/a.c") == "/a.c";
        _exit(told ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace duet::app
