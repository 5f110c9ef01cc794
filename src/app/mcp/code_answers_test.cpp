#include "app/mcp/code_answers.h"

#include <boost/json/array.hpp>
#include <gtest/gtest.h>

#include "duet/rpc/value.h"

namespace duet::app::mcp {
namespace {

using boost::json::object;

object parsed(std::string_view text) { return rpc::parse_value(text).as_object(); }

TEST(CodeAnswers, ADefinitionIsWhatTheContractShows) {
  const object at = parsed(
      R"({"file":"/srv/hello/src/main.cpp","line":7,"column":21,"text":"  const int count = greet(\"world\");"})");
  const SourcePart part{.file = "/srv/hello/src/main.cpp",
                        .line = 4,
                        .column = 5,
                        .end_line = 4,
                        .first_line = 4,
                        .text = "int greet(const std::string& name) { return static_cast<int>(name.size()); }"};
  Standing standing{.server = "clangd"};
  const ToolResult result =
      definition_page(at, "function greet → int\nCounts the letters of a name.", {part}, standing, "/srv/hello")
          .cut({}, 16'000, "call");
  EXPECT_EQ(result.text,
            "at src/main.cpp:7:21  const int count = greet(\"world\");\n"
            "function greet → int\nCounts the letters of a name.\n\n"
            "src/main.cpp:4-4, column 5\n"
            "4  int greet(const std::string& name) { return static_cast<int>(name.size()); }\n\n"
            "clangd, fresh, complete, root /srv/hello");
  EXPECT_EQ(result.structured->at("hover"), "function greet → int\nCounts the letters of a name.");
  EXPECT_EQ(rpc::to_text(result.structured->at("definitions")),
            R"([{"file":"src/main.cpp","line":4,"column":5,"end_line":4,)"
            R"("text":"int greet(const std::string& name) { return static_cast<int>(name.size()); }"}])");
}

TEST(CodeAnswers, ALongDefinitionGoesOnWithItsOwnLineNumbers) {
  std::string text;
  for (int i = 1; i <= 300; ++i) text += "line " + std::to_string(i) + (i < 300 ? "\n" : "");
  const object at = parsed(R"({"file":"/p/a.c","line":1,"column":1,"text":"x"})");
  const SourcePart part{.file = "/p/a.c", .line = 1, .column = 1, .end_line = 300, .first_line = 1, .text = text};
  const Page page = definition_page(at, "", {part}, {.server = "clangd"}, "/p");
  const ToolResult first = page.cut({}, 1000, "call");
  ASSERT_TRUE(first.structured->contains("next"));
  const auto place = read_cursor(first.structured->at("next").as_string(), "call");
  const ToolResult second = page.cut(*place, 1000, "call");
  const std::int64_t line = second.structured->at("definitions").at(0).at("line").to_number<std::int64_t>();
  const std::string_view shown = second.structured->at("definitions").at(0).at("text").as_string();
  EXPECT_TRUE(shown.starts_with("line " + std::to_string(line) + '\n')) << shown.substr(0, 20);
  EXPECT_NE(second.text.find('\n' + std::to_string(line) + "  line " + std::to_string(line)), std::string::npos);
}

TEST(CodeAnswers, TheExtentIsThatOfTheSymbolWhoseNameIsThere) {
  const object place = parsed(R"({"file":"/p/a.c","line":5,"column":7,"endLine":5,"endColumn":9})");
  const auto symbols = rpc::parse_value(
      R"([{"name":"A","line":1,"column":7,"extent":{"line":1,"column":1,"endLine":9,"endColumn":2},)"
      R"("children":[{"name":"f","line":5,"column":7,"extent":{"line":4,"column":3,"endLine":8,"endColumn":4}}]}])");
  const SourcePart part = extent_of(place, &symbols);
  EXPECT_EQ(part.line, 4U);
  EXPECT_EQ(part.column, 3U);
  EXPECT_EQ(part.end_line, 8U);
  EXPECT_EQ(extent_of(place, nullptr).line, 5U);
}

TEST(CodeAnswers, WhatIsNotFreshOrCompleteSaysSoFirst) {
  const object answer =
      parsed(R"({"symbols":[],"server":"clangd","fresh":false,"reason":"changed","complete":false,"indexing":"1/2"})");
  const ToolResult result = outline_page(answer, "/p/a.c", 2, "/p").cut({}, 16'000, "call");
  EXPECT_TRUE(result.text.starts_with("NOT FRESH (changed)\nINCOMPLETE (indexing)\n")) << result.text;
  EXPECT_EQ(result.structured->at("reason"), "changed");
}

TEST(CodeAnswers, AnOutlineIsAsDeepAsAskedFor) {
  const object answer = parsed(
      R"({"server":"clangd","fresh":true,"complete":true,"symbols":[{"name":"Server","kind":"class","line":1,"column":7,)"
      R"("children":[{"name":"start","kind":"method","detail":"void","line":2,"column":8,"endLine":2,)"
      R"("extent":{"line":2,"column":3,"endLine":4,"endColumn":4}}]}]})");
  const ToolResult deep = outline_page(answer, "/p/s.cpp", 2, "/p").cut({}, 16'000, "call");
  EXPECT_EQ(
      rpc::to_text(deep.structured->at("symbols").at(1)),
      R"({"path":"Server::start","kind":"method","file":"s.cpp","line":2,"column":8,"end_line":4,"detail":"void"})");
  const ToolResult flat = outline_page(answer, "/p/s.py", 1, "/p").cut({}, 16'000, "call");
  EXPECT_EQ(flat.structured->at("symbols").as_array().size(), 1U);
}

TEST(CodeAnswers, ReferencesAreByFileThenLine) {
  const object answer = parsed(
      R"({"at":{"file":"/p/b.c","line":1,"column":1,"text":"x"},"server":"clangd","fresh":true,"complete":true,"places":[)"
      R"({"file":"/p/b.c","line":9,"column":1,"text":"  nine"},{"file":"/p/a.c","line":5,"column":2,"text":"five"},)"
      R"({"file":"/p/b.c","line":2,"column":1,"text":"two"},{"uri":"jdt://x","line":1,"column":1}]})");
  const ToolResult result = references_page(answer, "/p").cut({}, 16'000, "call");
  EXPECT_EQ(result.structured->at("count"), 3);
  EXPECT_NE(result.text.find("a.c:5:2  five\nb.c:2:1  two\nb.c:9:1  nine\n"), std::string::npos) << result.text;
}

TEST(CodeAnswers, DiagnosticsAreOfTheSeverityThatIsAskedForAndCountedAll) {
  const object a = parsed(
      R"({"file":"/p/a.c","server":"clangd","fresh":true,"complete":true,"diagnostics":[)"
      R"({"line":1,"column":2,"endLine":1,"endColumn":3,"severity":"error","message":"bad","source":"clang","code":7,"text":" x"},)"
      R"({"line":2,"column":2,"severity":"information","message":"so","text":"y"}]})");
  const object b = parsed(
      R"({"file":"/p/b.c","server":"clangd","fresh":false,"reason":"pending","complete":true,"diagnostics":[]})");
  const ToolResult result = diagnostics_page({a, b}, "warning", "/p").cut({}, 16'000, "call");
  EXPECT_EQ(result.structured->at("errors"), 1);
  EXPECT_EQ(result.structured->at("fresh"), false);
  EXPECT_EQ(rpc::to_text(result.structured->at("files")),
            R"([{"file":"a.c","fresh":true,"diagnostics":[{"line":1,"column":2,"end_line":1,"end_column":3,)"
            R"("severity":"error","message":"bad","source":"clang","code":"7","text":" x"}]},)"
            R"({"file":"b.c","fresh":false,"reason":"pending","diagnostics":[]}])");
  EXPECT_NE(result.text.find("a.c:1:2-1:3 error: bad [clang 7]\n    x"), std::string::npos) << result.text;
  EXPECT_TRUE(result.text.starts_with("NOT FRESH (pending)\n"));
}

TEST(CodeAnswers, FilesAreShownFromTheRoot) {
  EXPECT_EQ(shown_file("/p/a/b.c", "/p"), "a/b.c");
  EXPECT_EQ(shown_file("/pp/b.c", "/p"), "/pp/b.c");
}

}  // namespace
}  // namespace duet::app::mcp
