#include "app/view/record_format.h"

#include <gtest/gtest.h>

#include "duet/rpc/value.h"

namespace duet::app {
namespace {

constexpr std::string_view names[] = {"id",           "state",         "exitCode", "error",
                                      "error.reason", "error.message", "metadata", "metadata."};

std::string formatted(std::string_view format, bool harmless = false) {
  const boost::json::value record = rpc::parse_value(
      R"({"id":"task-1","state":"a\u001bb\nc","exitCode":7,"error":{"reason":"exit"},"metadata":{"after":["task-2"],"a.b":1}})");
  const auto parsed = RecordFormat::parse(format, names);
  return parsed ? parsed->line(record.as_object(), harmless) : parsed.error();
}

TEST(RecordFormat, FieldsStandForTheirValues) {
  EXPECT_EQ(formatted("{id} {exitCode}"), "task-1 7\n");
  EXPECT_EQ(formatted("{error.reason}|{error.message}|{metadata.x.y}|{metadata.after}|{error}"),
            "exit|||[\"task-2\"]|{\"reason\":\"exit\"}\n");
  EXPECT_EQ(formatted("{metadata.a.b}|{metadata.a}"), "1|\n") << "a name may have dots";
}

TEST(RecordFormat, BracesAndEscapes) { EXPECT_EQ(formatted(R"({{{id}}}\t\\\n\x)"), "{task-1}\t\\\n\\x\n"); }

TEST(RecordFormat, NothingSteersATerminal) {
  EXPECT_EQ(formatted("{state}"),
            "a\x1b"
            "b\nc\n");
  EXPECT_EQ(formatted("{state}", true),
            "a\xEF\xBF\xBD"
            "b c\n");
}

TEST(RecordFormat, WhatIsWrongIsNamed) {
  EXPECT_EQ(formatted("{stat}"),
            "--format: there is no field 'stat', perhaps 'state' is meant; there are id, state, exitCode, error, "
            "error.reason, error.message, metadata");
  EXPECT_EQ(formatted("{error.mesage}"),
            "--format: there is no field 'error.mesage', perhaps 'error.message' is meant; there are id, state, "
            "exitCode, error, error.reason, error.message, metadata");
  for (const char* wrong : {"{}", "{.}", "{id.x}", "{error.}", "{error.reason.x}"}) {
    EXPECT_TRUE(formatted(wrong).starts_with("--format: there is no field '")) << wrong;
  }
  EXPECT_EQ(formatted("{id"), "--format: a '{' is not closed; '{{' is a brace");
}

}  // namespace
}  // namespace duet::app
