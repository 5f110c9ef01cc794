#include "automation/regex.h"

#include <chrono>
#include <regex>
#include <string>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace duet::automation {
namespace {

bool found(std::string_view text, std::string_view in) {
  auto parsed = parse_regex(text);
  EXPECT_TRUE(std::holds_alternative<Regex>(parsed)) << text << ": " << std::get<std::string>(parsed);
  return std::get<Regex>(parsed).found_in(in);
}

std::string fault(std::string_view text) {
  auto parsed = parse_regex(text);
  return std::holds_alternative<Regex>(parsed) ? "accepted" : std::get<std::string>(parsed);
}

TEST(Regex, IsLookedForAnywhere) {
  EXPECT_TRUE(found("_test", "src/a_test.cpp"));
  EXPECT_FALSE(found("_test", "src/a.cpp"));
  EXPECT_TRUE(found("", ""));
  EXPECT_TRUE(found("^src/.*\\.(cpp|h)$", "src/x/a.h"));
  EXPECT_FALSE(found("^src/.*\\.(cpp|h)$", "lib/src/a.h"));
}

TEST(Regex, KnowsClassesEdgesAndRepetitions) {
  EXPECT_TRUE(found("^\\d{2,4}$", "123"));
  EXPECT_FALSE(found("^\\d{2,4}$", "12345"));
  EXPECT_TRUE(found("^\\d{2,}$", "12345"));
  EXPECT_TRUE(found("^a{2}$", "aa"));
  EXPECT_TRUE(found("\\bfoo\\b", "a foo b"));
  EXPECT_FALSE(found("\\bfoo\\b", "afoo"));
  EXPECT_TRUE(found("\\Boo", "foo"));
  EXPECT_TRUE(found("^[^\\s/]+$", "ä-b"));
  EXPECT_TRUE(found("^[]a-]+$", "]a-"));
  EXPECT_TRUE(found("(?i)^readme\\.[A-Z]+$", "README.md"));
  EXPECT_TRUE(found("^.$", "\xE2\x82\xAC")) << "one character, three bytes";
  EXPECT_TRUE(found("a{x", "a{x")) << "no count, so text";
  EXPECT_TRUE(found("^a+?$", "aaa"));
  EXPECT_FALSE(found("^.$", "\n"));
}

TEST(Regex, SaysWhatItCannotDo) {
  EXPECT_EQ(fault("(a"), "a ( in the regular expression has no )");
  EXPECT_EQ(fault("a)"), "a ) in the regular expression has no (");
  EXPECT_EQ(fault("[a"), "a [ in the regular expression has no ]");
  EXPECT_EQ(fault("*a"), "nothing stands before a *, + or ? of the regular expression");
  EXPECT_EQ(fault("a**"), "a repetition in the regular expression is repeated; put it into (?: )");
  EXPECT_EQ(fault("a{3,2}"), "a repetition in the regular expression ends before it begins");
  EXPECT_EQ(fault("(a)\\1"), "\\1 is unknown in the regular expression");
  EXPECT_EQ(fault("(?=a)"), "only (?: may begin with (? in the regular expression, and (?i) at its start");
  EXPECT_EQ(fault("[[:alpha:]]"), "[: is unknown in the regular expression; use \\d, \\w or \\s");
  EXPECT_EQ(fault("a\\"), "the regular expression cannot end with a backslash");
  EXPECT_EQ(fault("[b-a]"), "a range in the regular expression ends before it begins");
  EXPECT_EQ(fault("((a{1000}){1000}){1000}"), "the pattern is too large");
  EXPECT_EQ(fault("(((){1000}){1000}){1000}"), "the pattern is too large");
  EXPECT_EQ(fault(std::string(100'000, '(')), "the groups of the regular expression are nested too deeply");
}

TEST(Regex, TakesNoLongerForPatternsThatInviteToTryEverything) {
  const auto start = std::chrono::steady_clock::now();
  EXPECT_FALSE(found("^((a*)*)*(a|aa)+$", std::string(4'000, 'a') + "b"));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20)) << "tried one by one it has no end";
}

// A regular expression that is right by construction.
std::string any_regex(int depth) {
  switch (depth == 0 ? *rc::gen::inRange(0, 4) : *rc::gen::inRange(0, 9)) {
    case 0:
      return *rc::gen::element<std::string>("a", "b", "-");
    case 1:
      return *rc::gen::element<std::string>("[ab]", "[^a]", "\\w", "\\W");
    case 2:
      return *rc::gen::element<std::string>(".", "a");
    case 3:
      return *rc::gen::element<std::string>("^", "$", "\\b", "\\B");
    case 4:
      return "(" + any_regex(depth - 1) + "|" + any_regex(depth - 1) + ")";
    case 5:
      return "(?:" + any_regex(depth - 1) + ")" + *rc::gen::element<std::string>("?", "{2}", "{1,3}");
    case 6:
      return *rc::gen::element<std::string>("a", ".", "[ab]") + *rc::gen::element<std::string>("*", "+", "{2,}");
    default:
      return any_regex(depth - 1) + any_regex(depth - 1);
  }
}

RC_GTEST_PROP(Regex, AgreesWithTheStandardLibrary, ()) {
  const std::string text = any_regex(4);
  const std::regex reference(text);
  for (int i = 0; i < 10; ++i) {
    const auto in = *rc::gen::resize(8, rc::gen::container<std::string>(rc::gen::element('a', 'b', '-', '_')));
    RC_LOG() << text << " in " << in;
    RC_ASSERT(found(text, in) == std::regex_search(in, reference));
  }
}

RC_GTEST_PROP(Regex, AnyTextIsReadOrRefused, (const std::string& text, const std::string& in)) {
  auto parsed = parse_regex(text);
  if (const auto* regex = std::get_if<Regex>(&parsed)) regex->found_in(in);
}

}  // namespace
}  // namespace duet::automation
