#include "app/client/line_prefixer.h"

#include <unistd.h>

#include <algorithm>
#include <array>

#include <gtest/gtest.h>

#include "duet/base/fd.h"

namespace duet::app {
namespace {

std::string unfinished(const LinePrefixer& lines) {
  const base::Pipe pipe = base::make_pipe();
  lines.write_unfinished(pipe.write_end.get());
  std::array<char, 100> text{};
  const ssize_t count = read(pipe.read_end.get(), text.data(), text.size());
  return {text.data(), static_cast<std::size_t>(std::max<ssize_t>(count, 0))};
}

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

TEST_F(LinePrefixerTest, WhatHasNoEndCanBeToldByAHandler) {
  lines_.take("task-9", "whole\nhalf");
  lines_.take("task-10", "other");
  EXPECT_EQ(unfinished(lines_), "task-9  | half\ntask-10 | other\n");
}

TEST(LinePrefixer, WhatIsLeftIsInItsPlaceBeforeAnythingIsPrinted) {
  std::string left;
  LinePrefixer* self = nullptr;
  LinePrefixer lines({"a"}, TextStyle(false), [&](std::string_view) { left = unfinished(*self); });
  self = &lines;
  lines.take("a", "whole\nhalf");
  EXPECT_EQ(left, "a | half\n");
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
