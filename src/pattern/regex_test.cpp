#include "pattern/regex.h"

#include <chrono>
#include <string>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace duet::pattern {
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

TEST(Regex, CanBeAskedForTheWholeText) {
  const auto parsed = parse_regex("a|ab");
  EXPECT_TRUE(std::get<Regex>(parsed).matches_all_of("ab"));
  EXPECT_FALSE(std::get<Regex>(parsed).matches_all_of("abc"));
}

TEST(Regex, HasWhatItsPagePromises) {
  EXPECT_TRUE(found("^\\d{2,4}$", "123"));
  EXPECT_FALSE(found("^\\d{2,4}$", "12345"));
  EXPECT_TRUE(found("\\bfoo\\b", "a foo b"));
  EXPECT_FALSE(found("\\bfoo\\b", "afoo"));
  EXPECT_TRUE(found("^[^\\s/]+$", "ä-b"));
  EXPECT_TRUE(found("(?i)^readme\\.[A-Z]+$", "README.md"));
  EXPECT_FALSE(found("^b$", "a\nb")) << "^ and $ are the text's";
  EXPECT_FALSE(found("^.$", "\n"));
}

TEST(Regex, WhatIsNotUtf8IsACharacterByBytes) {
  EXPECT_TRUE(found("^.$", "\xE2\x82\xAC"));
  EXPECT_TRUE(found("^.$", "\xFF"));
  EXPECT_TRUE(found("^..$", "\xE2\x82")) << "cut short";
  EXPECT_TRUE(found("z$", "\xC3z"));
}

TEST(Regex, SaysWhatItCannotDo) {
  EXPECT_EQ(fault("x(a"), "missing ) at 'x(a'");
  EXPECT_EQ(fault("*a"), "no argument for repetition operator at '*'");
  EXPECT_EQ(fault("(a)\\1"), "invalid escape sequence at '\\1'");
  EXPECT_EQ(fault("(?=a)"), "invalid perl operator at '(?='");
  EXPECT_EQ(fault("a\\"), "trailing \\");
  EXPECT_EQ(fault("\xFF"), "invalid UTF-8");
  EXPECT_EQ(fault(std::string(3'000, '(')), "missing ) at '" + std::string(40, '(') + "'") << "not quoted at length";
}

TEST(Regex, IsRefusedWhenItIsTooLarge) {
  std::string repetitions;
  while (repetitions.size() < 3'000) repetitions += "a{1000}";
  EXPECT_EQ(fault(repetitions), "the pattern is too large");
  EXPECT_EQ(fault(std::string(100'000, 'a')), "the pattern is too large");
  EXPECT_EQ(fault("((a{1000}){1000}){1000}"), "invalid repetition size at '{1000}'");
  EXPECT_EQ(fault("(((){1000}){1000}){1000}"), "invalid repetition size at '{1000}'");
}

TEST(Regex, TakesNoLongerForPatternsThatInviteToTryEverything) {
  const auto start = std::chrono::steady_clock::now();
  EXPECT_FALSE(found("^((a*)*)*(a|aa)+$", std::string(4'000, 'a') + "b"));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20)) << "tried one by one it has no end";
}

RC_GTEST_PROP(Regex, AnyTextIsReadOrRefused, (const std::string& text, const std::string& in)) {
  auto parsed = parse_regex(text);
  if (const auto* regex = std::get_if<Regex>(&parsed)) regex->found_in(in);
}

}  // namespace
}  // namespace duet::pattern
