#include "duet/framing/utf8_check.h"

#include <algorithm>
#include <random>
#include <string>

#include <gtest/gtest.h>

#include "duet/framing/websocket_frames_test.h"

namespace duet::framing {
namespace {

bool is_utf8_byte_by_byte(std::string_view text) {
  Utf8Check check;
  for (const char& byte : text) {
    if (!check.add({&byte, 1})) return false;
  }
  return check.is_whole();
}

TEST(Utf8Check, AgreesWithASlowOneOnAllShortTextsOfTellingBytes) {
  const std::string telling =
      "a\x7F\x80\x8F\x90\x9F\xA0\xBF\xC0\xC1\xC2\xDF\xE0\xE1\xEC\xED\xEE\xEF\xF0\xF1\xF3\xF4\xF5\xFF";
  for (const char first : telling) {
    for (const char second : telling) {
      for (const char third : telling) {
        for (const char fourth : telling) {
          const std::string text{first, second, third, fourth};
          for (std::size_t size = 0; size <= text.size(); ++size) {
            const std::string_view part = std::string_view(text).substr(0, size);
            ASSERT_EQ(is_utf8(part), is_utf8_slowly(part)) << testing::PrintToString(part);
          }
        }
      }
    }
  }
}

TEST(Utf8Check, DoesNotCareHowATextComes) {
  std::mt19937 random(1);
  const std::vector<std::string> pieces = {
      "plain text of some length", "é",   "€", "\xF0\x9F\x98\x80", "\xED\xA0\x80", "\xC0\x80",
      "\xF4\x90\x80\x80",          "\x80"};
  for (int round = 0; round < 5000; ++round) {
    std::string text;
    for (auto i = 1 + random() % 8; i > 0; --i) text += pieces[random() % (random() % 3 == 0 ? pieces.size() : 4)];
    text.resize(text.size() - std::min<std::size_t>(text.size(), random() % 3));
    const bool expected = is_utf8_slowly(text);
    ASSERT_EQ(is_utf8(text), expected) << testing::PrintToString(text);
    ASSERT_EQ(is_utf8_byte_by_byte(text), expected) << testing::PrintToString(text);
  }
}

TEST(Utf8Check, ACharacterThatHasOnlyBegunMayStillEnd) {
  Utf8Check check;
  EXPECT_TRUE(check.add("\xF0\x9F"));
  EXPECT_FALSE(check.is_whole());
  EXPECT_TRUE(check.add("\x98"));
  EXPECT_TRUE(check.add("\x80"));
  EXPECT_TRUE(check.is_whole());
  EXPECT_TRUE(check.add("\xE0"));
  EXPECT_FALSE(check.add("\x9F")) << "overlong";
}

}  // namespace
}  // namespace duet::framing
