#include "duet/rpc/params.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "duet/rpc/error.h"

namespace duet::rpc {
namespace {

const std::vector<Param> all_types = {
    {"t", Type::text, false},   {"i", Type::integer, false}, {"n", Type::number, false}, {"b", Type::boolean, false},
    {"o", Type::object, false}, {"a", Type::array, false},   {"x", Type::any, false},
};

const std::vector<Param> level = {{.name = "level", .type = Type::text, .accepted = {"debug", "info"}}};

// The data of the refusal, or "accepted".
std::string verdict(const std::vector<Param>& list, std::string_view raw) {
  try {
    const Params params(list, raw);
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

TEST(Params, AnAcceptedTextComesAsTheMethodSpellsIt) {
  EXPECT_EQ(Params(level, R"(["INFO"])").text("level"), "info");
  EXPECT_EQ(Params(level, R"({"level":"Debug"})").text("level"), "debug");
}

TEST(Params, AreTakenByNameAndByPositionAlike) {
  const Params by_name(all_types, R"({"x":[9],"a":[ 1],"o":{},"b":true,"n":2.5,"i":7,"t":"\u0041"})");
  const Params by_position(all_types, R"([ "\u0041" , 7,2.5,true,{},[ 1],[9] ])");
  for (const Params* params : {&by_name, &by_position}) {
    EXPECT_EQ(params->text("t"), "A");
    EXPECT_EQ(params->integer("i"), 7);
    EXPECT_EQ(params->number("n"), 2.5);
    EXPECT_EQ(params->boolean("b"), true);
    EXPECT_EQ(params->slice("a"), "[ 1]");
    EXPECT_EQ(params->value("x").as_array().at(0).as_int64(), 9);
  }
}

TEST(Params, ThatAreOptionalMayBeAbsentOrNull) {
  for (const char* raw : {"", "{}", "[]", R"({"t":null,"i":null})", "[null,null,null,null,null,null,null]"}) {
    const Params params(all_types, raw);
    EXPECT_FALSE(params.has("t")) << raw;
    EXPECT_EQ(params.text("t"), std::nullopt);
    EXPECT_EQ(params.integer("i"), std::nullopt);
    EXPECT_EQ(params.number("n"), std::nullopt);
    EXPECT_EQ(params.boolean("b"), std::nullopt);
    EXPECT_EQ(params.slice("o"), "");
    EXPECT_TRUE(params.value("x").is_null());
  }
}

TEST(Params, ThatAreRequiredMustBeThere) {
  const std::vector<Param> list = {{"a", Type::integer}, {"b", Type::any}};
  EXPECT_EQ(verdict(list, ""), wrong("a", "integer", "missing"));
  EXPECT_EQ(verdict(list, R"({"b":1})"), wrong("a", "integer", "missing"));
  EXPECT_EQ(verdict(list, "[1]"), wrong("b", "any", "missing"));
  EXPECT_EQ(verdict(list, "[null,1]"), wrong("a", "integer", "null"));
  EXPECT_EQ(verdict(list, "[1,null]"), "accepted");
}

TEST(Params, OfEveryWrongTypeAreRefusedWithWhatWasExpectedAndReceived) {
  const std::vector<std::pair<std::string, std::string>> values = {
      {"\"s\"", "string"}, {"1", "number"}, {"1.5", "number"}, {"true", "boolean"}, {"{}", "object"}, {"[]", "array"}};
  for (const Param& param : all_types) {
    for (const auto& [value, type] : values) {
      const std::string expected(name_of(param.type));
      const bool fits = param.type == Type::any || type == expected || (param.type == Type::integer && value == "1");
      EXPECT_EQ(verdict(all_types, "{\"" + param.name + "\":" + value + "}"),
                fits ? "accepted" : wrong(param.name, expected, type))
          << value;
    }
  }
}

TEST(Params, OfTypeNumberMustBeFiniteAndOfTypeIntegerWhole) {
  EXPECT_EQ(verdict(all_types, R"({"n":1e400})"), wrong("n", "number", "number"));
  EXPECT_EQ(verdict(all_types, R"({"i":1e400})"), wrong("i", "integer", "number"));
  EXPECT_EQ(verdict(all_types, R"({"i":9223372036854775808})"), wrong("i", "integer", "number"));
  EXPECT_EQ(Params(all_types, R"({"i":5.0})").integer("i"), 5);
}

TEST(Params, AMethodDoesNotKnowAreIgnored) {
  EXPECT_EQ(verdict(level, R"({"other":{"level":1},"level":"info","more":[]})"), "accepted");
  EXPECT_EQ(verdict(level, R"(["info",1,{}])"), "accepted");
}

TEST(Params, NamesMayBeSpeltWithEscapesAndTheLastOfADoubledNameCounts) {
  EXPECT_EQ(Params(level, R"({"level":7,"\u006cevel":"info"})").text("level"), "info");
  EXPECT_EQ(verdict(level, R"({"\u006cevel":"info","level":7})"),
            R"({"param":"level","expected":"string","received":"number","accepted":["debug","info"]})");
}

TEST(Params, OfAClosedSetAreMatchedInAnyCase) {
  for (const char* raw : {R"(["debug"])", R"(["DEBUG"])", R"({"level":"\u0049nFo"})"})
    EXPECT_EQ(verdict(level, raw), "accepted");
  for (const char* raw : {R"(["debu"])", R"(["debugg"])", R"([""])", R"(["debug "])"})
    EXPECT_NE(verdict(level, raw), "accepted");
}

TEST(Params, OutsideAClosedSetAreShownCutTo64Characters) {
  EXPECT_EQ(verdict(level, R"(["loud"])"),
            R"({"param":"level","expected":"string","received":"loud","accepted":["debug","info"]})");
  std::string long_value;
  std::string shown;
  for (int i = 0; i < 100; ++i) long_value += "é";
  for (int i = 0; i < 64; ++i) shown += "é";
  EXPECT_EQ(verdict(level, "[\"" + long_value + "\"]"),
            R"({"param":"level","expected":"string","received":")" + shown + R"(","accepted":["debug","info"]})");
}

TEST(Params, OfAMethodWithoutAnyAreIgnoredWhateverTheyAre) {
  for (const char* raw : {"", "{}", "[]", R"({"a":1})", "[1,2]"}) EXPECT_EQ(verdict({}, raw), "accepted") << raw;
}

TEST(Params, ThatNobodyChecksAreThereAsTextAndAsATree) {
  const Params params(R"({"a":[1,2]})");
  EXPECT_EQ(params.raw(), R"({"a":[1,2]})");
  EXPECT_EQ(params.value().at("a").at(1).as_int64(), 2);
  EXPECT_FALSE(params.has("a"));
  EXPECT_TRUE(Params().value().is_null());
}

TEST(Params, OfAnUnknownNameAreAbsent) {
  const Params params(level, R"(["info"])");
  EXPECT_FALSE(params.has("volume"));
  EXPECT_EQ(params.text("volume"), std::nullopt);
}

TEST(Params, EveryTypeHasItsName) {
  EXPECT_EQ(name_of(Type::text), "string");
  EXPECT_EQ(name_of(Type::integer), "integer");
  EXPECT_EQ(name_of(Type::number), "number");
  EXPECT_EQ(name_of(Type::boolean), "boolean");
  EXPECT_EQ(name_of(Type::object), "object");
  EXPECT_EQ(name_of(Type::array), "array");
  EXPECT_EQ(name_of(Type::any), "any");
}

}  // namespace
}  // namespace duet::rpc
