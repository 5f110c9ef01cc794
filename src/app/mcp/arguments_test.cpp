#include "app/mcp/arguments.h"

#include <gtest/gtest.h>

#include "duet/rpc/value.h"

namespace duet::app::mcp {
namespace {

tl::expected<Arguments, ToolError> read(std::string_view tool, std::string_view given) {
  static const ToolTable table({});
  const Tool& found = *table.find(tool);
  return Arguments::read(found, table.input_schema(found), rpc::parse_value(given).as_object());
}

std::string fault(std::string_view tool, std::string_view given) {
  const auto arguments = read(tool, given);
  return arguments ? "none" : ToolResult::of(arguments.error()).text;
}

TEST(Arguments, WhatModelsWriteDifferentlyIsPutRight) {
  const auto place = read("code_definition", R"({"file":"a.cpp","line":"7","column":3.0})");
  ASSERT_TRUE(place);
  EXPECT_EQ(place->number("line"), 7);
  EXPECT_EQ(place->number("column"), 3);
  using Texts = std::vector<std::string>;
  EXPECT_EQ(read("code_diagnostics", R"({"files":"a.cpp"})")->texts("files"), (Texts{"a.cpp"}));
  EXPECT_EQ(read("code_diagnostics", R"({"files":"[\"a.cpp\",\"b.cpp\"]"})")->texts("files"),
            (Texts{"a.cpp", "b.cpp"}));
  EXPECT_EQ(read("code_diagnostics", R"({"files":"[odd"})")->texts("files"), (Texts{"[odd"}));
}

TEST(Arguments, AnUnknownNameIsRefusedWithTheOneThatWasMeant) {
  const std::string text = fault("task_get", R"({"task_idd":"task-1"})");
  EXPECT_TRUE(text.starts_with("bad-argument: task_get has no argument 'task_idd'.\nTry: ")) << text;
  EXPECT_NE(text.find("did you mean 'task_id'?"), std::string::npos) << text;
}

TEST(Arguments, NothingIsClamped) {
  EXPECT_EQ(fault("task_get", R"({"task_id":"task-1","wait_seconds":51})"),
            "bad-argument: 'wait_seconds' is 51.\nTry: give a whole number from 0 to 50.");
  EXPECT_EQ(fault("code_symbols", R"({"file":"a","depth":0})"),
            "bad-argument: 'depth' is 0.\nTry: give a whole number from 1 to 8.");
  EXPECT_EQ(fault("task_list", R"({"max_bytes":999})"),
            "bad-argument: 'max_bytes' is 999.\nTry: give a whole number from 1000 to 48000.");
  EXPECT_EQ(fault("task_list", R"({"limit":1.5})"),
            "bad-argument: 'limit' is 1.5.\nTry: give a whole number from 1 to 100.");
}

TEST(Arguments, WrongTypesAndWordsAreRefused) {
  EXPECT_EQ(fault("task_get", R"({"task_id":7})"), "bad-argument: 'task_id' is 7.\nTry: give a text.");
  EXPECT_EQ(fault("task_get", R"({"task_id":null})"), "bad-argument: 'task_id' is null.\nTry: give a text.");
  EXPECT_EQ(fault("code_diagnostics", R"({"files":[1]})"), "bad-argument: 'files' is [1].\nTry: give a list of texts.");
  EXPECT_EQ(
      fault("task_list", R"({"state":"runing"})"),
      "bad-argument: 'state' is \"runing\".\nTry: give queued, running, completed, failed or cancelled; did you mean "
      "'running'?");
}

TEST(Arguments, WhatIsRequiredIsMissed) {
  EXPECT_EQ(fault("task_run", "{}"), "bad-argument: 'prompt' is missing.\nTry: give prompt.");
}

TEST(Arguments, ACursorBelongsToAllOtherArguments) {
  const std::string identity = read("task_list", R"({"state":"failed","limit":5})")->identity();
  EXPECT_EQ(read("task_list", R"({"limit":"5","state":"failed","cursor":"x","max_bytes":2000})")->identity(), identity);
  EXPECT_NE(read("task_list", R"({"state":"failed","limit":6})")->identity(), identity);
}

}  // namespace
}  // namespace duet::app::mcp
