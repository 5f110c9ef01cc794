#include "duet/rpc/json_write.h"

#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include <boost/describe/class.hpp>
#include <boost/describe/enum.hpp>
#include <gtest/gtest.h>

#include "duet/rpc/json.h"

namespace duet::rpc {
namespace {

enum class Colour { red, green };
BOOST_DESCRIBE_ENUM(Colour, red, green)

enum class Encoding { utf_8, base64 };

}  // namespace

template <>
struct EnumWords<Encoding> {
  static constexpr std::array<EnumWord<Encoding>, 2> list{{{Encoding::utf_8, "utf-8"}, {Encoding::base64, "base64"}}};
};

namespace {

struct Base {
  int first = 1;
};
BOOST_DESCRIBE_STRUCT(Base, (), (first))

struct Everything : Base {
  std::string text = "t";
  std::optional<int> none = {};
  std::optional<int> some = 2;
  std::vector<Colour> colours = {Colour::red, Colour::green};
  std::map<std::string, double> numbers = {{"a \"b\"", 0.5}};
  Encoding encoding = Encoding::utf_8;
  Json spelt = Json::view("[ ]");
};
BOOST_DESCRIBE_STRUCT(Everything, (Base), (text, none, some, colours, numbers, encoding, spelt))

struct WithKeyword {
  int default_ = 1;
  int class_ = 2;
};
BOOST_DESCRIBE_STRUCT(WithKeyword, (), (default_, class_))

struct Undescribed {};

template <typename T>
std::string written(const T& value) {
  std::string out;
  append_json(out, value);
  return out;
}

TEST(JsonWrite, NumbersAreExact) {
  EXPECT_EQ(written(std::numeric_limits<std::int64_t>::min()), "-9223372036854775808");
  EXPECT_EQ(written(std::numeric_limits<std::uint64_t>::max()), "18446744073709551615");
  EXPECT_EQ(written(std::int8_t{-5}), "-5");
  EXPECT_EQ(written(0.1), "0.1");
  EXPECT_EQ(written(std::numeric_limits<double>::infinity()), "null");
}

TEST(JsonWrite, AStructHasTheNamesOfItsMembersThoseOfItsBaseFirstAndLeavesOutWhatIsNotThere) {
  EXPECT_EQ(written(Everything()),
            R"({"first":1,"text":"t","some":2,"colours":["red","green"],"numbers":{"a \"b\"":0.5},)"
            R"("encoding":"utf-8","spelt":[ ]})");
}

TEST(JsonWrite, ANameThatEndsWithALineIsWrittenWithoutIt) {
  EXPECT_EQ(written(WithKeyword()), R"({"default":1,"class":2})");
}

TEST(JsonWrite, AnOptionalInAListIsNull) {
  EXPECT_EQ(written(std::vector<std::optional<int>>{1, std::nullopt}), "[1,null]");
  EXPECT_EQ(written(std::optional<int>()), "null");
}

TEST(JsonWrite, ListsAndMapsAreWhateverHoldsSeveral) {
  EXPECT_EQ(written(std::vector<bool>{true, false}), "[true,false]");
  EXPECT_EQ(written(std::set<int>{2, 1}), "[1,2]");
  EXPECT_EQ(written(std::deque<std::string>{"a"}), R"(["a"])");
  EXPECT_EQ(written(std::unordered_map<std::string, int>{{"a", 1}}), R"({"a":1})");
  EXPECT_EQ(written(std::vector<int>()), "[]");
}

TEST(JsonWrite, WhatBoostJsonKnowsIsWrittenByIt) { EXPECT_EQ(written(std::tuple(1, "x")), R"([1,"x"])"); }

TEST(JsonWrite, BytesThatAreNotUtf8AreReplaced) {
  EXPECT_EQ(written(std::map<std::string, std::string>{{"\xFF", "\xFF"}}), "{\"\uFFFD\":\"\uFFFD\"}");
}

TEST(JsonWrite, AValueThatIsNoEnumeratorThrows) { EXPECT_THROW(written(static_cast<Colour>(7)), std::out_of_range); }

TEST(JsonWrite, AnAbsentJsonIsNull) { EXPECT_EQ(written(std::vector<Json>(1)), "[null]"); }

TEST(JsonWrite, WhatHasNoJsonDoesNotCompile) {
  static_assert(!Writable<Undescribed>);
  static_assert(!Writable<Undescribed*>);
  static_assert(!Writable<char>);
  static_assert(!Writable<long double>);
  static_assert(Writable<Everything> && Writable<Colour> && Writable<Encoding>);
  static_assert(!std::is_constructible_v<Json, Undescribed>);
}

}  // namespace
}  // namespace duet::rpc
