#include "duet/peer/methods.h"

#include <set>
#include <stdexcept>
#include <string>
#include <string_view>

#include <boost/json/serialize.hpp>
#include <gtest/gtest.h>

#include "duet/peer/connection_fixture_test.h"

namespace duet::peer {
namespace {

Answer nothing(const Request&) { return nullptr; }

Method log_level() {
  return {.name = "setLogLevel",
          .summary = "Sets how much is logged",
          .params = {{.name = "level",
                      .type = rpc::Type::text,
                      .summary = "The least that is logged",
                      .accepted = {"debug", "info"}}},
          .handler = nothing};
}

Method task_list() {
  return {.name = "task.list",
          .summary = "Lists tasks",
          .params = {{.name = "state", .type = rpc::Type::text},
                     {.name = "limit", .type = rpc::Type::integer, .required = false},
                     {.name = "extra", .type = rpc::Type::any, .required = false}},
          .returns = "array",
          .late_handler = [](const Request&, Reply reply) { reply.ok(nullptr); }};
}

Method hidden() { return {.name = "rpc.discover", .handler = nothing, .listed = false}; }

Methods table() {
  Methods methods;
  methods.add(log_level());
  methods.add(task_list());
  methods.add(hidden());
  return methods;
}

TEST(Methods, AreFoundByTheirWholeName) {
  Methods methods;
  const std::vector<std::string> names = {"",
                                          "a",
                                          "ab",
                                          "abc",
                                          "abcd",
                                          "abcde",
                                          "abcdefg",
                                          "abcdefgh",
                                          "abcdefghi",
                                          "abcdefgX",
                                          "Xbcdefgh",
                                          "abcXefgh",
                                          "abcdXfgh",
                                          std::string("ab\0d", 4),
                                          "workspace/didChange",
                                          "abcdefghijklmnopqrstuvwxyz",
                                          "abcdefghijklmnXpqrstuvwxyz"};
  for (const std::string& name : names) methods.add(name, nothing);
  for (int round = 0; round < 2; ++round) {
    for (const std::string& name : names) {
      ASSERT_NE(methods.find(name), nullptr) << name;
      EXPECT_EQ(methods.find(name)->name, name);
      EXPECT_EQ(methods.find(name + "?"), nullptr);
    }
  }
  EXPECT_EQ(methods.find(std::string_view())->name, "");
}

TEST(Methods, ManyAreKeptApart) {
  Methods methods;
  for (int i = 0; i < 2000; ++i) methods.add("namespace.method" + std::to_string(i) + ".of.many", nothing);
  for (int i = 0; i < 2000; ++i) {
    const std::string name = "namespace.method" + std::to_string(i) + ".of.many";
    ASSERT_NE(methods.find(name), nullptr);
    EXPECT_EQ(methods.find(name)->name, name);
  }
}

TEST(Methods, ATakenNameIsRefusedAndTheFirstOneStays) {
  Methods methods;
  methods.add("ping", [](const Request&) -> Answer { return 1; });
  EXPECT_THROW(methods.add("ping", nothing), std::invalid_argument);
  EXPECT_EQ(methods.list().as_array().size(), 1U);
}

TEST(Methods, AMethodWithoutAHandlerIsRefused) {
  Methods methods;
  EXPECT_THROW(methods.add("ping", nullptr), std::invalid_argument);
  EXPECT_THROW(methods.add(Method{.name = "ping"}), std::invalid_argument);
  EXPECT_EQ(methods.find("ping"), nullptr);
}

TEST(Methods, ParamsThatCannotBeGivenByPositionAreRefused) {
  Methods methods;
  Method doubled = log_level();
  doubled.params.push_back(doubled.params.front());
  EXPECT_THROW(methods.add(doubled), std::invalid_argument);
  Method late_required = log_level();
  late_required.params = {{.name = "first", .required = false}, {.name = "second"}};
  EXPECT_THROW(methods.add(late_required), std::invalid_argument);
  EXPECT_EQ(methods.find("setLogLevel"), nullptr);
}

TEST(Methods, AreListedInTheOrderTheyWereAdded) {
  EXPECT_EQ(boost::json::serialize(table().list()),
            R"([{"name":"setLogLevel","description":"Sets how much is logged"},)"
            R"({"name":"task.list","description":"Lists tasks"}])");
}

TEST(Methods, AreDescribedWithTheirParams) {
  EXPECT_EQ(boost::json::serialize(table().describe()),
            R"([{"name":"setLogLevel","params":["level: string"],"returns":"object"},)"
            R"({"name":"task.list","params":["state: string","limit?: integer","extra?: any"],"returns":"array"}])");
}

// What OpenRPC 1.2 demands of a document, as far as it concerns ours.
const std::set<std::string> json_schema_types = {"array", "boolean", "integer", "null", "number", "object", "string"};

void expect_schema(const boost::json::value& value) {
  ASSERT_TRUE(value.is_object());
  const boost::json::object& schema = value.as_object();
  if (const auto* type = schema.if_contains("type")) {
    EXPECT_TRUE(json_schema_types.contains(std::string(type->as_string())));
  }
  if (const auto* choice = schema.if_contains("enum")) {
    EXPECT_FALSE(choice->as_array().empty());
  }
}

void expect_content_descriptor(const boost::json::value& value) {
  ASSERT_TRUE(value.is_object());
  const boost::json::object& descriptor = value.as_object();
  EXPECT_FALSE(descriptor.at("name").as_string().empty());
  expect_schema(descriptor.at("schema"));
  if (const auto* required = descriptor.if_contains("required")) {
    EXPECT_TRUE(required->is_bool());
  }
  if (const auto* description = descriptor.if_contains("description")) {
    EXPECT_TRUE(description->is_string());
  }
}

void expect_params(const boost::json::array& params) {
  std::set<std::string> names;
  bool optional_seen = false;
  for (const auto& param : params) {
    expect_content_descriptor(param);
    EXPECT_TRUE(names.insert(std::string(param.at("name").as_string())).second);
    const bool required = param.at("required").as_bool();
    EXPECT_FALSE(required && optional_seen) << "required ones come first";
    optional_seen = !required;
  }
}

TEST(Methods, AreAnOpenRpcDocument) {
  const boost::json::value document = table().open_rpc("duet-rpc", "1.2.3");
  EXPECT_TRUE(document.at("openrpc").as_string().starts_with("1.2."));
  EXPECT_EQ(document.at("info").at("title").as_string(), "duet-rpc");
  EXPECT_EQ(document.at("info").at("version").as_string(), "1.2.3");
  std::set<std::string> names;
  for (const auto& method : document.at("methods").as_array()) {
    EXPECT_TRUE(names.insert(std::string(method.at("name").as_string())).second);
    EXPECT_TRUE(method.at("summary").is_string());
    EXPECT_EQ(method.at("paramStructure").as_string(), "either");
    expect_params(method.at("params").as_array());
    expect_content_descriptor(method.at("result"));
  }
  EXPECT_EQ(names, (std::set<std::string>{"setLogLevel", "task.list"}));
}

TEST(Methods, TheOpenRpcDocumentHasTheParamsAsTheyAreChecked) {
  const boost::json::value document = table().open_rpc("t", "1");
  EXPECT_EQ(boost::json::serialize(document.at("methods").at(0).at("params")),
            R"([{"name":"level","required":true,"schema":{"type":"string","enum":["debug","info"]},)"
            R"("description":"The least that is logged"}])");
  EXPECT_EQ(boost::json::serialize(document.at("methods").at(1).at("params").at(2).at("schema")), "{}");
  EXPECT_EQ(boost::json::serialize(document.at("methods").at(1).at("result")),
            R"({"name":"result","schema":{"type":"array"}})");
}

TEST(Methods, InTheOpenRpcDocumentAResultOfAnyKindHasAnEmptySchema) {
  Methods methods;
  methods.add({.name = "echo", .returns = "any", .handler = nothing});
  EXPECT_EQ(boost::json::serialize(methods.open_rpc("t", "1").at("methods").at(0).at("result")),
            R"({"name":"result","schema":{}})");
}

/// A conversation with a method whose params are described.
struct ParamsSetting : TestConnection {
  ParamsSetting() {
    methods.add(
        {.name = "task.list", .params = task_list().params, .handler = [](const Request& asked) -> Answer {
           return {{"state", *asked.params.text("state")}, {"limit", asked.params.integer("limit").value_or(20)}};
         }});
    methods.add({.name = "ping", .handler = [](const Request&) -> Answer { return true; }});
    open();
  }
};

TEST(MethodParams, AreGivenByNameOrByPosition) {
  ParamsSetting s;
  EXPECT_EQ(
      s.say({request("1", "task.list", R"({"state":"queued","limit":5})"), request("2", "task.list", R"(["queued",5])"),
             request("3", "task.list", R"({"state":"queued"})"), request("4", "task.list", R"(["queued"])"),
             request("5", "task.list", R"({"limit":null,"unknown":1,"state":"queued"})"),
             request("6", "task.list", R"(["queued",null,3,4,5])")}),
      (Strings{result("1", R"({"state":"queued","limit":5})"), result("2", R"({"state":"queued","limit":5})"),
               result("3", R"({"state":"queued","limit":20})"), result("4", R"({"state":"queued","limit":20})"),
               result("5", R"({"state":"queued","limit":20})"), result("6", R"({"state":"queued","limit":20})")}));
}

TEST(MethodParams, ThatAreWrongAreRefusedAndNamed) {
  ParamsSetting s;
  const auto refusal = [](std::string_view id, std::string_view data) {
    return error(id, -32602, "Invalid params", data);
  };
  EXPECT_EQ(s.say({request("1", "task.list"), request("2", "task.list", R"(["queued","5"])"),
                   request("3", "task.list", R"({"state":7})"), request("4", "task.list", R"(["queued",5.5])")}),
            (Strings{refusal("1", R"({"param":"state","expected":"string","received":"missing"})"),
                     refusal("2", R"({"param":"limit","expected":"integer","received":"string"})"),
                     refusal("3", R"({"param":"state","expected":"string","received":"number"})"),
                     refusal("4", R"({"param":"limit","expected":"integer","received":"number"})")}));
}

TEST(MethodParams, OfAMethodWithoutAnyAreIgnored) {
  ParamsSetting s;
  EXPECT_EQ(s.say({request("1", "ping"), request("2", "ping", "null"), request("3", "ping", "{}"),
                   request("4", "ping", "[]"), request("5", "ping", "[1,2]"), request("6", "ping", R"({"a":1})")}),
            (Strings{result("1", "true"), result("2", "true"), result("3", "true"), result("4", "true"),
                     result("5", "true"), result("6", "true")}));
}

}  // namespace
}  // namespace duet::peer
