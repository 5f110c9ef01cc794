#include "app/top/frame.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "app/top/screen_text.h"
#include "app/view/display_text.h"

namespace duet::app::top {
namespace {

using Lines = std::vector<std::string>;

TEST(TopFrame, ALineNeverHasMoreColumnsThanThereAre) {
  LineWriter line(12);
  line.cell("日本語", 5).number("7", 3).right("no room").add("more than that");
  EXPECT_EQ(line.take().text(), "日本…    7  ");
  LineWriter narrow(6);
  EXPECT_EQ(narrow.add("abc").cell("defg", 4).take().text(), "abcde…");
}

TEST(TopFrame, WhatIsAtTheRightStandsAtTheEnd) {
  LineWriter line(12);
  EXPECT_EQ(line.add("left").right("right").take().text(), "left   right");
}

TEST(TopFrame, TextIsWrappedAnywhereOrBetweenWords) {
  EXPECT_EQ(wrapped("", 4), Lines{""});
  EXPECT_EQ(wrapped("abcdef", 4), (Lines{"abcd", "ef"}));
  EXPECT_EQ(wrapped("日本語", 5), (Lines{"日本", "語"}));
  EXPECT_EQ(wrapped("日", 1), Lines{""}) << "there is no room for it";
  EXPECT_EQ(wrapped_words("one two three", 8), (Lines{"one two", "three"}));
  EXPECT_EQ(wrapped_words("one two three", 7), (Lines{"one two", "three"}));
  EXPECT_EQ(wrapped_words("abcdefgh ij", 4), (Lines{"abcd", "efgh", "ij"}));
  EXPECT_EQ(wrapped_words("", 4), Lines{""});
  EXPECT_EQ(wrapped_words("日本", 1), wrapped("日本", 1));
}

RC_GTEST_PROP(TopFrame, WrappedWordsFitAndLoseNoLetter, (const std::string& bytes)) {
  const std::string text = screen_text(bytes);
  const auto width = *rc::gen::inRange<std::size_t>(2, 20);
  std::string letters;
  for (const std::string& line : wrapped_words(text, width)) {
    RC_ASSERT(display_width(line) <= width);
    letters += line;
  }
  const auto without_blanks = [](std::string all) {
    std::erase(all, ' ');
    return all;
  };
  RC_ASSERT(without_blanks(letters) == without_blanks(text));
}

}  // namespace
}  // namespace duet::app::top
