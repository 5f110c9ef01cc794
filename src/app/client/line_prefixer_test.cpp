#include "app/client/line_prefixer.h"

#include <gtest/gtest.h>

namespace duet::app {
namespace {

class LinePrefixerTest : public ::testing::Test {
 protected:
  LinePrefixer lines_{{"task-9", "task-10"}, TextStyle(false), [this](std::string_view text) { out_ += text; }};
  std::string out_;
};

TEST_F(LinePrefixerTest, WholeLinesStandBehindTheirTask) {
  lines_.take("task-9", "one\ntw");
  lines_.take("task-10", "\nother\n");
  lines_.take("task-9", "o\n");
  EXPECT_EQ(out_, "task-9  | one\ntask-10 | \ntask-10 | other\ntask-9  | two\n");
}

TEST_F(LinePrefixerTest, WhatHasNoEndComesAtTheEnd) {
  lines_.take("task-10", "last");
  EXPECT_EQ(out_, "");
  lines_.finish();
  lines_.finish();
  EXPECT_EQ(out_, "task-10 | last\n");
}

TEST_F(LinePrefixerTest, ALineWithoutEndIsNotKeptForEver) {
  lines_.take("task-9", std::string(LinePrefixer::longest_line + 3, 'x'));
  EXPECT_EQ(out_.size(), LinePrefixer::longest_line + 11);
  lines_.finish();
  EXPECT_TRUE(out_.ends_with("\ntask-9  | xxx\n"));
}

TEST(LinePrefixer, EachTaskHasAColour) {
  std::string out;
  LinePrefixer lines({"a", "b"}, TextStyle(true), [&out](std::string_view text) { out += text; });
  lines.take("a", "1\n");
  lines.take("b", "2\n");
  EXPECT_EQ(out, "\x1b[36ma |\x1b[0m 1\n\x1b[33mb |\x1b[0m 2\n");
}

}  // namespace
}  // namespace duet::app
