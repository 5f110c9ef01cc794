#include "duet/rpc/schema.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <boost/describe/class.hpp>
#include <boost/describe/enum.hpp>
#include <boost/json/serialize.hpp>
#include <gtest/gtest.h>

#include "duet/rpc/json.h"

namespace duet::rpc {
namespace {

enum class Colour { red, green };
BOOST_DESCRIBE_ENUM(Colour, red, green)

struct Point {
  double x;
  double y = 0;
  std::optional<std::string> name;
};
BOOST_DESCRIBE_STRUCT(Point, (), (x, y, name))

struct Node {
  std::string name;
  std::vector<Node> children = {};
};
BOOST_DESCRIBE_STRUCT(Node, (), (name, children))

struct Nothing {};
BOOST_DESCRIBE_STRUCT(Nothing, (), ())

template <typename T, SchemaMaker::Of of = SchemaMaker::Of::read>
std::string schema() {
  return boost::json::serialize(schema_of<T, of>());
}

TEST(Schema, OfPlainTypesIsTheirJsonType) {
  EXPECT_EQ(schema<std::string>(), R"({"type":"string"})");
  EXPECT_EQ(schema<bool>(), R"({"type":"boolean"})");
  EXPECT_EQ(schema<double>(), R"({"type":"number"})");
  EXPECT_EQ(schema<void>(), R"({"type":"null"})");
  EXPECT_EQ(schema<Json>(), "{}");
  EXPECT_EQ(schema<boost::json::value>(), "{}");
  EXPECT_EQ(schema<boost::json::object>(), R"({"type":"object"})");
}

TEST(Schema, OfAnIntegerHasItsRange) {
  EXPECT_EQ(schema<std::int8_t>(), R"({"type":"integer","minimum":-128,"maximum":127})");
  EXPECT_EQ(schema<std::int64_t>(),
            R"({"type":"integer","minimum":-9223372036854775808,"maximum":9223372036854775807})");
  EXPECT_EQ(schema<std::uint64_t>(), R"({"type":"integer","minimum":0,"maximum":18446744073709551615})");
}

TEST(Schema, OfAnEnumListsItsWords) {
  EXPECT_EQ(schema<Colour>(), R"({"type":"string","enum":["red","green"]})");
  EXPECT_EQ(schema<std::optional<Colour>>(), R"({"type":["string","null"],"enum":["red","green",null]})");
}

TEST(Schema, OfListsAndMapsSaysWhatIsInside) {
  EXPECT_EQ(schema<std::vector<bool>>(), R"({"type":"array","items":{"type":"boolean"}})");
  EXPECT_EQ((schema<std::map<std::string, bool>>()), R"({"type":"object","additionalProperties":{"type":"boolean"}})");
}

TEST(Schema, OfAStructSaysWhatIsRequired) {
  EXPECT_EQ(schema<Point>(), R"({"type":"object","properties":{"x":{"type":"number"},"y":{"type":["number","null"]},)"
                             R"("name":{"type":["string","null"]}},"required":["x"]})");
  EXPECT_EQ(schema<JsonOf<Point>>(), schema<Point>());
  EXPECT_EQ(schema<Nothing>(), R"({"type":"object","properties":{}})");
}

TEST(Schema, OfAStructThatIsWrittenHasAllItsMembersButTheOptionalOnes) {
  EXPECT_EQ((schema<Point, SchemaMaker::Of::written>()),
            R"({"type":"object","properties":{"x":{"type":"number"},"y":{"type":"number"},)"
            R"("name":{"type":["string","null"]}},"required":["x","y"]})");
}

TEST(Schema, OfAStructInsideItselfIsJustAnObject) {
  EXPECT_EQ(schema<Node>(),
            R"({"type":"object","properties":{"name":{"type":"string"},)"
            R"("children":{"type":"array","items":{"type":"object"}}},"required":["name","children"]})");
}

}  // namespace
}  // namespace duet::rpc
