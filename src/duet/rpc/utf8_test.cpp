#include "duet/rpc/utf8.h"

#include <array>
#include <string>

#include <gtest/gtest.h>

namespace duet::rpc {
namespace {

using Bytes = std::array<int, 4>;

// The definition in other words: a lead and `size - 1` continuations whose number lies in the range
// that has no shorter encoding.
bool is_character(const Bytes& bytes, std::size_t size) {
  constexpr std::array<int, 5> lead = {0, 0, 0xC0, 0xE0, 0xF0};
  constexpr std::array<int, 5> lowest = {0, 0, 0x80, 0x800, 0x10000};
  constexpr std::array<int, 5> highest = {0, 0x7F, 0x7FF, 0xFFFF, 0x10FFFF};
  int code = bytes[0] - lead[size];
  for (std::size_t i = 1; i < size; ++i) {
    const int low_bits = bytes[i] - 0x80;
    if (low_bits < 0 || low_bits > 63) return false;
    code = code * 64 + low_bits;
  }
  return code >= lowest[size] && code <= highest[size] && (code < 0xD800 || code > 0xDFFF);
}

std::size_t expected_length(const Bytes& bytes, std::size_t there) {
  for (std::size_t size = 1; size <= there; ++size) {
    if (is_character(bytes, size)) return size;
  }
  return 0;
}

void expect_as_defined(const Bytes& bytes) {
  const std::array<char, 4> text = {static_cast<char>(bytes[0]), static_cast<char>(bytes[1]),
                                    static_cast<char>(bytes[2]), static_cast<char>(bytes[3])};
  for (std::size_t there = 0; there <= 4; ++there) {
    ASSERT_EQ(utf8_length(text.data(), text.data() + there), expected_length(bytes, there))
        << bytes[0] << ' ' << bytes[1] << ' ' << bytes[2] << ' ' << bytes[3] << ", cut to " << there;
  }
}

TEST(Utf8, OfNothingIsNoCharacter) { EXPECT_EQ(utf8_length(nullptr, nullptr), 0U); }

TEST(Utf8, OfATextIsJudgedAsAWhole) {
  EXPECT_TRUE(is_utf8(""));
  EXPECT_TRUE(is_utf8("aä€"));
  EXPECT_FALSE(is_utf8("aä\xE2\x82"));
}

TEST(Utf8, EveryByteThatIsNotIsReplaced) {
  EXPECT_EQ(valid_utf8("aä€"), "aä€");
  EXPECT_EQ(valid_utf8("\xFFä\xE2\x82z\xC3"), "\uFFFDä\uFFFD\uFFFDz\uFFFD");
}

TEST(Utf8, EveryLeadAndSecondByteIsJudgedByTheDefinition) {
  for (int first = 0; first < 256; ++first) {
    for (int second = 0; second < 256; ++second) expect_as_defined({first, second, 0x80, 0xBF});
  }
}

// Third and fourth bytes only have to be continuations: both sides of that border, and of the ones
// that other bytes have.
TEST(Utf8, EveryThirdAndFourthByteIsJudgedByTheDefinition) {
  constexpr std::array<int, 12> leads = {0x00, 0x7F, 0x80, 0xC2, 0xDF, 0xE0, 0xE1, 0xED, 0xEF, 0xF0, 0xF3, 0xF4};
  constexpr std::array<int, 8> seconds = {0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0};
  for (const int first : leads) {
    for (const int second : seconds) {
      for (int byte = 0; byte < 256; ++byte) {
        expect_as_defined({first, second, byte, 0x80});
        expect_as_defined({first, second, 0x80, byte});
      }
    }
  }
}

TEST(Utf8, EveryScalarValueIsOneCharacter) {
  for (int code = 0x80; code <= 0x10FFFF; ++code) {
    if (code == 0xD800) code = 0xE000;
    const auto tail = [code](int shift) { return 0x80 + (code >> shift) % 64; };
    Bytes bytes = {0xF0 + code / 262144, tail(12), tail(6), tail(0)};
    if (code < 0x10000) bytes = {0xE0 + code / 4096, tail(6), tail(0), 'x'};
    if (code < 0x800) bytes = {0xC0 + code / 64, tail(0), 'x', 'x'};
    const std::array<char, 4> text = {static_cast<char>(bytes[0]), static_cast<char>(bytes[1]),
                                      static_cast<char>(bytes[2]), static_cast<char>(bytes[3])};
    const std::size_t size = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    ASSERT_EQ(utf8_length(text.data(), text.data() + 4), size) << code;
  }
}

TEST(Utf8, IsCutBetweenCharacters) {
  EXPECT_EQ(first_characters("abc", 2), "ab");
  EXPECT_EQ(first_characters("abc", 3), "abc");
  EXPECT_EQ(first_characters("abc", 64), "abc");
  EXPECT_EQ(first_characters("é€\xF0\x9F\x98\x80x", 3), "é€\xF0\x9F\x98\x80");
  EXPECT_EQ(first_characters("é", 0), "");
  EXPECT_EQ(first_characters("\xC3\xC3z", 2), "\xC3\xC3");
}

TEST(Utf8, IsCutByBytesBetweenCharacters) {
  EXPECT_EQ(first_bytes("a€b", 5), "a€b");
  EXPECT_EQ(first_bytes("a€b", 4), "a€");
  EXPECT_EQ(first_bytes("a€b", 3), "a");
  EXPECT_EQ(first_bytes("a€b", 0), "");
  EXPECT_EQ(last_bytes("a€b", 5), "a€b");
  EXPECT_EQ(last_bytes("a€b", 4), "€b");
  EXPECT_EQ(last_bytes("a€b", 3), "b");
  EXPECT_EQ(last_bytes("a€b", 0), "");
}

TEST(Utf8, ACharacterThatHasOnlyBegunWaitsForItsRest) {
  EXPECT_EQ(whole_characters(""), "");
  EXPECT_EQ(whole_characters("abc"), "abc");
  EXPECT_EQ(whole_characters("ab\xC3"), "ab");
  EXPECT_EQ(whole_characters("ab\xC3\xA4"), "ab\xC3\xA4");
  EXPECT_EQ(whole_characters("ab\xE2\x82"), "ab");
  EXPECT_EQ(whole_characters("ab\xF0\x9F\x98"), "ab");
  EXPECT_EQ(whole_characters("ab\xF0\x9F\x98\x80"), "ab\xF0\x9F\x98\x80");
  EXPECT_EQ(whole_characters("\xF0"), "");
}

TEST(Utf8, BytesThatAreNoCharacterAreNotWaitedFor) {
  for (const char* bytes : {"ab\xFF", "ab\xC0", "ab\x80\x80\x80\x80", "ab\xC3\x80\x80"}) {
    EXPECT_EQ(whole_characters(bytes), bytes);
  }
}

TEST(Utf8, TheRestOfACharacterIsLeftOut) {
  EXPECT_EQ(without_rest("\x82\xAC"
                         "b"),
            "b");
  EXPECT_EQ(without_rest("\x82\x82\x82\x82"), "\x82") << "no character has a longer rest";
}

}  // namespace
}  // namespace duet::rpc
