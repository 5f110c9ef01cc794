#include "app/mcp/tool_result.h"

#include <gtest/gtest.h>

namespace duet::app::mcp {
namespace {

TEST(ToolResult, AnErrorIsTwoLines) {
  const ToolResult result = ToolResult::of({.code = "not-found", .problem = "no\nfile.", .remedy = "another one"});
  EXPECT_EQ(result.text, "not-found: no file.\nTry: another one.");
  EXPECT_EQ(result.members(),
            R"("content":[{"type":"text","text":"not-found: no file.\nTry: another one."}],"isError":true)");
}

TEST(ToolResult, BothFormsAreThere) {
  const ToolResult result{.text = "a", .structured = boost::json::object{{"b", 1}}};
  EXPECT_EQ(result.members(), R"("content":[{"type":"text","text":"a"}],"structuredContent":{"b":1})");
}

TEST(ToolResult, NumbersAreGrouped) {
  EXPECT_EQ(grouped(7), "7");
  EXPECT_EQ(grouped(4096), "4,096");
  EXPECT_EQ(grouped(1234567), "1,234,567");
}

TEST(ToolResult, OneLineIsOne) {
  EXPECT_EQ(one_line("a\nb\tc", 10), "a b c");
  EXPECT_EQ(one_line("äöüß", 2), "äö…");
}

}  // namespace
}  // namespace duet::app::mcp
