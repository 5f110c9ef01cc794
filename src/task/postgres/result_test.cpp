#include "task/postgres/result.h"

#include <gtest/gtest.h>

#include "task/postgres/argument.h"

namespace duet::task::postgres {
namespace {

Result people() { return Result({"id", "name", "late"}, {{"7", "ann", "t"}, {"8", std::nullopt, "f"}}); }

TEST(PostgresResult, CellsAreFoundByRowAndColumn) {
  const Result result = people();
  EXPECT_EQ(result.rows(), 2U);
  EXPECT_EQ(result.column("name"), 1);
  EXPECT_EQ(result.at(0, 1), "ann");
  EXPECT_EQ(result.at(1, "id"), "8");
  EXPECT_EQ(result.number(1, 0), 8);
  EXPECT_TRUE(result.flag(0, 2));
  EXPECT_FALSE(result.flag(1, 2));
  EXPECT_EQ(result.text(), "7");
}

TEST(PostgresResult, NullAndWhatIsNotThereHaveNoText) {
  const Result result = people();
  EXPECT_EQ(result.at(1, 1), std::nullopt);
  EXPECT_EQ(result.text(1, 1), "");
  EXPECT_EQ(result.column("age"), -1);
  EXPECT_EQ(result.at(0, "age"), std::nullopt);
  EXPECT_EQ(result.at(2, 0), std::nullopt);
  EXPECT_EQ(result.at(0, 3), std::nullopt);
  EXPECT_EQ(Result().rows(), 0U);
  EXPECT_EQ(Result().text(), "");
}

TEST(PostgresResult, EmptyTextIsNotNull) { EXPECT_EQ(Result({"a"}, {{""}}).at(0, 0), ""); }

TEST(PostgresResult, AShortRowIsFilledWithNull) {
  const Result result({"a", "b"}, {{"1"}, {"2", "3"}});
  EXPECT_EQ(result.at(0, 1), std::nullopt);
  EXPECT_EQ(result.at(1, 1), "3");
}

TEST(PostgresResult, WhatIsNoNumberIsNone) {
  const Result result({"a"}, {{"1x"}, {""}, {std::nullopt}, {"99999999999999999999"}, {"-4"}});
  EXPECT_EQ(result.number(0, 0), std::nullopt);
  EXPECT_EQ(result.number(1, 0), std::nullopt);
  EXPECT_EQ(result.number(2, 0), std::nullopt);
  EXPECT_EQ(result.number(3, 0), std::nullopt);
  EXPECT_EQ(result.number(4, 0), -4);
}

TEST(PostgresResult, BytesComeBackAsTheyWent) {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  const Result result({"b"}, {{bytes_of(all)}, {"\\x"}, {"\\x1"}, {"\\xzz"}, {"plain"}, {std::nullopt}});
  EXPECT_EQ(result.bytes(0, 0), all);
  EXPECT_EQ(result.bytes(1, 0), "");
  for (std::size_t row = 2; row < 6; ++row) EXPECT_EQ(result.bytes(row, 0), std::nullopt) << row;
}

}  // namespace
}  // namespace duet::task::postgres
