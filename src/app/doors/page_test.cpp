#include "app/doors/page.h"

#include <filesystem>
#include <fstream>
#include <iterator>

#include <gtest/gtest.h>

#include "app/doors/page_files.h"

namespace duet::app {
namespace {

std::string text_of_web(std::string_view name) {
  std::ifstream file(std::string(DUET_SOURCE_DIR "/web/") + std::string(name), std::ios::binary);
  EXPECT_TRUE(file) << name;
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

bool is_served(const std::string& name) {
  const std::string ending = std::filesystem::path(name).extension();
  const bool is_of_page = ending == ".html" || ending == ".js" || ending == ".css" || ending == ".svg";
  return is_of_page && !name.starts_with("tests/") && !name.ends_with(".test.js");
}

TEST(Page, HasEveryFileByteForByte) {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(DUET_SOURCE_DIR "/web")) {
    const std::string name = std::filesystem::relative(entry.path(), DUET_SOURCE_DIR "/web");
    if (!entry.is_regular_file() || !is_served(name)) continue;
    ++count;
    const PageFile* const file = find_page_file(name == "index.html" ? "/" : "/assets/" + name);
    ASSERT_NE(file, nullptr) << name;
    EXPECT_EQ(file->text, text_of_web(name)) << name;
  }
  EXPECT_EQ(embedded_page().size(), count);
}

TEST(Page, IsNotLarge) {
  std::size_t bytes = 0;
  for (const EmbeddedFile& file : embedded_page()) bytes += file.text.size();
  EXPECT_LE(bytes, 300U * 1024);
}

TEST(Page, HasItsFrontAtTheSlash) {
  const PageFile* const front = find_page_file("/");
  ASSERT_NE(front, nullptr);
  EXPECT_EQ(front->type, "text/html; charset=utf-8");
  EXPECT_EQ(front->etag.size(), 34U);
  EXPECT_TRUE(front->etag.starts_with('"') && front->etag.ends_with('"'));
}

TEST(Page, HasNothingAtOtherPaths) {
  for (const std::string_view path :
       {"", "/index.html", "/assets", "/assets/", "/assets/index.html", "/assets/../", "/rpc", "/web/index.html"}) {
    EXPECT_EQ(find_page_file(path), nullptr) << path;
  }
}

TEST(Page, HasAVersion) { EXPECT_EQ(page_version().size(), 32U); }

}  // namespace
}  // namespace duet::app
