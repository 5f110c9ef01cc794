#include "app/top/screen_text.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "app/view/display_text.h"

namespace duet::app::top {
namespace {

TEST(TopScreenText, EscapeSequencesAndControlCharactersGo) {
  EXPECT_EQ(screen_text("\x1b[1;31mred\x1b[0m"), "red");
  EXPECT_EQ(screen_text("\x1b]0;a title\a|\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\|"), "|link|");
  EXPECT_EQ(screen_text("\x1b[2J\x1b(B\x1b=a\x1b[?1049hb\x1b"), "ab");
  EXPECT_EQ(screen_text("a\b\x07\x7f" + std::string(1, '\0') + "b\tc\nd"), "ab c d");
  EXPECT_EQ(screen_text("\x1b]0;never ended"), "") << "the rest of the line may be its title";
  EXPECT_EQ(screen_text("\x1b[31\xC3\xA4"), "ä") << "what has no place in a sequence ends it";
}

TEST(TopScreenText, NothingChangesTheDirectionOrTheHeightOfALine) {
  EXPECT_EQ(screen_text("a\u202Eb\u2066c\u200Dd\uFEFFe\uFE0F"), "abcde");
  EXPECT_EQ(screen_text("e\u0301\u0301\u0301\u0301x"), "e\u0301\u0301x");
  EXPECT_EQ(screen_text("\xFF\xC2\x9B"), "\uFFFD\uFFFD");
}

RC_GTEST_PROP(TopScreenText, AnyBytesAreOneHarmlessLine, (const std::string& bytes)) {
  const std::string text = screen_text(bytes);
  RC_ASSERT(one_line(text) == text);
  RC_ASSERT(text.find('\x1b') == std::string::npos);
}

TEST(TopScreenText, TheLastLineIsTheOneThatSaysSomething) {
  EXPECT_EQ(last_line(""), "");
  EXPECT_EQ(last_line("one\ntwo\n"), "two");
  EXPECT_EQ(last_line("one\n\n \x1b[0m\n"), "one");
  EXPECT_EQ(last_line(" 10%\r 20%\r 30%"), " 30%") << "as a terminal shows it";
  EXPECT_EQ(last_line("done\r\n"), "done");
}

TEST(TopOutputLines, AreWholeHoweverTheirBytesCome) {
  OutputLines output;
  for (const char* piece : {"on", "e\ntw", "o \xE2\x82", "\xAC\n", "thr"}) output.append(piece);
  ASSERT_EQ(output.end(), 3U);
  EXPECT_EQ(output.at(0), "one");
  EXPECT_EQ(output.at(1), "two €");
  EXPECT_EQ(output.at(2), "thr") << "it may still grow";
  output.append("ee\n");
  EXPECT_EQ(output.at(2), "three");
  EXPECT_EQ(output.end(), 3U);
}

TEST(TopOutputLines, ALongLineIsCutBetweenCharacters) {
  OutputLines output;
  std::string line = "x";
  while (line.size() < 3 * OutputLines::longest_line) line += "ä";
  output.append(line + "\nend\n");
  std::string joined;
  for (std::uint64_t i = 0; i + 1 < output.end(); ++i) {
    EXPECT_LE(output.at(i).size(), OutputLines::longest_line);
    joined += output.at(i);
  }
  EXPECT_EQ(joined, line);
  EXPECT_EQ(output.at(output.end() - 1), "end");
}

TEST(TopOutputLines, KeepTheirNumbersWhenTheFirstOnesGo) {
  OutputLines output;
  for (std::size_t i = 0; i < OutputLines::most_lines + 10; ++i) output.append(std::to_string(i) + '\n');
  EXPECT_EQ(output.first(), 10U);
  EXPECT_EQ(output.at(10), "10");
  EXPECT_EQ(output.end(), OutputLines::most_lines + 10);
}

TEST(TopOutputLines, ANoteHasALineOfItsOwn) {
  OutputLines output;
  output.append("half");
  output.note("[skipped]");
  output.append("more\n");
  ASSERT_EQ(output.end(), 3U);
  EXPECT_EQ(output.at(0) + output.at(1) + output.at(2), "half[skipped]more");
}

}  // namespace
}  // namespace duet::app::top
