#include "app/cli/option_value.h"

#include <gtest/gtest.h>

namespace duet::app {
namespace {

constexpr std::string_view colours[] = {"red", "green"};
constexpr OptionEntry colour{.name = "main-colour", .value = "C", .summary = "", .choices = colours};
constexpr OptionEntry count{
    .name = "count", .value = "N", .summary = "", .kind = ValueKind::number, .least = -2, .most = 5};
constexpr OptionEntry memory{.name = "memory", .value = "S", .summary = "", .kind = ValueKind::bytes, .least = 4096};
constexpr OptionEntry cores{.name = "cpu", .value = "N", .summary = "", .kind = ValueKind::decimal};
constexpr OptionEntry pause{.name = "pause", .value = "D", .summary = "", .kind = ValueKind::duration, .least = 0};

std::string taken(const OptionEntry& option, std::string_view word) {
  const auto checked = checked_value(option, word);
  const auto* bad = std::get_if<BadValue>(&checked);
  return bad == nullptr ? std::get<std::string>(checked) : bad->message;
}

TEST(OptionValue, AChoiceIsSpeltAsInTheTable) {
  EXPECT_EQ(taken(colour, "GREEN"), "green");
  EXPECT_EQ(taken(colour, "blue"), "bad value 'blue' of option '--main-colour': it is one of red or green");
  EXPECT_EQ(std::get<BadValue>(checked_value(colour, "gren")).suggestion, "green");
}

TEST(OptionValue, ANumberIsWholeAndInRange) {
  EXPECT_EQ(taken(count, "-2"), "-2");
  EXPECT_EQ(taken(count, "5"), "5");
  for (const char* word : {"6", "-3", "1.0", "1 ", "", "x", "99999999999999999999"}) {
    EXPECT_EQ(taken(count, word), "bad value '" + std::string(word) +
                                      "' of option '--count': it is a whole number, at least -2, at most 5");
  }
}

TEST(OptionValue, ASizeHasAUnit) {
  EXPECT_EQ(taken(memory, "2G"), "2G");
  EXPECT_EQ(taken(memory, "4096"), "4096");
  for (const char* word : {"4095", "2T", "-1", "", "x", "9999999999G"}) {
    EXPECT_EQ(taken(memory, word), "bad value '" + std::string(word) +
                                       "' of option '--memory': it is a number of bytes, or one such as '512M' or "
                                       "'2G', at least 4096");
  }
}

TEST(OptionValue, ADecimalNumberIsAboveNothing) {
  EXPECT_EQ(taken(cores, "1.5"), "1.5");
  EXPECT_EQ(taken(cores, "2"), "2");
  for (const char* word : {"0", "-1", "inf", "nan", "1e3", "x", ""}) {
    EXPECT_EQ(taken(cores, word),
              "bad value '" + std::string(word) + "' of option '--cpu': it is a number above 0, as in 1.5");
  }
}

TEST(OptionValue, ADurationMayBeNothingWhereTheEntrySaysSo) {
  EXPECT_EQ(taken(pause, "0"), "0");
  EXPECT_EQ(taken(pause, "later"),
            "bad value 'later' of option '--pause': it is 500ms, 10s, 5m, 1h, 2d or a number of seconds, up to a year");
}

TEST(OptionValue, OnlyNamesOfFilesNeedNotBeUtf8) {
  constexpr OptionEntry key{.name = "key", .value = "K", .summary = ""};
  constexpr OptionEntry pair{.name = "label", .value = "L", .summary = "", .kind = ValueKind::pair};
  constexpr OptionEntry group{.name = "group", .value = "G", .summary = "", .kind = ValueKind::group};
  constexpr OptionEntry folder{.name = "project", .value = "DIR", .summary = "", .kind = ValueKind::folder};
  EXPECT_EQ(taken(key, "caf\u00e9"), "caf\u00e9");
  EXPECT_EQ(taken(key, "caf\xE9"), "the value of option '--key' is not UTF-8");
  EXPECT_EQ(taken(pair, "a=caf\xE9"), "the value of option '--label' is not UTF-8");
  EXPECT_EQ(taken(group, "caf\xE9"), "the value of option '--group' is not UTF-8");
  EXPECT_EQ(taken(folder, "caf\xE9"), "caf\xE9");
}

}  // namespace
}  // namespace duet::app
