#include "app/mcp/mirrored_fields.h"

#include <gtest/gtest.h>

#include "app/mcp/revision.h"

namespace duet::app::mcp {
namespace {

using boost::json::object;

int code(const McpFields& fields, std::string_view method, const object& params,
         std::optional<std::string_view> version) {
  const std::optional<rpc::Error> fault = fault_of_fields(fields, method, params, version);
  return fault ? fault->code() : 0;
}

const object call{{"name", "task_get"}};

TEST(MirroredFields, AModernRequestRepeatsVersionMethodAndName) {
  const McpFields whole{.version = "2026-07-28", .method = "tools/call", .name = "task_get"};
  EXPECT_EQ(code(whole, "tools/call", call, modern_revision), 0);
  for (const auto change : {&McpFields::version, &McpFields::method, &McpFields::name}) {
    McpFields fields = whole;
    fields.*change = std::nullopt;
    EXPECT_EQ(code(fields, "tools/call", call, modern_revision), -32020);
    fields.*change = "TOOLS/CALL";
    EXPECT_EQ(code(fields, "tools/call", call, modern_revision), -32020);
    fields = whole;
    fields.has_repeated = true;
    EXPECT_EQ(code(fields, "tools/call", call, modern_revision), -32020);
  }
}

TEST(MirroredFields, OnlySomeMethodsHaveANameToRepeat) {
  const McpFields list{.version = "2026-07-28", .method = "tools/list"};
  EXPECT_EQ(code(list, "tools/list", {}, modern_revision), 0);
  const McpFields read{.version = "2026-07-28", .method = "resources/read", .name = "duet://tasks"};
  EXPECT_EQ(code(read, "resources/read", {{"uri", "duet://tasks"}}, modern_revision), 0);
  EXPECT_EQ(code(read, "resources/read", {{"uri", "duet://status"}}, modern_revision), -32020);
  const McpFields task{.version = "2026-07-28", .method = "tasks/get"};
  EXPECT_EQ(code(task, "tasks/get", {{"taskId", "x"}}, modern_revision), 0) << "not every client repeats it";
  const McpFields other{.version = "2026-07-28", .method = "tasks/get", .name = "y"};
  EXPECT_EQ(code(other, "tasks/get", {{"taskId", "x"}}, modern_revision), -32020);
}

TEST(MirroredFields, ANameThatIsWrongInItselfIsForOthersToRefuse) {
  const McpFields none{.version = "2026-07-28", .method = "tools/call"};
  EXPECT_EQ(code(none, "tools/call", {{"name", 7}}, modern_revision), 0);
  const McpFields some{.version = "2026-07-28", .method = "tools/call", .name = "7"};
  EXPECT_EQ(code(some, "tools/call", {{"name", 7}}, modern_revision), -32020);
}

TEST(MirroredFields, ANameMayBeEncoded) {
  McpFields fields{.version = "2026-07-28", .method = "tools/call", .name = "=?base64?w6TDtg==?="};
  EXPECT_EQ(code(fields, "tools/call", {{"name", "äö"}}, modern_revision), 0);
  for (const char* wrong : {"=?base64?w6TDtg==", "=?base64?w6TDtg?=",
                            "=?base64?"
                            "?=",
                            "=?BASE64?w6TDtg==?=", "=?base64?="}) {
    fields.name = wrong;
    EXPECT_EQ(code(fields, "tools/call", {{"name", "äö"}}, modern_revision), -32020) << wrong;
  }
  fields.name = "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?=";
  EXPECT_EQ(code(fields, "tools/call", {{"name", "=?base64?literal?="}}, modern_revision), 0);
}

TEST(MirroredFields, AVersionThatIsNotSpokenIsRefusedForItself) {
  const McpFields fields{.version = "2030-01-01"};
  EXPECT_EQ(code(fields, "tools/list", {}, "2030-01-01"), 0) << "the request itself is";
  EXPECT_EQ(code(fields, "tools/list", {}, std::nullopt), -32022);
  EXPECT_EQ(code({.version = "nonsense"}, "tools/list", {}, std::nullopt), -32022);
}

TEST(MirroredFields, ALegacyRequestNeedNotRepeatAnythingButMustBeRight) {
  EXPECT_EQ(code({}, "tools/call", call, std::nullopt), 0);
  EXPECT_EQ(code({.version = "2025-06-18"}, "tools/call", call, std::nullopt), 0);
  EXPECT_EQ(code({.method = "tools/list"}, "tools/call", call, std::nullopt), -32020);
  EXPECT_EQ(code({.method = "tools/call", .name = "task_run"}, "tools/call", call, std::nullopt), -32020);
}

TEST(MirroredFields, NothingOfARequestIsRepeated) {
  const auto fault = fault_of_fields({.version = "2026-07-28", .method = "evil"}, "secret", {}, modern_revision);
  EXPECT_EQ(fault->message(), "Header mismatch: Mcp-Method is not what the body has");
}

TEST(MirroredFields, AHeadThatPromisesAModernRequestNeedsOne) {
  const McpFields fields{.version = "2026-07-28", .method = "tools/list"};
  EXPECT_EQ(read_envelope("tools/list", "{}", batch_revision, &fields).error().code(), -32602);
  EXPECT_EQ(read_envelope("tools/list", R"({"_meta":{}})", batch_revision, &fields).error().code(), -32602);
  EXPECT_TRUE(read_envelope("initialize", "{}", batch_revision, &fields).error().code() == -32020)
      << "of another method";
  const McpFields version{.version = "2026-07-28"};
  EXPECT_TRUE(read_envelope("initialize", "{}", batch_revision, &version));
}

TEST(MirroredFields, WhatANotificationRepeatsMustBeRight) {
  const std::string cancel = R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1)";
  const std::string plain = cancel + "}}";
  const std::string modern = cancel + R"(,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}})";
  const auto code_of = [](const McpFields& fields, const std::string& text) {
    const auto fault = fault_of_notification(fields, text);
    return fault ? fault->code() : 0;
  };
  for (const std::string& text : {plain, modern}) {
    EXPECT_EQ(code_of({}, text), 0) << "it need not";
    EXPECT_EQ(code_of({.version = "2026-07-28", .method = "notifications/cancelled"}, text), 0);
    EXPECT_EQ(code_of({.method = "tools/call"}, text), -32020);
    EXPECT_EQ(code_of({.has_repeated = true}, text), -32020);
  }
  EXPECT_EQ(code_of({.version = "2025-11-25"}, modern), -32020);
  EXPECT_EQ(code_of({.version = "2025-11-25"}, plain), 0);
  EXPECT_EQ(code_of({.version = "1999-01-01"}, plain), -32022);
  const McpFields wrong{.version = "1999-01-01", .method = "x"};
  for (const char* other : {R"({"jsonrpc":"2.0","id":1,"method":"ping"})", R"({"jsonrpc":"2.0","id":1,"result":{}})",
                            "[]", "{", "", R"({"jsonrpc":"2.0","method":"x","params":7})"}) {
    EXPECT_EQ(code_of(wrong, other), 0) << other;
  }
}

}  // namespace
}  // namespace duet::app::mcp
