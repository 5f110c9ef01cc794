// The scanner as it is compiled for machines without SSE2, under another namespace, against the one of this machine.

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#undef __SSE2__
#define duet duet_without_sse2
#include "duet/rpc/json_scan.cpp"
#include "duet/rpc/json_text.cpp"
#undef duet

namespace duet::rpc {
// As in the headers, which this file has read under the other name.
bool is_valid_json(std::string_view text);
std::string quoted(std::string_view text);
struct JsonCase {
  std::string name;
  bool valid = false;
  std::string text;
};
std::vector<JsonCase> json_cases();
}  // namespace duet::rpc

namespace {

namespace scalar = duet_without_sse2::rpc;

TEST(ScalarScan, JudgesEveryCornerCaseAsTheDataSays) {
  for (const duet::rpc::JsonCase& one : duet::rpc::json_cases()) {
    EXPECT_EQ(scalar::is_valid_json(one.text), one.valid) << one.name;
    EXPECT_EQ(scalar::scan_envelope(one.text).shape != scalar::Envelope::Shape::invalid, one.valid) << one.name;
  }
}

RC_GTEST_PROP(ScalarScan, AgreesWithTheOtherOneOnStringsOfAnyBytes, (const std::string& bytes)) {
  const std::string text = '"' + std::string(70, 'a') + bytes + std::string(70, 'b') + '"';
  RC_ASSERT(scalar::is_valid_json(text) == duet::rpc::is_valid_json(text));
  RC_ASSERT(scalar::quoted(text) == duet::rpc::quoted(text));
}

}  // namespace
