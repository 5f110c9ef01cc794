#include "bridge/text.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace duet::bridge {
namespace {

// One, two, three and four bytes a character; the last is two units of UTF-16.
constexpr const char* line_of_all_lengths = "a\xC3\xA4\xE4\xBD\xA0\xF0\x9F\x98\x80z";

TEST(TextTest, CountsInEveryEncoding) {
  const Text text(line_of_all_lengths);
  struct Row {
    std::size_t column;
    std::uint64_t utf8, utf16, utf32;
  };
  for (const Row& row :
       {Row{1, 0, 0, 0}, Row{2, 1, 1, 1}, Row{3, 3, 2, 2}, Row{4, 6, 3, 3}, Row{5, 10, 5, 4}, Row{6, 11, 6, 5}}) {
    const Place place{1, row.column};
    EXPECT_EQ(text.position(place, Encoding::utf8)->character, row.utf8);
    EXPECT_EQ(text.position(place, Encoding::utf16)->character, row.utf16);
    EXPECT_EQ(text.position(place, Encoding::utf32)->character, row.utf32);
    EXPECT_EQ(text.place({0, row.utf8}, Encoding::utf8).column, row.column);
    EXPECT_EQ(text.place({0, row.utf16}, Encoding::utf16).column, row.column);
    EXPECT_EQ(text.place({0, row.utf32}, Encoding::utf32).column, row.column);
  }
}

TEST(TextTest, RefusesPlacesThatAreNotThere) {
  const Text text("ab\ncd");
  for (const Place place : {Place{0, 1}, Place{1, 0}, Place{1, 4}, Place{2, 4}, Place{3, 1}}) {
    EXPECT_FALSE(text.position(place, Encoding::utf16)) << place.line << ':' << place.column;
  }
  EXPECT_TRUE(text.position({1, 3}, Encoding::utf16));
  EXPECT_TRUE(text.position({2, 3}, Encoding::utf16));
}

TEST(TextTest, TakesTheNearestPlaceForPositionsThatAreNotThere) {
  const Text text(line_of_all_lengths + std::string("\nend"));
  EXPECT_EQ(text.place({0, 4}, Encoding::utf16).column, 4U);  // inside a surrogate pair
  EXPECT_EQ(text.place({0, 8}, Encoding::utf8).column, 4U);   // inside a sequence of four bytes
  EXPECT_EQ(text.place({0, 99}, Encoding::utf16).column, 6U);
  EXPECT_EQ(text.place({9, 9}, Encoding::utf16).line, 2U);
  EXPECT_EQ(text.place({9, 9}, Encoding::utf16).column, 4U);
  EXPECT_EQ(text.offset({~0ULL, ~0ULL}, Encoding::utf32), text.str().size());
}

TEST(TextTest, EndsLinesAsTheProtocolDoes) {
  const Text text("a\nb\r\nc\rd\n");
  ASSERT_EQ(text.line_count(), 5U);
  EXPECT_EQ(text.line(0), "a");
  EXPECT_EQ(text.line(1), "b");
  EXPECT_EQ(text.line(2), "c");
  EXPECT_EQ(text.line(3), "d");
  EXPECT_EQ(text.line(4), "");
  EXPECT_EQ(Text("").line_count(), 1U);
  EXPECT_EQ(text.line(5), "");
}

TEST(TextTest, IsValidUtf8WhateverTheFileHolds) {
  EXPECT_EQ(Text("a\xFF\xC3z").str(), "a\xEF\xBF\xBD\xEF\xBF\xBDz");
  EXPECT_EQ(Text("\xFF").str(), "\xEF\xBF\xBD");
  EXPECT_EQ(Text("\xEF\xBB\xBFint").str(), "int");
  EXPECT_EQ(Text("a\xFFz").position({1, 3}, Encoding::utf8)->character, 4U);
}

TEST(TextTest, ReplacesAndKeepsItsLines) {
  Text text("one\ntwo\nthree");
  text.replace(4, 8, "2\n2.5\n");
  EXPECT_EQ(text.str(), "one\n2\n2.5\nthree");
  EXPECT_EQ(text.line_count(), 4U);
  EXPECT_EQ(text.line(3), "three");
}

TEST(TextTest, KnowsEncodingsByName) {
  EXPECT_EQ(encoding_named("utf-8"), Encoding::utf8);
  EXPECT_EQ(encoding_named("utf-32"), Encoding::utf32);
  EXPECT_FALSE(encoding_named("UTF-7"));
}

RC_GTEST_PROP(TextProperty, APlaceComesBackFromItsPosition, (const std::vector<std::uint16_t>& letters)) {
  static const std::vector<std::string> alphabet = {"a", "\xC3\xA4", "\xE4\xBD\xA0", "\xF0\x9F\x98\x80", "\n", "\r"};
  std::string bytes;
  for (const std::uint16_t letter : letters) bytes += alphabet[letter % alphabet.size()];
  const Text text(bytes);
  for (const Encoding encoding : {Encoding::utf8, Encoding::utf16, Encoding::utf32}) {
    for (std::size_t line = 1; line <= text.line_count(); ++line) {
      for (std::size_t column = 1; column <= count_characters(text.line(line - 1)) + 1; ++column) {
        const std::optional<Position> position = text.position({line, column}, encoding);
        RC_ASSERT(position.has_value());
        const Place back = text.place(*position, encoding);
        RC_ASSERT(back.line == line);
        RC_ASSERT(back.column == column);
      }
    }
  }
}

}  // namespace
}  // namespace duet::bridge
