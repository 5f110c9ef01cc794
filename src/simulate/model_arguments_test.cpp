#include "simulate/model_arguments.h"

#include <stdexcept>

#include <gtest/gtest.h>

namespace duet::simulate {
namespace {

using task::postgres::array_of;

TEST(ElementsOf, AreWhatArrayOfWasGiven) {
  const std::vector<Argument> all{"", "a,b", "say \"so\"", "back\\slash", "{}", "NULL", std::nullopt, "12"};
  EXPECT_EQ(elements_of(array_of(all)), all);
  EXPECT_TRUE(elements_of(array_of(std::vector<Argument>())).empty());
  EXPECT_TRUE(elements_of(std::nullopt).empty());
  EXPECT_THROW(elements_of("12"), std::invalid_argument);
}

TEST(Arguments, AnElementBehindTheEndIsNull) {
  const std::vector<Argument> values{array_of(std::vector<std::int64_t>{4, 5}), "t"};
  const Arguments arguments(values);
  EXPECT_EQ(arguments.number(0, 1), 5);
  EXPECT_FALSE(arguments.number(0, 2));
  EXPECT_TRUE(arguments.flag(1));
}

TEST(IdentOf, AKeyCountsBeforeAnId) {
  EXPECT_EQ(ident_of("7", ""), "7");
  EXPECT_NE(ident_of("7", "7"), ident_of("7", ""));
}

}  // namespace
}  // namespace duet::simulate
