#include "app/cli/option_value.h"

#include <gtest/gtest.h>

namespace duet::app {
namespace {

constexpr std::string_view colours[] = {"red", "green"};
constexpr OptionEntry colour{.name = "main-colour", .value = "C", .summary = "", .choices = colours};
constexpr OptionEntry count{
    .name = "count", .value = "N", .summary = "", .kind = ValueKind::number, .least = -2, .most = 5};
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

TEST(OptionValue, ADurationMayBeNothingWhereTheEntrySaysSo) {
  EXPECT_EQ(taken(pause, "0"), "0");
  EXPECT_EQ(taken(pause, "later"),
            "bad value 'later' of option '--pause': it is 500ms, 10s, 5m, 1h or a number of seconds, up to a year");
}

}  // namespace
}  // namespace duet::app
