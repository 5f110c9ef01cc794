#include "task/postgres/argument.h"

#include <gtest/gtest.h>

namespace duet::task::postgres {
namespace {

using Arguments = std::vector<Argument>;

TEST(PostgresArgument, AnArrayQuotesItsElements) {
  EXPECT_EQ(array_of(Arguments{}), "{}");
  EXPECT_EQ(array_of(Arguments{"a", "", "b c"}), R"({"a","","b c"})");
  EXPECT_EQ(array_of(Arguments{"say \"x\"", R"(back\slash)", "{,}"}), R"({"say \"x\"","back\\slash","{,}"})");
}

TEST(PostgresArgument, NullIsNoText) { EXPECT_EQ(array_of(Arguments{std::nullopt, "NULL"}), R"({NULL,"NULL"})"); }

TEST(PostgresArgument, NumbersAndFlagsHaveArraysOfTheirOwn) {
  EXPECT_EQ(array_of(std::vector<std::int64_t>{1, -2, 9223372036854775807}), "{1,-2,9223372036854775807}");
  EXPECT_EQ(array_of(std::vector<bool>{true, false}), "{t,f}");
  EXPECT_EQ(array_of(std::vector<std::string>{"a\"b"}), R"({"a\"b"})");
}

TEST(PostgresArgument, BytesAreHexadecimal) {
  EXPECT_EQ(bytes_of(""), "\\x");
  EXPECT_EQ(bytes_of(std::string_view("\0\x1f\xff"
                                      "a",
                                      4)),
            "\\x001fff61");
}

TEST(PostgresArgument, ASingleValueIsItsText) {
  EXPECT_EQ(argument_of(std::int64_t{-5}), Argument("-5"));
  EXPECT_EQ(argument_of(7), Argument("7"));
  EXPECT_EQ(argument_of(std::optional<std::int64_t>()), std::nullopt);
  EXPECT_EQ(argument_of(true), Argument("t"));
}

}  // namespace
}  // namespace duet::task::postgres
