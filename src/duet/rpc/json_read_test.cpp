#include "duet/rpc/json_read.h"

#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include <boost/describe/class.hpp>
#include <boost/describe/enum.hpp>
#include <gtest/gtest.h>

namespace duet::rpc {
namespace {

enum class Colour { red, green };
BOOST_DESCRIBE_ENUM(Colour, red, green)

struct Point {
  int x;
  int y = 7;
};
BOOST_DESCRIBE_STRUCT(Point, (), (x, y))

struct Node {
  std::string name;
  std::optional<std::vector<Node>> children;
};
BOOST_DESCRIBE_STRUCT(Node, (), (name, children))

template <typename T>
std::optional<T> read(std::string_view text) {
  T value{};
  return read_json(text, value) ? std::optional(value) : std::nullopt;
}

// What is inside a list is read as what is not.
template <typename T>
std::optional<T> read_inside(std::string_view text) {
  const auto list = read<std::vector<T>>("[" + std::string(text) + "]");
  return list ? std::optional<T>(list->front()) : std::nullopt;
}

template <typename T>
void expect_both(std::string_view text, const std::optional<T>& expected) {
  EXPECT_EQ(read<T>(text), expected) << text;
  EXPECT_EQ(read_inside<T>(text), expected) << text << " inside a list";
}

TEST(JsonRead, WholeNumbersFitOrAreRefused) {
  expect_both<int>("5", 5);
  expect_both<int>("5.0", 5);
  expect_both<int>("5.5", std::nullopt);
  expect_both<int>("2147483648", std::nullopt);
  expect_both<std::int8_t>("-129", std::nullopt);
  expect_both<std::uint8_t>("255", 255);
  expect_both<unsigned>("-1", std::nullopt);
  expect_both<std::int64_t>("9223372036854775808", std::nullopt);
  expect_both<std::uint64_t>("18446744073709551615", std::numeric_limits<std::uint64_t>::max());
  expect_both<std::uint64_t>("18446744073709551616", std::nullopt);
  expect_both<std::uint64_t>("-1", std::nullopt);
  expect_both<std::int64_t>("9007199254740993.0", 9007199254740993);
  expect_both<std::uint64_t>("9223372036854775809.0", 9223372036854775809U);
  expect_both<std::uint64_t>("18446744073709551615e0", std::numeric_limits<std::uint64_t>::max());
  expect_both<std::uint64_t>("18446744073709551616.0", std::nullopt);
  expect_both<std::uint64_t>("-0", 0U);
  expect_both<std::uint64_t>("-0.0", 0U);
  expect_both<unsigned long long>("18446744073709551615", std::numeric_limits<unsigned long long>::max());
  for (const char* text : {"\"5\"", "true", "null", "[]", "{}"}) expect_both<int>(text, std::nullopt);
}

TEST(JsonRead, OtherNumbersAreFinite) {
  expect_both<double>("2.5", 2.5);
  expect_both<double>("7", 7.0);
  expect_both<double>("1e400", std::nullopt);
  expect_both<float>("1e39", std::nullopt);
  expect_both<double>("\"7\"", std::nullopt);
}

TEST(JsonRead, TextsAreDecoded) {
  expect_both<std::string>(R"("\u0041\n")", "A\n");
  expect_both<std::string>("5", std::nullopt);
  expect_both<bool>("true", true);
  expect_both<bool>("\"true\"", std::nullopt);
  EXPECT_EQ(read<bool>("false"), false);
}

TEST(JsonRead, WordsAreMatchedInAnyCase) {
  expect_both<Colour>(R"("Green")", Colour::green);
  expect_both<Colour>(R"("\u0072ed")", Colour::red);
  for (const char* text : {R"("blue")", R"("")", R"("re")", "1"}) expect_both<Colour>(text, std::nullopt);
}

TEST(JsonRead, ListsAndMapsHoldOneType) {
  EXPECT_EQ(read<std::vector<int>>("[1, 2]"), (std::vector{1, 2}));
  EXPECT_EQ(read<std::vector<int>>("[]"), std::vector<int>());
  EXPECT_EQ(read<std::vector<int>>("[1,\"2\"]"), std::nullopt);
  EXPECT_EQ(read<std::vector<int>>("{}"), std::nullopt);
  EXPECT_EQ(read<std::set<std::string>>(R"(["b","a","b"])"), (std::set<std::string>{"a", "b"}));
  EXPECT_EQ((read<std::map<std::string, bool>>(R"({"a":true})")), (std::map<std::string, bool>{{"a", true}}));
  EXPECT_EQ((read<std::map<std::string, bool>>(R"({"a":1})")), std::nullopt);
  EXPECT_EQ(read<std::vector<std::optional<int>>>("[1,null]"), (std::vector<std::optional<int>>{1, std::nullopt}));
}

TEST(JsonRead, AStructTakesItsMembersByNameAndIgnoresOthers) {
  EXPECT_EQ(read<Point>(R"({"y":2,"more":[],"x":1})")->y, 2);
  EXPECT_EQ(read<Point>(R"({"x":1})")->y, 7) << "it has an initialiser";
  EXPECT_EQ(read<Point>(R"({"x":1,"y":null})")->y, 7);
  EXPECT_FALSE(read<Point>(R"({"y":2})")) << "x has none";
  EXPECT_FALSE(read<Point>(R"({"x":null})"));
  EXPECT_FALSE(read<Point>(R"({"x":1,"y":"2"})"));
  EXPECT_FALSE(read<Point>("[1,2]")) << "by position only params are taken";
}

TEST(JsonRead, AStructMayContainItself) {
  const auto root = read<Node>(R"({"name":"a","children":[{"name":"b"},{"name":"c","children":[{"name":"d"}]}]})");
  ASSERT_TRUE(root);
  EXPECT_EQ(root->children->at(1).children->at(0).name, "d");
}

TEST(JsonRead, JsonAndTreesTakeEverything) {
  EXPECT_EQ(read<Json>("[ 1,  2 ]")->text(), "[ 1,  2 ]") << "as it is spelt";
  EXPECT_EQ(read<boost::json::value>("null"), boost::json::value());
  EXPECT_EQ(read<boost::json::object>("{\"a\":1}")->at("a").as_int64(), 1);
  EXPECT_FALSE(read<boost::json::object>("[]"));
  EXPECT_FALSE(read<boost::json::array>("{}"));
}

TEST(JsonRead, JsonInsideSomethingElseIsNotRespelt) {
  for (const char* text : {"1e400", "12345678901234567890123", "\"\\ud800\"", "[ 1 ]"}) {
    EXPECT_EQ(read<std::vector<Json>>("[" + std::string(text) + "]")->front().text(), text);
  }
}

TEST(JsonRead, TheLastOfADoubledNameCountsHoweverItIsSpelt) {
  EXPECT_EQ(read<Point>(R"({"x":1,"\u0078":2})")->x, 2);
  EXPECT_EQ((read<std::map<std::string, int>>(R"({"a":1,"\u0061":2})")), (std::map<std::string, int>{{"a", 2}}));
}

TEST(JsonRead, WhatBoostJsonKnowsIsReadByIt) {
  EXPECT_EQ((read<std::tuple<int, std::string>>(R"([1,"x"])")), std::tuple(1, "x"));
  EXPECT_EQ((read<std::tuple<int, std::string>>("[1]")), std::nullopt);
  EXPECT_EQ((read<std::array<double, 2>>("[1.5,2]")), (std::array{1.5, 2.0}));
  EXPECT_EQ((read<std::array<double, 2>>("[1e400,0]")), std::nullopt);
}

TEST(JsonRead, WhatIsExpectedIsSaidInWords) {
  EXPECT_EQ(expected_of<std::int64_t>(), "integer");
  EXPECT_EQ(expected_of<std::int8_t>(), "integer from -128 to 127");
  EXPECT_EQ(expected_of<std::uint64_t>(), "integer from 0 on");
  EXPECT_EQ(expected_of<std::vector<std::string>>(), "array of strings");
  EXPECT_EQ((expected_of<std::optional<std::map<std::string, std::string>>>()), "object of strings");
  EXPECT_EQ(expected_of<Point>(), "object {x: integer, y?: integer}");
  EXPECT_EQ(expected_of<Json>(), "any");
}

TEST(JsonRead, WhatWouldDangleOrCannotBeReadDoesNotCompile) {
  static_assert(!Readable<std::string_view>);
  static_assert(!Readable<const char*>);
  static_assert(!Readable<char>);
  static_assert(!Readable<int*>);
  static_assert(Readable<Node> && Readable<Colour> && Readable<std::vector<Point>>);
}

}  // namespace
}  // namespace duet::rpc
