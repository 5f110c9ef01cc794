#include "duet/rpc/value.h"

#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "duet/rpc/case_file_test.h"
#include "duet/rpc/json_scan.h"

namespace duet::rpc {
namespace {

namespace json = boost::json;

std::string nested(std::size_t levels) { return std::string(levels, '[') + std::string(levels, ']'); }

TEST(Value, IsTheTreeThatBoostWouldBuildForEveryCornerCaseItAccepts) {
  json::parse_options options;
  options.max_depth = max_depth;
  std::size_t compared = 0;
  for (const JsonCase& one : json_cases()) {
    if (!one.valid || scan_envelope(one.text).too_deep) continue;
    json::error_code error;
    const json::value theirs = json::parse(one.text, error, {}, options);
    if (error) continue;  // lone surrogates, large exponents
    EXPECT_EQ(parse_value(one.text), theirs) << one.name;
    ++compared;
  }
  EXPECT_GT(compared, 100U);
}

TEST(Value, EveryValidCornerCaseHasATreeAndATextThatIsValid) {
  for (const JsonCase& one : json_cases()) {
    if (!one.valid || scan_envelope(one.text).too_deep) continue;
    EXPECT_TRUE(is_valid_json(to_text(parse_value(one.text)))) << one.name;
  }
}

TEST(Value, KeepsTheLastOfADoubledName) {
  EXPECT_EQ(to_text(parse_value(R"({"a":1,"b":2,"\u0061":3})")), R"({"a":3,"b":2})");
}

TEST(Value, HalfASurrogatePairBecomesTheReplacementCharacter) {
  EXPECT_EQ(parse_value(R"("a\ud800z")"), json::value("a\xEF\xBF\xBDz"));
  EXPECT_EQ(parse_value(R"({"\udc00":1})").as_object().begin()->key(), "\xEF\xBF\xBD");
}

TEST(Value, IntegersStayExactAsFarAsSixtyFourBitsGo) {
  EXPECT_EQ(parse_value("-9223372036854775808").as_int64(), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(parse_value("9223372036854775807").as_int64(), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(parse_value("9223372036854775808").as_uint64(), 9'223'372'036'854'775'808U);
  EXPECT_EQ(parse_value("18446744073709551615").as_uint64(), std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(parse_value("18446744073709551616").as_double(), 18446744073709551616.0);
  EXPECT_EQ(parse_value("-9223372036854775809").as_double(), -9223372036854775809.0);
}

TEST(Value, ANumberBeyondAllDoublesIsInfiniteAndWrittenAsNull) {
  EXPECT_TRUE(std::isinf(parse_value("1e400").as_double()));
  EXPECT_EQ(to_text(parse_value("[1e400,-1e400]")), "[null,null]");
  EXPECT_EQ(to_text(json::value(std::numeric_limits<double>::quiet_NaN())), "null");
}

TEST(Value, Level512IsTheDeepest) {
  EXPECT_NO_THROW(parse_value(nested(512)));
  EXPECT_THROW(parse_value(nested(513)), std::length_error);
  EXPECT_THROW(parse_value(nested(100'000)), std::length_error);
  const std::string scalar_inside = std::string(512, '[') + "1" + std::string(512, ']');
  EXPECT_EQ(to_text(parse_value(scalar_inside)), scalar_inside);
  std::string objects = "1";
  for (int level = 0; level < 512; ++level) objects = "{\"a\":" + objects + "}";
  EXPECT_EQ(to_text(parse_value(objects)), objects);
  EXPECT_THROW(parse_value("{\"a\":" + objects + "}"), std::length_error);
}

TEST(Value, IgnoresWhiteSpaceEverywhere) {
  EXPECT_EQ(to_text(parse_value(" \t\r\n[ 1 , { \"a\" : [ ] , \"b\" : { } } , \"x y\" ] \n")),
            R"([1,{"a":[],"b":{}},"x y"])");
}

TEST(Value, IsWrittenOnOneLineInValidUtf8) {
  const json::value value = {{"text", "a\nb"}, {"bad", "\xFF"}, {"n", nullptr}, {"t", true},
                             {"f", false},     {"u", 1U},       {"i", -1}};
  EXPECT_EQ(to_text(value), R"({"text":"a\nb","bad":")"
                            "\xEF\xBF\xBD"
                            R"(","n":null,"t":true,"f":false,"u":1,"i":-1})");
}

TEST(Value, IsAppendedBehindWhatIsThere) {
  std::string out = "x";
  append_value(out, json::array{1, 2.5, "three"});
  EXPECT_EQ(out, R"(x[1,2.5,"three"])");
}

RC_GTEST_PROP(Value, ADoubleComesBackThroughItsText, (double number)) {
  RC_PRE(std::isfinite(number));
  const std::string text = to_text(json::value(number));
  RC_ASSERT(is_valid_json(text));
  RC_ASSERT(parse_value(text).to_number<double>() == number);
}

RC_GTEST_PROP(Value, AnIntegerComesBackThroughItsText, (std::int64_t number)) {
  RC_ASSERT(parse_value(to_text(json::value(number))) == json::value(number));
}

}  // namespace
}  // namespace duet::rpc
