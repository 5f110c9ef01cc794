#include "automation/pattern.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace duet::automation {
namespace {

std::vector<char32_t> characters(std::string_view text) {
  std::vector<char32_t> found;
  while (!text.empty()) found.push_back(take_character(text));
  return found;
}

TEST(Pattern, TextIsReadCharacterByCharacter) {
  EXPECT_EQ(characters("aß€\U0001F600"), (std::vector<char32_t>{U'a', U'ß', U'€', U'\U0001F600'}));
  EXPECT_EQ(characters("a\xFF\xC3"), (std::vector<char32_t>{U'a', 0xDCFF, 0xDCC3})) << "what is no UTF-8, by bytes";
}

TEST(Pattern, AComplementIsEverythingElse) {
  EXPECT_EQ(complement({}), (CharacterSet{{0, 0x10FFFF}}));
  EXPECT_EQ(complement({{'b', 'c'}, {0, 'a'}, {'b', 'b'}}), (CharacterSet{{'d', 0x10FFFF}}));
  EXPECT_EQ(complement({{'x', 0x10FFFF}}), (CharacterSet{{0, 'w'}}));
}

TEST(Pattern, RepetitionsWithinRepetitionsOfNothingEnd) {
  PatternNode node;
  for (int i = 0; i < 5; ++i) {
    PatternNode around{.kind = PatternNode::Kind::repeat};
    around.parts.push_back(std::move(node));
    node = std::move(around);
  }
  EXPECT_TRUE(Pattern(node).matches_all_of(""));
  EXPECT_FALSE(Pattern(node).matches_all_of("a"));
  EXPECT_TRUE(Pattern(node).matches_in("a"));
}

}  // namespace
}  // namespace duet::automation
