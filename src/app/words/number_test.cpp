#include "app/words/number.h"

#include <limits>

#include <gtest/gtest.h>

namespace duet::app {
namespace {

TEST(Number, IsWholeAndNothingElse) {
  EXPECT_EQ(parse_number("-12"), -12);
  EXPECT_EQ(parse_number("9223372036854775807"), std::numeric_limits<std::int64_t>::max());
  for (const char* text : {"", " 1", "1 ", "+1", "1.0", "0x1", "9223372036854775808"}) {
    EXPECT_EQ(parse_number(text), std::nullopt) << text;
  }
}

TEST(Number, ChoicesAreJoinedAsPeopleSayThem) {
  constexpr std::string_view choices[] = {"red", "green", "blue"};
  EXPECT_EQ(one_of({}), "");
  EXPECT_EQ(one_of(std::span(choices).first(1)), "red");
  EXPECT_EQ(one_of(choices), "red, green or blue");
}

}  // namespace
}  // namespace duet::app
