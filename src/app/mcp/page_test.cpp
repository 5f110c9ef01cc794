#include "app/mcp/page.h"

#include <boost/json/array.hpp>
#include <gtest/gtest.h>

#include "duet/rpc/value.h"

namespace duet::app::mcp {
namespace {

using boost::json::array;
using boost::json::object;
using boost::json::value;

Page page_of(std::size_t count) {
  Page page{.head = {{"list", array()}}, .add = into_list("list")};
  for (std::size_t i = 0; i < count; ++i) {
    const std::string text = "entry " + std::to_string(i) + std::string(50, 'x');
    page.items.push_back({.json = {{"text", text}}, .text = text});
  }
  return page;
}

PagePlace place(std::string_view cursor) { return *read_cursor(cursor, "call"); }

TEST(Page, WhatFitsIsOneAnswer) {
  const ToolResult all = page_of(3).cut({}, 1000, "call");
  EXPECT_EQ(all.structured->at("list").as_array().size(), 3U);
  EXPECT_FALSE(all.structured->contains("next"));
}

TEST(Page, PagesGoOnWithoutGapOrOverlapWithinTheirBound) {
  const Page page = page_of(100);
  PagePlace from;
  std::vector<std::string> seen;
  for (int pages = 0; pages < 100; ++pages) {
    const ToolResult part = page.cut(from, 1000, "call");
    EXPECT_LE(part.text.size(), 1000U);
    EXPECT_LE(rpc::to_text(*part.structured).size(), 1000U);
    for (const value& entry : part.structured->at("list").as_array()) {
      seen.emplace_back(entry.at("text").as_string());
      EXPECT_NE(part.text.find(seen.back()), std::string::npos);
    }
    const value* const next = part.structured->if_contains("next");
    if (next == nullptr) break;
    EXPECT_NE(part.text.find(next->as_string().c_str()), std::string::npos);
    from = place(next->as_string());
  }
  ASSERT_EQ(seen.size(), 100U);
  for (std::size_t i = 0; i < seen.size(); ++i) EXPECT_EQ(seen[i], "entry " + std::to_string(i) + std::string(50, 'x'));
}

TEST(Page, ALongBodyIsCutAtALineAndGoesOn) {
  std::string body;
  for (int i = 0; i < 200; ++i) body += "line " + std::to_string(i) + " \"quoted\" äöü\n";
  Page page{.head = {{"list", array()}}, .add = into_list("list")};
  Item item{.body = body};
  item.fill = [](Item& filled, std::string_view part, std::size_t) {
    filled.json["text"] = part;
    filled.text = part;
  };
  page.items.push_back(item);
  std::string together;
  PagePlace from;
  for (int pages = 0; pages < 100; ++pages) {
    const ToolResult part = page.cut(from, 1000, "call");
    EXPECT_LE(part.text.size(), 1000U);
    EXPECT_LE(rpc::to_text(*part.structured).size(), 1000U);
    ASSERT_EQ(part.structured->at("list").as_array().size(), 1U);
    together += part.structured->at("list").at(0).at("text").as_string();
    const value* const next = part.structured->if_contains("next");
    if (next == nullptr) break;
    EXPECT_TRUE(together.ends_with('\n'));
    from = place(next->as_string());
  }
  EXPECT_EQ(together, body);
}

TEST(Page, ACursorOfAnotherCallIsRefused) {
  EXPECT_FALSE(read_cursor(cursor_text({.item = 3}, "another"), "call"));
  for (const char* cursor : {"", "1", "1.2", "x.0.abc", "-1.0.abc", "1.0."}) EXPECT_FALSE(read_cursor(cursor, "call"));
  EXPECT_EQ(place(cursor_text({.item = 3, .byte = 9}, "call")).byte, 9U);
}

}  // namespace
}  // namespace duet::app::mcp
