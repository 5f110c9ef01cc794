#include "duet/rpc/string_stop.h"

#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace duet::rpc {
namespace {

bool is_stop(int byte) { return byte < 0x20 || byte > 0x7F || byte == '"' || byte == '\\'; }

TEST(StringStop, IsEveryByteThatNeedsACloserLookAndNoOther) {
  for (int byte = 0; byte < 256; ++byte) {
    const char text[1] = {static_cast<char>(byte)};
    EXPECT_EQ(find_string_stop_scalar(text, text + 1), is_stop(byte) ? text : text + 1) << "byte " << byte;
  }
}

TEST(StringStop, OfNothingIsTheEnd) {
  const char text[1] = {'"'};
  EXPECT_EQ(find_string_stop(text, text), text);
  EXPECT_EQ(find_string_stop(nullptr, nullptr), nullptr);
}

#ifdef __SSE2__

TEST(StringStop, IsTheSameForSse2AtEveryOffsetAndLengthForEveryByte) {
  // Exactly as large as the text, so that a sanitizer sees a read past either end.
  for (std::size_t size = 0; size <= 50; ++size) {
    const std::unique_ptr<char[]> text(new char[size]);
    for (std::size_t i = 0; i < size; ++i) text[i] = 'a';
    const char* const end = text.get() + size;
    for (std::size_t at = 0; at < size; ++at) {
      for (int byte = 0; byte < 256; ++byte) {
        text[at] = static_cast<char>(byte);
        const char* const expected = is_stop(byte) ? text.get() + at : end;
        ASSERT_EQ(find_string_stop_scalar(text.get(), end), expected) << size << ' ' << at << ' ' << byte;
        ASSERT_EQ(find_string_stop_sse2(text.get(), end), expected) << size << ' ' << at << ' ' << byte;
      }
      text[at] = 'a';
    }
  }
}

RC_GTEST_PROP(StringStop, OfSse2AgreesWithTheScalarDefinitionFromEveryStart, (const std::string& text)) {
  const char* const end = text.data() + text.size();
  for (const char* at = text.data(); at <= end; ++at) {
    RC_ASSERT(find_string_stop_sse2(at, end) == find_string_stop_scalar(at, end));
  }
}

#endif

TEST(StringStops, AreTheSameForAWholeTextFromFrontToBack) {
  for (std::size_t size = 0; size <= 150; ++size) {
    const std::unique_ptr<char[]> text(new char[size]);
    for (std::size_t i = 0; i < size; ++i) text[i] = "ab\"cdefgh\\ijklm\nopqrstuvwxyz0123456789\xC3\xA9"[i * 7 % 41];
    const char* const end = text.get() + size;
    for (std::size_t step = 1; step < 80; ++step) {
      StringStops stops(text.get(), end);
      for (std::size_t at = 0; at <= size; at += step) {
        ASSERT_EQ(stops.next(text.get() + at), find_string_stop_scalar(text.get() + at, end))
            << size << ' ' << step << ' ' << at;
      }
    }
  }
}

RC_GTEST_PROP(StringStops, AreTheSameWhereverOneAsks,
              (const std::string& text, const std::vector<std::size_t>& places)) {
  const std::string longer = text + std::string(60, 'a') + text + std::string(70, 'b') + text;
  StringStops stops(longer.data(), longer.data() + longer.size());
  for (const std::size_t place : places) {
    const char* const at = longer.data() + place % (longer.size() + 1);
    RC_ASSERT(stops.next(at) == find_string_stop_scalar(at, longer.data() + longer.size()));
  }
}

}  // namespace
}  // namespace duet::rpc
