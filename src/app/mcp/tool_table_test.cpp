#include "app/mcp/tool_table.h"

#include <regex>
#include <set>

#include <boost/json/array.hpp>
#include <gtest/gtest.h>

#include "duet/rpc/json_scan.h"
#include "duet/rpc/value.h"

namespace duet::app::mcp {
namespace {

using boost::json::object;
using boost::json::value;

// What a schema uses beyond the subset that every client understands; empty: nothing.
std::string fault_of(const value& schema, const std::string& where) {
  static const std::set<std::string_view> words = {"type",  "description", "properties", "required",
                                                   "items", "enum",        "minimum",    "maximum"};
  for (const auto& member : schema.as_object()) {
    if (!words.contains(member.key())) return where + " has " + std::string(member.key());
  }
  const std::string_view type = schema.at("type").as_string();
  if (type == "array") return fault_of(schema.at("items"), where + "[]");
  if (type != "object") return {};
  for (const auto& property : schema.at("properties").as_object()) {
    const std::string fault = fault_of(property.value(), where + '.' + std::string(property.key()));
    if (!fault.empty()) return fault;
  }
  if (const value* const required = schema.as_object().if_contains("required")) {
    for (const value& name : required->as_array()) {
      if (!schema.at("properties").as_object().contains(name.as_string())) return where + " requires what it has not";
    }
  }
  return {};
}

TEST(ToolTable, HasTheTenTools) {
  const ToolTable table({});
  EXPECT_EQ(table.names().size(), 10U);
  const std::regex name("[a-z_]{3,24}");
  for (const Tool& tool : all_tools()) {
    EXPECT_TRUE(std::regex_match(std::string(tool.name), name)) << tool.name;
    EXPECT_LE(tool.description.size(), 700U) << tool.name;
  }
}

TEST(ToolTable, SchemasUseOnlyWhatEveryClientUnderstands) {
  for (const Tool& tool : all_tools()) {
    for (const std::string& text : {tool.input_schema(), tool.output_schema()}) {
      ASSERT_TRUE(rpc::is_valid_json(text)) << tool.name << text;
      const value schema = rpc::parse_value(text);
      EXPECT_EQ(schema.at("type"), "object");
      EXPECT_EQ(fault_of(schema, std::string(tool.name)), "");
    }
  }
}

TEST(ToolTable, IsSmallEnoughForAModelsMind) {
  std::size_t seen = 0;
  for (const Tool& tool : all_tools()) seen += tool.name.size() + tool.description.size() + tool.input_schema().size();
  EXPECT_LE(seen, 12U * 1024);
  EXPECT_LE(ToolTable({}).text(true).size(), 24U * 1024);
}

TEST(ToolTable, AllFourHintsAreSet) {
  const value tools = rpc::parse_value(ToolTable({}).text(false));
  for (const value& tool : tools.as_array()) {
    const object& hints = tool.at("annotations").as_object();
    const std::string_view name = tool.at("name").as_string();
    const bool changes = name == "task_run" || name == "task_cancel";
    EXPECT_EQ(hints.size(), 4U);
    EXPECT_EQ(hints.at("readOnlyHint").as_bool(), !changes) << name;
    EXPECT_EQ(hints.at("destructiveHint").as_bool(), changes) << name;
    EXPECT_EQ(hints.at("openWorldHint").as_bool(), name == "task_run") << name;
    EXPECT_EQ(hints.at("idempotentHint").as_bool(), name != "task_run") << name;
  }
}

TEST(ToolTable, OnlyTheLegacyListSaysWhichToolCanBeATask) {
  const ToolTable table({});
  EXPECT_EQ(table.text(false).find("execution"), std::string::npos);
  const value tools = rpc::parse_value(table.text(true));
  for (const value& tool : tools.as_array()) {
    EXPECT_EQ(tool.as_object().contains("execution"), tool.at("name") == "task_run");
  }
}

TEST(ToolTable, OffersWhatWasChosen) {
  const ToolTable code({.groups = {Group::code}});
  EXPECT_EQ(code.names().size(), 4U);
  EXPECT_EQ(code.find("task_get"), nullptr);
  const ToolTable reading({.read_only = true});
  EXPECT_EQ(reading.names().size(), 8U);
  EXPECT_FALSE(reading.offers(Tool::Name::task_run));
}

TEST(ToolTable, InstructionsAreShort) { EXPECT_LE(instructions().size(), 1500U); }

}  // namespace
}  // namespace duet::app::mcp
