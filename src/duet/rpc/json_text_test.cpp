#include "duet/rpc/json_text.h"

#include <unistd.h>

#include <clocale>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "duet/rpc/json_scan.h"
#include "duet/rpc/utf8.h"

namespace duet::rpc {
namespace {

constexpr std::string_view replacement = "\xEF\xBF\xBD";

TEST(JsonText, HexDigitsAreReadInBothCases) {
  for (int byte = 0; byte < 256; ++byte) {
    const char c = static_cast<char>(byte);
    const std::size_t at = std::string_view("0123456789abcdefABCDEF").find(c);
    const int expected = at == std::string_view::npos ? -1 : static_cast<int>(at < 16 ? at : at - 6);
    EXPECT_EQ(hex_digit(c), expected) << byte;
  }
}

TEST(JsonText, ResolvesEveryEscape) {
  EXPECT_EQ(decode_string(R"("")"), "");
  EXPECT_EQ(decode_string(R"("plain é")"), "plain é");
  EXPECT_EQ(decode_string(R"("\"\\\/\b\f\n\r\t")"), "\"\\/\b\f\n\r\t");
  EXPECT_EQ(decode_string(R"("\u0041\u00e9\u20AC\uffff")"), "Aé€\xEF\xBF\xBF");
  EXPECT_EQ(decode_string(R"("a\u0000b")"), std::string("a\0b", 3));
  EXPECT_EQ(decode_string(R"("\\u0041")"), "\\u0041");
}

TEST(JsonText, EveryEscapeOutsideTheSurrogatesIsOneCharacterOfItsOwn) {
  constexpr std::string_view hex = "0123456789abcdef";
  std::string before;
  for (unsigned code = 0; code <= 0xFFFF; ++code) {
    if (code >= 0xD800 && code <= 0xDFFF) continue;
    const std::string token = {
        '"', '\\', 'u', hex[code >> 12], hex[code >> 8 & 15], hex[code >> 4 & 15], hex[code & 15], '"'};
    const std::string text = decode_string(token);
    ASSERT_EQ(utf8_length(text.data(), text.data() + text.size()), text.size()) << token;
    ASSERT_EQ(text.size(), code < 0x80 ? 1U : code < 0x800 ? 2U : 3U) << token;
    // UTF-8 sorts as the numbers do.
    if (code > 0) {
      ASSERT_LT(before, text) << token;
    }
    before = text;
  }
}

TEST(JsonText, TwoHalvesOfASurrogatePairAreOneCharacter) {
  EXPECT_EQ(decode_string(R"("\ud83d\ude00")"), "\xF0\x9F\x98\x80");
  EXPECT_EQ(decode_string(R"("\uD800\uDC00")"), "\xF0\x90\x80\x80");
  EXPECT_EQ(decode_string(R"("\uDBFF\uDFFF")"), "\xF4\x8F\xBF\xBF");
}

TEST(JsonText, HalfASurrogatePairBecomesTheReplacementCharacter) {
  const std::string one(replacement);
  EXPECT_EQ(decode_string(R"("\ud800")"), one);
  EXPECT_EQ(decode_string(R"("\udc00")"), one);
  EXPECT_EQ(decode_string(R"("\ud800x")"), one + "x");
  EXPECT_EQ(decode_string(R"("\ud800\n")"), one + "\n");
  EXPECT_EQ(decode_string(R"("\ud800\u0041")"), one + "A");
  EXPECT_EQ(decode_string(R"("\ud800\\udc00")"), one + "\\udc00");
  EXPECT_EQ(decode_string(R"("\udc00\ud800")"), one + one);
  EXPECT_EQ(decode_string(R"("\ud800\ud800\udc00")"), one + "\xF0\x90\x80\x80");
}

TEST(JsonText, NamesTheTypeOfAValue) {
  EXPECT_EQ(json_type("{}"), "object");
  EXPECT_EQ(json_type("[1]"), "array");
  EXPECT_EQ(json_type("\"1\""), "string");
  EXPECT_EQ(json_type("true"), "boolean");
  EXPECT_EQ(json_type("false"), "boolean");
  EXPECT_EQ(json_type("null"), "null");
  EXPECT_EQ(json_type("0"), "number");
  EXPECT_EQ(json_type("-1"), "number");
}

TEST(JsonText, AWholeNumberIsAnIntegerHoweverItIsSpelt) {
  for (const char* five :
       {"5", "5.0", "5e0", "5E+0", "0.5e1", "0.05E2", "50e-1", "500.00e-2", "5.000000000000000000000000"}) {
    EXPECT_EQ(decode_whole<std::int64_t>(five), 5) << five;
  }
  for (const char* zero : {"0", "-0", "0.0", "-0.0e5", "0e99999999999999999999", "0e-99999999999999999999"}) {
    EXPECT_EQ(decode_whole<std::int64_t>(zero), 0) << zero;
  }
  EXPECT_EQ(decode_whole<std::int64_t>("-12.50e2"), -1250);
  EXPECT_EQ(decode_whole<std::int64_t>("1e18"), 1'000'000'000'000'000'000);
  EXPECT_EQ(decode_whole<std::int64_t>("10000000000000000000e-10"), 1'000'000'000);
}

TEST(JsonText, AnIntegerIsExactUpToItsLimits) {
  EXPECT_EQ(decode_whole<std::int64_t>("9007199254740993"), 9'007'199'254'740'993);
  EXPECT_EQ(decode_whole<std::int64_t>("9007199254740993.0"), 9'007'199'254'740'993);
  EXPECT_EQ(decode_whole<std::int64_t>("9223372036854775807"), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(decode_whole<std::int64_t>("-9223372036854775808"), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(decode_whole<std::int64_t>("-9.223372036854775808e18"), std::numeric_limits<std::int64_t>::min());
}

TEST(JsonText, AFractionOrANumberThatDoesNotFitIsNoInteger) {
  for (const char* text : {"0.5", "-1.5", "1e-1", "15e-1", "5.00000000000000000000000001", "0.99999999999999999999999",
                           "9223372036854775808", "-9223372036854775809", "9.223372036854775808e18", "1e19", "1e400",
                           "-1e400", "1e99999999999999999999", "1e-99999999999999999999", "99999999999999999999.5"}) {
    EXPECT_FALSE(decode_whole<std::int64_t>(text)) << text;
  }
}

RC_GTEST_PROP(JsonText, AnIntegerSpeltWithAnyPowerOfTenIsTheSame, (std::int64_t whole)) {
  const std::string digits = std::to_string(whole);
  const auto shift = *rc::gen::inRange<std::size_t>(0, 30);
  RC_ASSERT(decode_whole<std::int64_t>(digits + std::string(shift, '0') + "e-" + std::to_string(shift)) == whole);
  RC_ASSERT(decode_whole<std::int64_t>(digits + "." + std::string(shift + 1, '0')) == whole);
  RC_ASSERT(!decode_whole<std::int64_t>(digits + "." + std::string(shift, '0') + "1"));
}

TEST(JsonText, ANumberIsTheNearestDouble) {
  EXPECT_EQ(decode_number("0.1"), 0.1);
  EXPECT_EQ(decode_number("-2.5e-3"), -0.0025);
  EXPECT_EQ(decode_number("12345678901234567890123"), 12345678901234567890123.0);
  EXPECT_EQ(decode_number("5e-324"), std::numeric_limits<double>::denorm_min());
  EXPECT_TRUE(std::signbit(decode_number("-0")));
}

TEST(JsonText, ANumberBeyondAllDoublesIsInfiniteAndATinyOneZero) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(decode_number("1e400"), infinity);
  EXPECT_EQ(decode_number("-1e400"), -infinity);
  EXPECT_EQ(decode_number("1" + std::string(400, '0')), infinity);
  EXPECT_EQ(decode_number("1e-400"), 0.0);
  EXPECT_EQ(decode_number("1e99999999999999999999"), infinity);
  EXPECT_EQ(decode_number("1e-99999999999999999999"), 0.0);
}

TEST(JsonText, TheFirstSignificantDigitTellsTheHugeFromTheTiny) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(decode_number("0.000" + std::string(300, '0') + "1e700"), infinity);
  EXPECT_EQ(decode_number("-1.7976931348623159e308"), -infinity);
  EXPECT_EQ(decode_number("123456789012345678901234567890e-360"), 0.0);
  EXPECT_EQ(decode_number("2.4e-324"), 0.0);
  EXPECT_TRUE(std::signbit(decode_number("-0.5e-400")));
}

/// While it lives this thread writes numbers with a decimal comma.
class DecimalComma {
 public:
  DecimalComma() : folder_(testing::TempDir() + "duet-locale-" + std::to_string(getpid())) {
    const std::string make = "localedef -i de_DE -f UTF-8 '" + folder_.string() + "/comma' >'/dev/null' 2>&1";
    std::filesystem::create_directory(folder_);
    [[maybe_unused]] const int status = std::system(make.c_str());
    setenv("LOCPATH", folder_.c_str(), 1);
    std::setlocale(LC_NUMERIC, "comma");
    unsetenv("LOCPATH");
  }
  DecimalComma(const DecimalComma&) = delete;
  DecimalComma& operator=(const DecimalComma&) = delete;
  ~DecimalComma() {
    std::setlocale(LC_NUMERIC, "C");
    std::filesystem::remove_all(folder_);
  }
  bool works() const { return std::strtod("1.5", nullptr) == 1.0; }

 private:
  std::filesystem::path folder_;
};

TEST(JsonText, ADecimalCommaInTheLocaleChangesNoNumber) {
  const DecimalComma comma;
  if (!comma.works()) GTEST_SKIP() << "localedef makes no such locale here";
  EXPECT_EQ(decode_number("0.5"), 0.5);
  EXPECT_EQ(decode_number("1.5e400"), std::numeric_limits<double>::infinity());
  EXPECT_EQ(decode_number("1.5e-400"), 0.0);
}

TEST(JsonText, EscapesWhatAStringMayNotHoldAndNothingElse) {
  EXPECT_EQ(quoted("plain é /\x7f"), "\"plain é /\x7f\"");
  EXPECT_EQ(quoted("\"\\\n\r\t"), R"("\"\\\n\r\t")");
  EXPECT_EQ(quoted(std::string_view("\0\x1f\b", 3)), R"("\u0000\u001f\u0008")");
  EXPECT_EQ(quoted(""), R"("")");
  EXPECT_EQ(quoted({}), R"("")");
}

TEST(JsonText, ReplacesEveryByteThatIsNotUtf8) {
  const std::string one(replacement);
  EXPECT_EQ(quoted("a\x80z"), "\"a" + one + "z\"");
  EXPECT_EQ(quoted("\xC3"), "\"" + one + "\"");
  EXPECT_EQ(quoted("\xED\xA0\x80"), "\"" + one + one + one + "\"");
  EXPECT_EQ(quoted("\xC3\xA9\xC3"), "\"é" + one + "\"");
}

TEST(JsonText, AppendsBehindWhatIsThere) {
  std::string out = "x";
  append_string(out, "y");
  EXPECT_EQ(out, "x\"y\"");
}

RC_GTEST_PROP(JsonText, AnyBytesQuotedAreValidJson, (const std::vector<unsigned char>& bytes)) {
  RC_ASSERT(is_valid_json(rpc::quoted(std::string(bytes.begin(), bytes.end()))));
}

RC_GTEST_PROP(JsonText, TextComesBackThroughQuotingAndDecoding, (const std::vector<int>& seeds)) {
  std::string text;
  for (const int seed : seeds) {
    const auto code = static_cast<unsigned>(seed) % 0x110000U;
    if (code < 0x80) {
      text += static_cast<char>(code);
    } else if (code < 0x10000) {
      text += "\xE2\x82\xAC";
    } else {
      text += "\xF0\x9F\x98\x80";
    }
  }
  RC_ASSERT(decode_string(rpc::quoted(text)) == text);
}

}  // namespace
}  // namespace duet::rpc
