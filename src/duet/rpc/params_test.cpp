#include "duet/rpc/params.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include <boost/describe/class.hpp>
#include <boost/describe/enum.hpp>
#include <gtest/gtest.h>

#include "duet/rpc/error.h"

namespace duet::rpc {
namespace {

enum class Level { debug, info };
BOOST_DESCRIBE_ENUM(Level, debug, info)

struct SetLevel {
  Level level;
};
BOOST_DESCRIBE_STRUCT(SetLevel, (), (level))

struct Everything {
  std::optional<std::string> t;
  std::optional<std::int64_t> i;
  std::optional<double> n;
  std::optional<bool> b;
  std::optional<std::map<std::string, int>> o;
  std::optional<std::vector<int>> a;
  std::optional<Json> x;
};
BOOST_DESCRIBE_STRUCT(Everything, (), (t, i, n, b, o, a, x))

struct Required {
  std::int64_t a;
  boost::json::value b;
};
BOOST_DESCRIBE_STRUCT(Required, (), (a, b))

struct Submit {
  std::string prompt;
  std::optional<std::string> agent;
  int priority = 5;
};
BOOST_DESCRIBE_STRUCT(Submit, (), (prompt, agent, priority))

template <typename Struct>
Struct read(std::string_view raw) {
  static const std::vector<Param> list = describe_params<Struct>();
  Struct value{};
  read_params(list, raw, value);
  return value;
}

// The data of the refusal, or "accepted".
template <typename Struct>
std::string verdict(std::string_view raw) {
  try {
    read<Struct>(raw);
    return "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code::invalid_params);
    return error.data();
  }
}

std::string wrong(std::string_view param, std::string_view expected, std::string_view received) {
  return R"({"param":")" + std::string(param) + R"(","expected":")" + std::string(expected) + R"(","received":")" +
         std::string(received) + "\"}";
}

TEST(Params, AreTakenByNameAndByPositionAlike) {
  for (const char* raw : {R"({"x":[ 9],"a":[ 1],"o":{"k":3},"b":true,"n":2.5,"i":7,"t":"\u0041"})",
                          R"([ "\u0041" , 7,2.5,true,{"k":3},[ 1],[ 9] ])"}) {
    const auto params = read<Everything>(raw);
    EXPECT_EQ(params.t, "A");
    EXPECT_EQ(params.i, 7);
    EXPECT_EQ(params.n, 2.5);
    EXPECT_EQ(params.b, true);
    EXPECT_EQ(params.o->at("k"), 3);
    EXPECT_EQ(params.a, std::vector{1});
    EXPECT_EQ(params.x->text(), "[ 9]");
  }
}

TEST(Params, ThatAreOptionalMayBeAbsentOrNull) {
  for (const char* raw : {"", "{}", "[]", R"({"t":null,"i":null})", "[null,null,null,null,null,null,null]"}) {
    const auto params = read<Everything>(raw);
    EXPECT_FALSE(params.t || params.i || params.n || params.b || params.o || params.a || params.x) << raw;
  }
}

TEST(Params, WithAnInitialiserMayBeAbsentOrNullAndKeepIt) {
  EXPECT_EQ(read<Submit>(R"({"prompt":"x"})").priority, 5);
  EXPECT_EQ(read<Submit>(R"({"prompt":"x","priority":null})").priority, 5);
  EXPECT_EQ(read<Submit>(R"(["x",null,7])").priority, 7);
  EXPECT_EQ(verdict<Submit>(R"({"priority":1})"), wrong("prompt", "string", "missing"));
}

TEST(Params, ThatAreRequiredMustBeThere) {
  EXPECT_EQ(verdict<Required>(""), wrong("a", "integer", "missing"));
  EXPECT_EQ(verdict<Required>(R"({"b":1})"), wrong("a", "integer", "missing"));
  EXPECT_EQ(verdict<Required>("[1]"), wrong("b", "any", "missing"));
  EXPECT_EQ(verdict<Required>("[null,1]"), wrong("a", "integer", "null"));
  EXPECT_EQ(verdict<Required>("[1,null]"), "accepted");
}

TEST(Params, OfEveryWrongTypeAreRefusedWithWhatWasExpectedAndReceived) {
  const std::vector<std::pair<std::string, std::string>> values = {
      {"\"s\"", "string"}, {"1", "number"}, {"1.5", "number"}, {"true", "boolean"}, {"{}", "object"}, {"[]", "array"}};
  for (const Param& param : describe_params<Everything>()) {
    for (const auto& [value, type] : values) {
      const std::string expected(name_of(param.type));
      const bool fits = param.type == Type::any || type == expected || (param.type == Type::integer && value == "1");
      EXPECT_EQ(verdict<Everything>("{\"" + param.name + "\":" + value + "}"),
                fits ? "accepted" : wrong(param.name, expected, type))
          << value;
    }
  }
}

TEST(Params, OfTypeNumberMustBeFiniteAndOfTypeIntegerWholeAndInRange) {
  EXPECT_EQ(verdict<Everything>(R"({"n":1e400})"), wrong("n", "number", "number"));
  EXPECT_EQ(verdict<Everything>(R"({"i":1e400})"), wrong("i", "integer", "number"));
  EXPECT_EQ(verdict<Everything>(R"({"i":9223372036854775808})"), wrong("i", "integer", "number"));
  EXPECT_EQ(read<Everything>(R"({"i":5.0})").i, 5);
  EXPECT_EQ(verdict<Submit>(R"(["x",null,2147483648])"),
            wrong("priority", "integer from -2147483648 to 2147483647", "number"));
}

TEST(Params, WithSomethingWrongInsideAreNamed) {
  EXPECT_EQ(verdict<Everything>(R"({"a":[1,"2"]})"), wrong("a", "array of integers", "array"));
  EXPECT_EQ(verdict<Everything>(R"({"o":{"k":"3"}})"), wrong("o", "object of integers", "object"));
}

TEST(Params, ThatAreAListOfWordsNameTheWords) {
  const std::vector<Param> list = {describe_param<std::vector<Level>>("levels")};
  std::tuple<std::vector<Level>> values;
  try {
    read_params(list, R"([["info","loud"]])", values);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.data(),
              R"({"param":"levels","expected":"array of strings","received":"array","accepted":["debug","info"]})");
  }
}

TEST(Params, AMethodDoesNotKnowAreIgnored) {
  EXPECT_EQ(verdict<SetLevel>(R"({"other":{"level":1},"level":"info","more":[]})"), "accepted");
  EXPECT_EQ(verdict<SetLevel>(R"(["info",1,{}])"), "accepted");
}

TEST(Params, NamesMayBeSpeltWithEscapesAndTheLastOfADoubledNameCounts) {
  EXPECT_EQ(read<SetLevel>(R"({"level":7,"\u006cevel":"info"})").level, Level::info);
  EXPECT_EQ(verdict<SetLevel>(R"({"\u006cevel":"info","level":7})"),
            R"({"param":"level","expected":"string","received":"number","accepted":["debug","info"]})");
}

TEST(Params, OfAnEnumAreMatchedInAnyCase) {
  for (const char* raw : {R"(["debug"])", R"(["DEBUG"])", R"({"level":"\u0049nFo"})"})
    EXPECT_EQ(verdict<SetLevel>(raw), "accepted");
  for (const char* raw : {R"(["debu"])", R"(["debugg"])", R"([""])", R"(["debug "])"})
    EXPECT_NE(verdict<SetLevel>(raw), "accepted");
}

TEST(Params, OfAnEnumAreNamedWhenTheyAreMissing) {
  EXPECT_EQ(verdict<SetLevel>("{}"),
            R"({"param":"level","expected":"string","received":"missing","accepted":["debug","info"]})");
}

TEST(Params, OutsideAnEnumAreShownCutTo64Characters) {
  EXPECT_EQ(verdict<SetLevel>(R"(["loud"])"),
            R"({"param":"level","expected":"string","received":"loud","accepted":["debug","info"]})");
  std::string long_value;
  std::string shown;
  for (int i = 0; i < 100; ++i) long_value += "é";
  for (int i = 0; i < 64; ++i) shown += "é";
  EXPECT_EQ(verdict<SetLevel>("[\"" + long_value + "\"]"),
            R"({"param":"level","expected":"string","received":")" + shown + R"(","accepted":["debug","info"]})");
}

TEST(Params, BesideEachOtherAreReadAsTheMembersOfAStruct) {
  const std::vector<Param> list = {describe_param<int>("a"), describe_param<std::optional<std::string>>("b")};
  std::tuple<int, std::optional<std::string>> values;
  read_params(list, R"({"b":"x","a":1})", values);
  EXPECT_EQ(values, std::tuple(1, "x"));
  EXPECT_THROW(read_params(list, R"({"b":"x"})", values), Error);
}

TEST(Params, AreDescribedByTheirTypes) {
  const std::vector<Param> list = describe_params<Submit>();
  ASSERT_EQ(list.size(), 3U);
  EXPECT_EQ(list[0].name, "prompt");
  EXPECT_EQ(list[0].type, Type::text);
  EXPECT_TRUE(list[0].required);
  EXPECT_FALSE(list[1].required);
  EXPECT_EQ(list[1].otherwise, "");
  EXPECT_EQ(list[2].otherwise, "5");
  EXPECT_EQ(describe_params<SetLevel>().at(0).accepted, (std::vector<std::string>{"debug", "info"}));
}

TEST(Params, AMemberIsKnownByItsPointer) {
  EXPECT_EQ(name_of(&Submit::prompt), "prompt");
  EXPECT_EQ(name_of(&Submit::priority), "priority");
}

TEST(Params, EveryTypeHasItsName) {
  EXPECT_EQ(name_of(Type::text), "string");
  EXPECT_EQ(name_of(Type::integer), "integer");
  EXPECT_EQ(name_of(Type::number), "number");
  EXPECT_EQ(name_of(Type::boolean), "boolean");
  EXPECT_EQ(name_of(Type::object), "object");
  EXPECT_EQ(name_of(Type::array), "array");
  EXPECT_EQ(name_of(Type::null), "null");
  EXPECT_EQ(name_of(Type::any), "any");
}

}  // namespace
}  // namespace duet::rpc
