#include "duet/rpc/json.h"

#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/describe/class.hpp>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <gtest/gtest.h>

#include "duet/rpc/json_read.h"

namespace duet::rpc {
namespace {

struct Point {
  int x;
  int y;
};
BOOST_DESCRIBE_STRUCT(Point, (), (x, y))

struct Node {
  std::string name;
  std::vector<Node> children;
};
BOOST_DESCRIBE_STRUCT(Node, (), (name, children))

std::string text_of(const Json& json) { return std::string(json.text()); }

TEST(Json, IsMadeFromWhateverAValueIsMadeFrom) {
  EXPECT_EQ(text_of(nullptr), "null");
  EXPECT_EQ(text_of(true), "true");
  EXPECT_EQ(text_of(5), "5");
  EXPECT_EQ(text_of(2.5), "2.5");
  EXPECT_EQ(text_of(boost::json::array{1, "two"}), R"([1,"two"])");
  EXPECT_EQ(text_of(boost::json::object{{"a", 1}}), R"({"a":1})");
  const boost::json::value value{{"a", {1, 2}}};
  EXPECT_EQ(text_of(value), R"({"a":[1,2]})");
  EXPECT_EQ(text_of({{"pong", true}}), R"({"pong":true})");
  EXPECT_EQ(text_of({{"pong", true}, {"count", 2}, {"text", "x"}}), R"({"pong":true,"count":2,"text":"x"})");
  EXPECT_EQ(text_of(Point{1, 2}), R"({"x":1,"y":2})");
}

TEST(Json, OfATextIsAJsonStringWhateverItSays) {
  EXPECT_EQ(text_of("text"), R"("text")");
  EXPECT_EQ(text_of(std::string("{}")), R"("{}")");
  EXPECT_EQ(text_of(std::string_view("a \"b\"")), R"("a \"b\"")");
}

TEST(Json, OfTextIsChecked) {
  EXPECT_EQ(text_of(Json::parse(R"( { "as" : "it is" } )")), R"({ "as" : "it is" })");
  for (const char* text : {"", "{", "nul", "1 2", "/etc/passwd", "\"\xFF\""}) {
    EXPECT_THROW(Json::parse(text), std::invalid_argument) << text;
  }
}

TEST(Json, OfTrustedTextIsTakenAsItIs) {
  EXPECT_EQ(text_of(Json::trusted(R"({ "as" : "it is" })")), R"({ "as" : "it is" })");
  const std::string kept = "[ 1 ]";
  EXPECT_EQ(Json::view(kept).text().data(), kept.data());
}

TEST(Json, OfTrustedTextHasNoBlanksAroundIt) {
  EXPECT_EQ(Json::trusted(" 5\n").as<int>(), 5);
  EXPECT_EQ(Json::view("\t[1]\r\n").text(), "[1]");
  EXPECT_EQ(Json::view(" {}").as<boost::json::object>().size(), 0U);
}

TEST(Json, ThatWasMovedAwayIsNone) {
  for (const std::string& text : {std::string("xyz"), std::string(100, 'x')}) {
    Json from(text);
    Json to = std::move(from);
    EXPECT_TRUE(from.empty());  // NOLINT(bugprone-use-after-move): meant
    from = std::move(to);
    EXPECT_TRUE(to.empty());  // NOLINT(bugprone-use-after-move): meant
    EXPECT_EQ(from.text(), '"' + text + '"');
  }
}

TEST(Json, MayBeNoneAtAll) {
  EXPECT_TRUE(Json().empty());
  EXPECT_TRUE(Json().value().is_null());
  EXPECT_FALSE(Json(nullptr).empty());
}

TEST(Json, MovesWithItsText) {
  for (const std::size_t size : {3U, 300U}) {  // a short text lies inside its string
    Json first = Json::trusted('"' + std::string(size, 'x') + '"');
    Json second = std::move(first);
    EXPECT_EQ(second.text(), '"' + std::string(size, 'x') + '"');
    Json third;
    third = std::move(second);
    EXPECT_EQ(third.text(), '"' + std::string(size, 'x') + '"');
  }
  const std::string kept = "true";
  Json view = Json::view(kept);
  const Json moved = std::move(view);
  EXPECT_EQ(moved.text().data(), kept.data());
}

TEST(Json, ACopyOfAViewHasATextOfItsOwn) {
  std::string text = "[1]";
  const Json view = Json::view(text);
  const Json copy = view;
  Json assigned;
  assigned = view;
  text = "[2]";
  EXPECT_EQ(view.text(), "[2]");
  EXPECT_EQ(copy.text(), "[1]");
  EXPECT_EQ(assigned.text(), "[1]");
}

TEST(Json, IsReadAsAValueThatFits) {
  EXPECT_EQ(Json(5).as<int>(), 5);
  EXPECT_EQ(Json("x").as<std::string>(), "x");
  EXPECT_EQ(Json(Point{1, 2}).as<Point>().y, 2);
  EXPECT_EQ(Json(std::vector{1, 2}).as<std::vector<int>>(), (std::vector{1, 2}));
  EXPECT_EQ(Json().as<std::optional<int>>(), std::nullopt);
  EXPECT_THROW(Json("x").as<int>(), std::invalid_argument);
  EXPECT_THROW(Json(300).as<std::int8_t>(), std::invalid_argument);
  EXPECT_THROW(Json().as<int>(), std::invalid_argument);
}

TEST(Json, TooDeepToBeReadIsTextStill) {
  const auto nodes = [](std::size_t count) {
    std::string text = R"({"name":"leaf","children":[]})";
    for (std::size_t i = 1; i < count; ++i) text.insert(0, R"({"name":"","children":[)").append("]}");
    return text;
  };
  const auto tree = Json::parse(nodes(max_depth / 2)).as<Node>();
  EXPECT_EQ(tree.children.front().children.front().name, "");
  EXPECT_THROW(Json::parse(nodes(max_depth / 2 + 1)).as<Node>(), std::length_error);
  const std::string lists = std::string(100'000, '[') + std::string(100'000, ']');
  EXPECT_THROW(Json::parse(R"({"name":"","children":)" + lists + "}").as<Node>(), std::length_error);
  EXPECT_THROW(Json::parse(lists).as<boost::json::value>(), std::length_error);
  EXPECT_EQ(Json::parse(lists).as<Json>().text(), lists);
}

TEST(Json, OfAShapeIsTextThatPromisesIt) {
  const JsonOf<Point> spelt = JsonOf<Point>::view(R"({"x":1,"y":2})");
  EXPECT_EQ(text_of(spelt), R"({"x":1,"y":2})");
  EXPECT_EQ(text_of(JsonOf<Point>(Point{1, 2})), spelt.text());
}

}  // namespace
}  // namespace duet::rpc
