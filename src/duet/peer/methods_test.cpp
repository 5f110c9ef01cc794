#include "duet/peer/methods.h"

#include <cstdint>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <boost/describe/class.hpp>
#include <boost/describe/enum.hpp>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <gtest/gtest.h>

#include "duet/peer/connection_fixture_test.h"

namespace duet::peer {
namespace {

enum class Level { debug, info };
BOOST_DESCRIBE_ENUM(Level, debug, info)

struct SetLevel {
  Level level;
};
BOOST_DESCRIBE_STRUCT(SetLevel, (), (level))

struct List {
  std::string state;
  std::int64_t limit = 20;
  std::optional<rpc::Json> extra;
};
BOOST_DESCRIBE_STRUCT(List, (), (state, limit, extra))

struct Listed {
  std::string state;
  std::int64_t limit;
};
BOOST_DESCRIBE_STRUCT(Listed, (), (state, limit))

struct OutOfOrder {
  std::optional<int> first;
  int second;
};
BOOST_DESCRIBE_STRUCT(OutOfOrder, (), (first, second))

void nothing() {}

void fill(Methods& methods) {
  methods.add("setLogLevel", "Sets how much is logged", [](SetLevel) { return boost::json::object(); })
      .describe(&SetLevel::level, "The least that is logged");
  methods.add("task.list", "Lists tasks", [](const List&, Reply<std::vector<Listed>> reply) { reply.ok({}); });
  methods.add("rpc.discover", nothing).unlisted();
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

TEST(Methods, AFinderFindsWhatTheTableHas) {
  Methods methods;
  MethodFinder finder(methods);
  EXPECT_EQ(finder.find("ping"), nullptr);
  for (const char* name : {"ping", "pong", "pin", "a longer name", "a longer game"}) methods.add(name, nothing);
  for (const char* name : {"ping", "ping", "pong", "pin", "ping", "a longer name", "a longer game", "a longer game"}) {
    ASSERT_NE(finder.find(name), nullptr) << name;
    EXPECT_EQ(finder.find(name), methods.find(name));
  }
  EXPECT_EQ(finder.find("pang"), nullptr);
  EXPECT_EQ(finder.find("ping")->name, "ping");
}

TEST(Methods, AreInOneTableOnly) {
  static_assert(!std::is_copy_constructible_v<Methods> && !std::is_copy_assignable_v<Methods>);
  static_assert(!std::is_move_constructible_v<Methods>);
}

TEST(Methods, ATakenNameIsRefusedAndTheFirstOneStays) {
  Methods methods;
  methods.add("ping", "the first", nothing);
  EXPECT_THROW(methods.add("ping", "the second", nothing), std::invalid_argument);
  ASSERT_EQ(methods.list().size(), 1U);
  EXPECT_EQ(methods.list().front().description, "the first");
}

TEST(Methods, AMethodWithoutAHandlerIsRefused) {
  Methods methods;
  EXPECT_THROW(methods.add("ping", Handler()), std::invalid_argument);
  EXPECT_THROW(methods.add("ping", static_cast<void (*)()>(nullptr)), std::invalid_argument);
  EXPECT_EQ(methods.find("ping"), nullptr);
}

TEST(Methods, ParamsThatCannotBeGivenByPositionAreRefused) {
  Methods methods;
  EXPECT_THROW(methods.add("m", "", {"a", "a"}, [](int, int) {}), std::invalid_argument);
  EXPECT_THROW(methods.add("m", "", {"a", "b"}, [](std::optional<int>, int) {}), std::invalid_argument);
  EXPECT_THROW(methods.add("m", "", [](OutOfOrder) {}), std::invalid_argument);
  EXPECT_EQ(methods.find("m"), nullptr);
}

TEST(Methods, EveryParamHasOneName) {
  Methods methods;
  EXPECT_THROW(methods.add("m", "", {"a"}, [](int, int) {}), std::invalid_argument);
  EXPECT_THROW(methods.add("m", "", {"a", "b"}, [](int) {}), std::invalid_argument);
  EXPECT_THROW(methods.add("m", "", {}, [](int) {}), std::invalid_argument);
  EXPECT_EQ(methods.find("m"), nullptr);
}

TEST(Methods, OnlyAParamThatIsThereIsDescribed) {
  Methods methods;
  EXPECT_THROW(methods.add("m", "", {"a"}, [](int) {}).describe("b", "text"), std::invalid_argument);
  EXPECT_THROW(methods.add("n", "", [](SetLevel) {}).describe(&List::state, "text"), std::invalid_argument);
}

TEST(Methods, OnlyALateAnswerIsPipelined) {
  Methods methods;
  EXPECT_THROW(methods.add("m", nothing).pipelined(), std::invalid_argument);
}

TEST(Methods, AreListedInTheOrderTheyWereAdded) {
  Methods methods;
  fill(methods);
  EXPECT_EQ(rpc::Json(methods.list()).text(), R"([{"name":"setLogLevel","description":"Sets how much is logged"},)"
                                              R"({"name":"task.list","description":"Lists tasks"}])");
}

TEST(Methods, AreDescribedWithTheirParams) {
  Methods methods;
  fill(methods);
  EXPECT_EQ(rpc::Json(methods.describe()).text(),
            R"([{"name":"setLogLevel","params":["level: string"],"returns":"object"},)"
            R"({"name":"task.list","params":["state: string","limit?: integer","extra?: any"],"returns":"array"}])");
}

// What OpenRPC 1.2 demands of a document, as far as it concerns ours.
const std::set<std::string> json_schema_types = {"array", "boolean", "integer", "null", "number", "object", "string"};

void expect_schema(const boost::json::value& value) {
  ASSERT_TRUE(value.is_object());
  const boost::json::object& schema = value.as_object();
  if (const auto* type = schema.if_contains("type")) {
    const boost::json::array types = type->is_array() ? type->as_array() : boost::json::array{*type};
    for (const auto& each : types) EXPECT_TRUE(json_schema_types.contains(std::string(each.as_string())));
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
  Methods methods;
  fill(methods);
  const boost::json::value document = methods.open_rpc("duet-rpc", "1.2.3");
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
  Methods methods;
  fill(methods);
  const boost::json::value document = methods.open_rpc("t", "1");
  EXPECT_EQ(boost::json::serialize(document.at("methods").at(0).at("params")),
            R"([{"name":"level","required":true,"schema":{"type":"string","enum":["debug","info"]},)"
            R"("description":"The least that is logged"}])");
  const boost::json::value& params = document.at("methods").at(1).at("params");
  EXPECT_EQ(boost::json::serialize(params.at(1).at("schema")),
            R"({"type":["integer","null"],"minimum":-9223372036854775808,"maximum":9223372036854775807,"default":20})");
  EXPECT_EQ(boost::json::serialize(params.at(2).at("schema")), "{}");
}

TEST(Methods, TheOpenRpcDocumentHasTheShapesOfResults) {
  Methods methods;
  fill(methods);
  methods.add("echo", [](const rpc::Json& params) { return params; });
  methods.add("nothing", nothing);
  const boost::json::value document = methods.open_rpc("t", "1");
  const auto result = [&](std::size_t at) {
    return boost::json::serialize(document.at("methods").at(at).at("result").at("schema"));
  };
  EXPECT_EQ(result(1),
            R"({"type":"array","items":{"type":"object",)"
            R"("properties":{"state":{"type":"string"},"limit":{"type":"integer",)"
            R"("minimum":-9223372036854775808,"maximum":9223372036854775807}},"required":["state","limit"]}})");
  EXPECT_EQ(result(2), "{}");
  EXPECT_EQ(result(3), R"({"type":"null"})");
}

TEST(Methods, WithAGuardTheOpenRpcDocumentTellsWhatEachNeeds) {
  Methods methods;
  methods.add("look", nothing).needs("observe").read_only();
  methods.add("forgotten", nothing);
  EXPECT_FALSE(methods.open_rpc("t", "1").at("methods").at(0).as_object().contains("x-needs"));
  methods.set_guard([](const Method&, const Peer&) { return std::nullopt; });
  const boost::json::value document = methods.open_rpc("t", "1");
  EXPECT_EQ(document.at("methods").at(0).at("x-needs"), "observe");
  EXPECT_EQ(document.at("methods").at(1).at("x-needs"), "own");
  EXPECT_TRUE(methods.find("look")->read_only);
  EXPECT_FALSE(methods.find("forgotten")->read_only);
}

/// A conversation with a method whose params are described.
struct ParamsSetting : TestConnection {
  ParamsSetting() {
    methods.add("task.list", "", [](const List& list) { return Listed{list.state, list.limit}; });
    methods.add("ping", [] { return true; });
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
