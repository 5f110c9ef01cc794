#include "duet/rpc/json_scan.h"

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "duet/rpc/case_file_test.h"

namespace duet::rpc {
namespace {

using Shape = Envelope::Shape;

std::string repeated(std::size_t count, std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < count; ++i) out += text;
  return out;
}

std::string nested(std::size_t levels) { return std::string(levels, '[') + std::string(levels, ']'); }

std::vector<std::string> elements(std::string_view array) {
  std::vector<std::string> out;
  for_each_element(array, [&](std::string_view value) {
    out.emplace_back(value);
    return true;
  });
  return out;
}

std::vector<std::pair<std::string, std::string>> members(std::string_view object) {
  std::vector<std::pair<std::string, std::string>> out;
  for_each_member(object, [&](std::string_view name, std::string_view value) {
    out.emplace_back(name, value);
    return true;
  });
  return out;
}

TEST(JsonScan, JudgesEveryCornerCaseAsTheDataSays) {
  for (const JsonCase& one : json_cases()) {
    EXPECT_EQ(is_valid_json(one.text), one.valid) << one.name;
    EXPECT_EQ(scan_envelope(one.text).shape != Shape::invalid, one.valid) << one.name;
  }
}

// What is valid or not alone must be so at every place where a value can stand.
TEST(JsonScan, JudgesEveryCornerCaseTheSameInsideArraysAndObjects) {
  for (const JsonCase& one : json_cases()) {
    // Commas and brackets of a case may pair up with those around it.
    if (!one.valid && one.text.find_first_of(",:[]{}\"") != std::string::npos) continue;
    const bool valid = one.valid;
    for (const auto& [before, after] : std::vector<std::pair<std::string, std::string>>{
             {"[1,", ",2]"}, {"{\"a\":", "}"}, {"{\"a\":1,\"b\":", ",\"c\":2}"}, {"[[{\"a\":[0,", "]}]]"}}) {
      EXPECT_EQ(is_valid_json(before + one.text + after), valid) << before << one.name << after;
      EXPECT_EQ(scan_envelope(before + one.text + after).shape != Shape::invalid, valid) << before << one.name << after;
    }
  }
}

TEST(JsonScan, RefusesAMemberWithoutAValueAtAnyDepth) {
  for (const std::string_view text :
       {R"({"a":})", R"({"a": })", R"([{"a":}])", R"({"x":{"a":}})", R"({"x":{"a":1,"b":}})"}) {
    EXPECT_FALSE(is_valid_json(text)) << text;
    EXPECT_EQ(scan_envelope(text).shape, Shape::invalid) << text;
  }
}

TEST(JsonScan, RefusesEveryProperPrefixOfAnObject) {
  const std::string text = R"( {"a":[1,-2.5e+3,{"b":"\u00e9\n"},[],{}],"c":true,"d":null,"":"é"})";
  ASSERT_TRUE(is_valid_json(text));
  for (std::size_t size = 0; size < text.size(); ++size) {
    EXPECT_FALSE(is_valid_json(text.substr(0, size))) << size;
    EXPECT_EQ(scan_envelope(text.substr(0, size)).shape, Shape::invalid) << size;
  }
}

TEST(JsonScan, ClosesABracketOnlyWithItsOwnKindAtEveryDepth) {
  for (std::size_t depth = 1; depth <= 200; ++depth) {
    for (std::size_t wrong = 0; wrong < depth; ++wrong) {
      // Arrays and objects in turn, so that a lost bit of nesting would show.
      std::string open;
      std::string close;
      for (std::size_t level = 0; level < depth; ++level) {
        const bool is_object = level % 3 == 1;
        open += is_object ? "{\"a\":" : "[";
        close.insert(close.begin(), is_object ? '}' : ']');
      }
      ASSERT_TRUE(is_valid_json(open + "1" + close)) << depth;
      close[wrong] = close[wrong] == '}' ? ']' : '}';
      ASSERT_FALSE(is_valid_json(open + "1" + close)) << depth << ' ' << wrong;
    }
  }
}

TEST(JsonScan, TellsTheShapeOfTheText) {
  EXPECT_EQ(scan_envelope(" {} ").shape, Shape::object);
  EXPECT_EQ(scan_envelope("\r\n[]\t").shape, Shape::array);
  for (const char* scalar : {"1", "\"{}\"", "null", "true", "false", "-0.5e-7"}) {
    EXPECT_EQ(scan_envelope(scalar).shape, Shape::scalar) << scalar;
  }
  for (const char* broken : {"", " ", "{", "]", "nul", "{}{}", "[] x"}) {
    EXPECT_EQ(scan_envelope(broken).shape, Shape::invalid) << broken;
  }
}

TEST(JsonScan, SlicesTheMembersOfAMessageByteForByte) {
  const Envelope found = scan_envelope(
      R"({ "jsonrpc" : "2.0" , "id" : 1.50 , "method":"m","params":[ 1 ,2], "result" :null,"error": { } })");
  EXPECT_EQ(found.text(Envelope::jsonrpc), R"("2.0")");
  EXPECT_EQ(found.text(Envelope::id), "1.50");
  EXPECT_EQ(found.text(Envelope::method), R"("m")");
  EXPECT_EQ(found.text(Envelope::params), "[ 1 ,2]");
  EXPECT_EQ(found.text(Envelope::result), "null");
  EXPECT_EQ(found.text(Envelope::error), "{ }");
  EXPECT_EQ(found.doubled, 0);
  EXPECT_FALSE(found.too_deep);
}

TEST(JsonScan, OnlyMembersOfTheOuterObjectCount) {
  const Envelope found = scan_envelope(R"({"params":{"id":7,"method":"x"},"list":[{"jsonrpc":1}]})");
  EXPECT_TRUE(found.has(Envelope::params));
  for (const auto member : {Envelope::jsonrpc, Envelope::id, Envelope::method, Envelope::result, Envelope::error}) {
    EXPECT_FALSE(found.has(member)) << member;
  }
}

TEST(JsonScan, NamesNearToOursAreNotOurs) {
  for (const char* name : {"", "i", "ID", "Id", "idd", "methods", "metho", "Method", "jsonrpc ", "json\\u0000rpc",
                           "err\\u00f6r", "\\\\u0069d", "id\\u0000", "paramz", "resul", "errors"}) {
    const std::string text = std::string("{\"") + name + "\":1}";
    const Envelope found = scan_envelope(text);
    ASSERT_EQ(found.shape, Shape::object) << name;
    EXPECT_EQ(found.present, 0) << name;
  }
}

TEST(JsonScan, KnowsEachOfOurNamesHoweverItIsSpelt) {
  const std::vector<std::pair<std::string, Envelope::Member>> names = {
      {"jsonrpc", Envelope::jsonrpc}, {"id", Envelope::id},         {"method", Envelope::method},
      {"params", Envelope::params},   {"result", Envelope::result}, {"error", Envelope::error}};
  constexpr std::string_view hex = "0123456789abcdef";
  for (const auto& [name, member] : names) {
    for (unsigned escaped = 0; escaped < 1U << name.size(); ++escaped) {
      std::string spelt;
      for (std::size_t i = 0; i < name.size(); ++i) {
        const auto byte = static_cast<unsigned char>(name[i]);
        if ((escaped >> i & 1U) == 0) {
          spelt += name[i];
        } else {
          spelt.append("\\u00") += {hex[byte / 16U], hex[byte % 16U]};
        }
      }
      const std::string text = "{\"" + spelt + "\":1,\"" + name + "\":2}";
      const Envelope found = scan_envelope(text);
      ASSERT_EQ(found.text(member), "1") << text;
      ASSERT_TRUE(found.is_doubled(member)) << text;
    }
  }
}

TEST(JsonScan, ReadsADoubledMemberAsCarefullyAsTheFirst) {
  for (std::size_t size = 0; size < 200; ++size) {
    const std::string method = "\"method\":\"" + std::string(size, 'm') + "\"";
    const std::string good =
        "{" + method + "," + method + ",\"id\":1,\"id\":2,\"jsonrpc\":\"2.0\",\"jsonrpc\":\"2.0\"}";
    const Envelope found = scan_envelope(good);
    ASSERT_EQ(found.shape, Shape::object) << size;
    ASSERT_TRUE(found.is_doubled(Envelope::method)) << size;
    ASSERT_TRUE(found.is_doubled(Envelope::id)) << size;
    ASSERT_TRUE(found.is_doubled(Envelope::jsonrpc)) << size;
    for (const char* wrong : {"\xFF", "\n", "\\x"}) {
      std::string bad = good;
      bad.insert(bad.find("\",\"id\""), wrong);
      ASSERT_EQ(scan_envelope(bad).shape, Shape::invalid) << size;
      bad = good;
      bad.insert(bad.find("\",\"method\""), wrong);
      ASSERT_EQ(scan_envelope(bad).shape, Shape::invalid) << size;
    }
  }
}

TEST(JsonScan, NotesWhichMembersStandThereTwice) {
  const Envelope found = scan_envelope(R"({"id":1,"x":1,"params":2,"x":3,"params":4,"id":5,"id":6,"method":0})");
  EXPECT_TRUE(found.is_doubled(Envelope::id));
  EXPECT_TRUE(found.is_doubled(Envelope::params));
  EXPECT_FALSE(found.is_doubled(Envelope::method));
  EXPECT_EQ(found.text(Envelope::id), "1");
}

TEST(JsonScan, NotesAnIdOfTheWrongTypeEvenIfAnotherIsFine) {
  for (const char* text : {R"({"id":{}})", R"({"id":[]})", R"({"id":true})", R"({"id":false})", R"({"id":1,"id":{}})",
                           R"({"id":{},"id":1})", R"({"\u0069d":[1]})"}) {
    EXPECT_TRUE(scan_envelope(text).id_of_wrong_type) << text;
  }
  for (const char* text : {R"({"id":1})", R"({"id":"true"})", R"({"id":null})", R"({"x":{"id":{}}})"}) {
    EXPECT_FALSE(scan_envelope(text).id_of_wrong_type) << text;
  }
}

TEST(JsonScan, Level512IsTheLastThatIsNotTooDeep) {
  EXPECT_FALSE(scan_envelope(nested(512)).too_deep);
  EXPECT_TRUE(scan_envelope(nested(513)).too_deep);
  EXPECT_FALSE(scan_envelope("{\"x\":" + nested(511) + "}").too_deep);
  EXPECT_TRUE(scan_envelope("{\"x\":" + nested(512) + "}").too_deep);
  EXPECT_FALSE(scan_envelope(repeated(512, "{\"a\":") + "1" + repeated(512, "}")).too_deep);
  EXPECT_TRUE(scan_envelope(repeated(513, "{\"a\":") + "1" + repeated(513, "}")).too_deep);
  EXPECT_TRUE(scan_envelope("{\"x\":[1," + nested(511) + ",2],\"y\":3}").too_deep);
}

TEST(JsonScan, BreadthIsNoDepth) { EXPECT_FALSE(scan_envelope("[" + repeated(2000, "[],{},") + "0]").too_deep); }

TEST(JsonScan, ValidatesFiveMillionLevels) {
  constexpr std::size_t levels = 5'000'000;
  EXPECT_TRUE(is_valid_json(nested(levels)));
  EXPECT_FALSE(is_valid_json(std::string(levels, '[') + std::string(levels - 1, ']')));
  EXPECT_FALSE(is_valid_json(std::string(levels, '[') + std::string(levels - 1, ']') + "}"));
  EXPECT_FALSE(is_valid_json(std::string(levels, '[') + "}" + std::string(levels - 1, ']')));
  const std::string message = "{\"x\":" + nested(levels) + ",\"id\":7}";
  const Envelope found = scan_envelope(message);
  EXPECT_EQ(found.shape, Shape::object);
  EXPECT_TRUE(found.too_deep);
  EXPECT_EQ(found.text(Envelope::id), "7");
}

TEST(JsonScan, WalksTheElementsOfAnArray) {
  EXPECT_EQ(elements("[]"), (std::vector<std::string>{}));
  EXPECT_EQ(elements(" [ ] "), (std::vector<std::string>{}));
  EXPECT_EQ(elements(R"( [ 1 ,"a,]",[2,3] , {"b":[ ]},null ] )"),
            (std::vector<std::string>{"1", R"("a,]")", "[2,3]", R"({"b":[ ]})", "null"}));
}

TEST(JsonScan, WalksTheMembersOfAnObjectWithTheirNamesDecoded) {
  EXPECT_TRUE(members("{ }").empty());
  const auto found = members(R"({ "a" : 1 , "\u0062":{"c":2}, "":"}" })");
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[0], (std::pair<std::string, std::string>("a", "1")));
  EXPECT_EQ(found[1], (std::pair<std::string, std::string>("b", R"({"c":2})")));
  EXPECT_EQ(found[2], (std::pair<std::string, std::string>("", R"("}")")));
}

TEST(JsonScan, ANumberEndsAtTheFirstByteThatIsNoDigitWhereverThatIs) {
  for (std::size_t length = 1; length <= 18; ++length) {
    for (int byte = 0; byte < 256; ++byte) {
      const char c = static_cast<char>(byte);
      const std::string text = '[' + std::string(length, '7') + c + "123456789]";
      const bool is_valid = (c >= '0' && c <= '9') || c == ',' || c == '.' || c == 'e' || c == 'E';
      EXPECT_EQ(is_valid_json(text), is_valid) << text;
      EXPECT_TRUE(is_valid_json(std::string(length, '7')));
    }
  }
}

TEST(JsonScan, StopsWalkingWhenTheVisitorHasEnough) {
  int seen = 0;
  for_each_element("[1,2,3]", [&](std::string_view) { return ++seen < 2; });
  EXPECT_EQ(seen, 2);
  for_each_member(R"({"a":1,"b":2})", [&](std::string_view, std::string_view) { return ++seen < 0; });
  EXPECT_EQ(seen, 3);
}

}  // namespace
}  // namespace duet::rpc
