#include "duet/base/base64.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace duet::base {
namespace {

TEST(Base64, IsThatOfTheStandard) {
  const std::pair<const char*, const char*> examples[] = {{"", ""},
                                                          {"f", "Zg=="},
                                                          {"fo", "Zm8="},
                                                          {"foo", "Zm9v"},
                                                          {"foob", "Zm9vYg=="},
                                                          {"fooba", "Zm9vYmE="},
                                                          {"foobar", "Zm9vYmFy"}};
  for (const auto& [bytes, text] : examples) {
    EXPECT_EQ(to_base64(bytes), text);
    EXPECT_EQ(from_base64(text), bytes);
  }
  EXPECT_EQ(to_base64("\xFB\xFF"), "+/8=");
}

TEST(Base64, NothingElseIsTaken) {
  for (const char* text : {"Z", "Zg", "Zg=", "Zh==", "Zm9=", "Zm9v\n", "Zm 9v", "Zg==Zg==", "====", "Z===", "-_8="}) {
    EXPECT_EQ(from_base64(text), std::nullopt) << text;
  }
}

RC_GTEST_PROP(Base64, AnyBytesComeBack, (const std::string& bytes)) {
  RC_ASSERT(from_base64(to_base64(bytes)) == bytes);
}

RC_GTEST_PROP(Base64, AnyTextIsTakenOnlyInItsOneSpelling, ()) {
  const auto text = *rc::gen::container<std::string>(rc::gen::elementOf(std::string("AZaz09+/=")));
  const std::optional<std::string> bytes = from_base64(text);
  if (bytes) RC_ASSERT(to_base64(*bytes) == text);
}

}  // namespace
}  // namespace duet::base
