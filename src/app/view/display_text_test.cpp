#include "app/view/display_text.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "duet/rpc/utf8.h"

namespace duet::app {
namespace {

TEST(DisplayText, CountsColumnsAsTerminalsDo) {
  EXPECT_EQ(display_width(""), 0U);
  EXPECT_EQ(display_width("abc"), 3U);
  EXPECT_EQ(display_width("żółć"), 4U);
  EXPECT_EQ(display_width("日本語"), 6U);
  EXPECT_EQ(display_width("한글"), 4U);
  EXPECT_EQ(display_width("e\xCC\x81"), 1U) << "a combining accent";
  EXPECT_EQ(display_width("🚀"), 2U);
  EXPECT_EQ(display_width("…"), 1U);
}

TEST(DisplayText, IsCutBetweenCharacters) {
  EXPECT_EQ(cut_to_width("abcdef", 6), "abcdef");
  EXPECT_EQ(cut_to_width("abcdef", 5), "abcd…");
  EXPECT_EQ(cut_to_width("日本語", 5), "日本…");
  EXPECT_EQ(cut_to_width("日本語", 4), "日…") << "half a wide character does not fit";
  EXPECT_EQ(cut_to_width("abc", 1), "…");
  EXPECT_EQ(cut_to_width("abc", 0), "");
  EXPECT_EQ(cut_to_width("e\xCC\x81", 1), "e\xCC\x81");
}

TEST(DisplayText, IsHarmlessOnOneLine) {
  EXPECT_EQ(one_line("a\nb\tc\r\nd"), "a b c  d");
  EXPECT_EQ(one_line("\x1b[31mred"), "\xEF\xBF\xBD[31mred");
  EXPECT_EQ(one_line("\x7f|\xC2\x9B|\xFF|\xE2\x82"), "\xEF\xBF\xBD|\xEF\xBF\xBD|\xEF\xBF\xBD|\xEF\xBF\xBD\xEF\xBF\xBD");
  EXPECT_EQ(one_line("żółć 日本"), "żółć 日本");
  EXPECT_EQ(one_line("a\u202Eb\u2066c\u200Ed\u061Ce\u2029f"), "a\uFFFDb\uFFFDc\uFFFDd\uFFFDe\uFFFDf");
  EXPECT_EQ(one_line("👩\u200D💻"), "👩\u200D💻") << "a joiner is a part of what is seen";
  EXPECT_EQ(harmless_lines("a\x1b\n\u202Eb\n"), "a\uFFFD\n\uFFFDb\n");
}

RC_GTEST_PROP(DisplayText, AnyBytesBecomeUtf8ThatFits, (const std::string& bytes)) {
  const std::string line = one_line(bytes);
  const auto width = *rc::gen::inRange<std::size_t>(0, 20);
  const std::string cut = cut_to_width(line, width);
  RC_ASSERT(display_width(cut) <= width);
  for (const char* at = cut.data(); at != cut.data() + cut.size();) {
    const std::size_t length = rpc::utf8_length(at, cut.data() + cut.size());
    RC_ASSERT(length > 0U);
    RC_ASSERT(static_cast<unsigned char>(*at) >= 0x20);
    at += length;
  }
}

}  // namespace
}  // namespace duet::app
