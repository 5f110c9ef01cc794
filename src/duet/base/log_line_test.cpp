#include "duet/base/log_line.h"

#include <rapidcheck.h>

#include <algorithm>
#include <limits>

#include <boost/json.hpp>
#include <gtest/gtest.h>

namespace duet::base {
namespace {

using namespace std::chrono_literals;
using namespace std::string_literals;

const auto kTime = std::chrono::sys_days{std::chrono::November / 15 / 2026} + 9h + 30min + 123ms;

std::string line_of(std::string_view message, Fields fields, Level level = Level::warn, bool coloured = false) {
  std::string out;
  LineFormat(coloured).append(out, kTime, level, message, fields);
  return out;
}

/// What stands for the value of a field.
std::string value_of(const Field& field) {
  const std::string line = line_of("m", {field});
  const auto start = line.find('=') + 1;
  return line.substr(start, line.size() - start - 1);
}

std::string text(std::string_view value) { return value_of({"key", value}); }
std::string json(std::string_view value) { return value_of({"key", JsonText{value}}); }

std::string repeat(std::string_view part, std::size_t times) {
  std::string all;
  for (std::size_t i = 0; i < times; ++i) all += part;
  return all;
}

TEST(Level, IsReadInAnyCase) {
  EXPECT_EQ(parse_level("debug"), Level::debug);
  EXPECT_EQ(parse_level("Info"), Level::info);
  EXPECT_EQ(parse_level("WARN"), Level::warn);
  EXPECT_EQ(parse_level("eRRoR"), Level::error);
  for (const char* wrong : {"", "warning", "war", "debug ", "1", "\xC4\xB0nfo"}) {
    EXPECT_EQ(parse_level(wrong), std::nullopt) << wrong;
  }
}

TEST(Level, HasALowerCaseName) {
  for (const Level level : {Level::debug, Level::info, Level::warn, Level::error}) {
    EXPECT_EQ(parse_level(level_name(level)), level);
  }
  EXPECT_EQ(level_name(Level::warn), "warn");
}

TEST(Level, IsReadFromALine) {
  for (const Level level : {Level::debug, Level::info, Level::warn, Level::error}) {
    EXPECT_EQ(level_of_line(line_of("error", {{"key", "error"}}, level)), level);
  }
  for (const char* other : {"", "debug", "\n"}) EXPECT_EQ(level_of_line(other), Level::error);
}

TEST(LineFormat, HasTimeLevelMessageAndFields) {
  EXPECT_EQ(line_of("Method not found", {{"method", "frobnicate"}, {"id", JsonText{"7"}}}),
            "2026-11-15T09:30:00.123Z warn  Method not found method=\"frobnicate\" id=7\n");
}

TEST(LineFormat, PadsTheLevelToFiveCharacters) {
  EXPECT_EQ(line_of("m", {}, Level::debug), "2026-11-15T09:30:00.123Z debug m\n");
  EXPECT_EQ(line_of("m", {}, Level::info), "2026-11-15T09:30:00.123Z info  m\n");
  EXPECT_EQ(line_of("m", {}, Level::error), "2026-11-15T09:30:00.123Z error m\n");
}

TEST(LineFormat, ColoursNothingButTheLevel) {
  EXPECT_EQ(line_of("m", {{"n", 1}}, Level::warn, true), "2026-11-15T09:30:00.123Z \x1b[33mwarn\x1b[0m  m n=1\n");
}

TEST(LineFormat, FollowsTheClockFromSecondToSecond) {
  LineFormat format;
  const auto stamp = [&](auto time) {
    std::string out;
    format.append(out, time, Level::info, "", {});
    return out.substr(0, 24);
  };
  EXPECT_EQ(stamp(kTime), "2026-11-15T09:30:00.123Z");
  EXPECT_EQ(stamp(kTime + 876ms), "2026-11-15T09:30:00.999Z");
  EXPECT_EQ(stamp(kTime + 877ms), "2026-11-15T09:30:01.000Z");
  EXPECT_EQ(stamp(kTime), "2026-11-15T09:30:00.123Z") << "a clock may be set back";
  EXPECT_EQ(stamp(std::chrono::sys_seconds{}), "1970-01-01T00:00:00.000Z");
  EXPECT_EQ(stamp(std::chrono::sys_seconds{} - 1ms), "1969-12-31T23:59:59.999Z");
  EXPECT_EQ(stamp(std::chrono::sys_days{std::chrono::February / 29 / 2028} - 1ms), "2028-02-28T23:59:59.999Z");
}

TEST(Field, ShowsNumbersInDecimal) {
  EXPECT_EQ(value_of({"n", -1}), "-1");
  EXPECT_EQ(value_of({"n", std::numeric_limits<std::int64_t>::min()}), "-9223372036854775808");
  EXPECT_EQ(value_of({"n", std::numeric_limits<std::uint64_t>::max()}), "18446744073709551615");
  EXPECT_EQ(value_of({"n", std::size_t{0}}), "0");
  EXPECT_EQ(value_of({"n", true}), "true");
  EXPECT_EQ(value_of({"n", false}), "false");
}

TEST(Field, TakesEveryKindOfText) {
  const std::string owned = "a b";
  EXPECT_EQ(value_of({"t", owned}), R"("a b")");
  EXPECT_EQ(value_of({"t", std::string_view(owned)}), R"("a b")");
  EXPECT_EQ(value_of({"t", ""}), R"("")");
}

TEST(Field, IsLeftOutWhenThereIsNoJson) {
  EXPECT_EQ(line_of("m", {{"id", JsonText{}}, {"n", 1}}), "2026-11-15T09:30:00.123Z warn  m n=1\n");
  EXPECT_EQ(json("null"), "null");
}

TEST(Field, CannotForgeALine) {
  EXPECT_EQ(text("a\n2026-11-15T09:30:00.123Z error forged"), R"("a\n2026-11-15T09:30:00.123Z error forged")");
  EXPECT_EQ(text("a\" id=9 b=\""), R"("a\" id=9 b=\"")");
  EXPECT_EQ(text("back\\slash\\"), R"("back\\slash\\")");
  EXPECT_EQ(text("\x1b[2J\x1b]0;title\x07"), R"("\u001b[2J\u001b]0;title\u0007")");
  EXPECT_EQ(text("\r\t\b\f\x7f\0x"s + '\0'), R"("\r\t\b\f\u007f\u0000x\u0000")");
  EXPECT_EQ(text("\xC2\x85\xC2\x9B\x33m"), R"("\u0085\u009b3m")") << "C1 controls";
  EXPECT_EQ(text("\xE2\x80\xA8\xE2\x80\xAE\xE2\x81\xA6"), R"("\u2028\u202e\u2066")") << "separators, directions";
}

TEST(Field, KeepsOtherTextReadable) {
  EXPECT_EQ(text("größe/\xF0\x9F\x98\x80 \xEF\xBF\xBD"), "\"größe/\xF0\x9F\x98\x80 \xEF\xBF\xBD\"");
}

TEST(Field, ReplacesWhatIsNotUtf8) {
  EXPECT_EQ(text("a\xFF"
                 "b"),
            R"("a\ufffdb")");
  EXPECT_EQ(text("\xC3"), R"("\ufffd")") << "cut short";
  EXPECT_EQ(text("\xC0\xAF"), R"("\ufffd\ufffd")") << "overlong";
  EXPECT_EQ(text("\xE0\x80\x8A"), R"("\ufffd\ufffd\ufffd")") << "overlong newline";
  EXPECT_EQ(text("\xF0\x80\x80\x8A"), R"("\ufffd\ufffd\ufffd\ufffd")") << "overlong newline";
  EXPECT_EQ(text("\xED\xA0\x80"), R"("\ufffd\ufffd\ufffd")") << "surrogate";
  EXPECT_EQ(text("\xF4\x90\x80\x80"), R"("\ufffd\ufffd\ufffd\ufffd")") << "beyond U+10FFFF";
  EXPECT_EQ(text("\xE2\x80\n"), R"("\ufffd\ufffd\n")") << "a newline inside a sequence";
}

TEST(Field, IsCutTo200CharactersWithAMark) {
  EXPECT_EQ(text(repeat("x", 200)), '"' + repeat("x", 200) + '"');
  EXPECT_EQ(text(repeat("x", 201)), '"' + repeat("x", 200) + "\"...");
  EXPECT_EQ(text(repeat("x", 10'000)), '"' + repeat("x", 200) + "\"...");
  EXPECT_EQ(text(repeat("ü", 200)), '"' + repeat("ü", 200) + '"') << "characters, not bytes";
  EXPECT_EQ(text(repeat("ü", 10'000)), '"' + repeat("ü", 200) + "\"...");
  EXPECT_EQ(text(repeat("x", 200) + "..."), '"' + repeat("x", 200) + "\"...");
}

TEST(Field, CountsAnEscapeAsWhatItTakesAndNeverBreaksIt) {
  EXPECT_EQ(text(repeat("\n", 10'000)), '"' + repeat("\\n", 100) + "\"...");
  EXPECT_EQ(text(repeat("x", 199) + "\n"), '"' + repeat("x", 199) + "\"...");
  EXPECT_EQ(text(repeat("x", 195) + "\x01"), '"' + repeat("x", 195) + "\"...");
  EXPECT_EQ(json('"' + repeat("x", 195) + "\\u0041\""), '"' + repeat("x", 195) + "\"...");
  EXPECT_EQ(json('"' + repeat("x", 199) + "\\\"\""), '"' + repeat("x", 199) + "\"...");
}

TEST(Field, ShowsJsonAsItStood) {
  for (const char* value : {"7", "-1.50e+3", "null", R"("a b")", R"("\u00e9\n\"\\")", R"("é")", R"("")"}) {
    EXPECT_EQ(json(value), value);
  }
  EXPECT_EQ(json(R"({"a":["b\"c",1]})"), R"({"a":["b\"c",1]})");
}

TEST(Field, CutsJsonAndTakesItsControlCharactersAway) {
  EXPECT_EQ(json(repeat("1", 5000)), repeat("1", 200) + "...");
  EXPECT_EQ(json('"' + repeat("y", 5000) + '"'), '"' + repeat("y", 200) + "\"...");
  EXPECT_EQ(json("\"\x7f\xC2\x9B\""), R"("\u007f\u009b")");
  EXPECT_EQ(json("[1,\n2]"), R"([1,\n2])");
}

TEST(Field, TrustsNoJson) {
  EXPECT_EQ(json("\"a\" forged=\"b\""), R"("a\" forged=\"b")");
  EXPECT_EQ(json("\"a\\\""), R"("a\\")") << "the last quote was escaped";
  EXPECT_EQ(json("\"\\\n\""), R"("\\\n")");
  EXPECT_EQ(json("\"\\u00\n0\""), R"("\u00\n0")");
  EXPECT_EQ(json("\xFF"), "\\ufffd");
}

TEST(LineFormat, KeepsMessagesOnOneLineToo) {
  EXPECT_EQ(line_of("a \"b\" c\\d\ne", {}), "2026-11-15T09:30:00.123Z warn  a \"b\" c\\d\\ne\n");
  EXPECT_EQ(line_of(repeat("x", 5000), {}).size(), 31 + LineFormat::max_message_chars + 4);
}

bool is_safe_line(const std::string& line) {
  const auto controls =
      std::count_if(line.begin(), line.end(), [](char c) { return (c >= 0 && c < 0x20) || c == 0x7F; });
  return controls == 1 && line.back() == '\n' && line.find("\xC2\x9B") == line.npos;
}

std::string any_bytes() {
  const auto nasty = rc::gen::element<char>('\n', '"', '\\', 'u', '0', '\x1b', '\xC2', '\x9B', '\xE2', '\x80', '\xF0');
  return *rc::gen::container<std::string>(rc::gen::oneOf(nasty, rc::gen::arbitrary<char>()));
}

TEST(LineFormat, AnyBytesMakeOneLineWithValidJsonStrings) {
  EXPECT_TRUE(rc::check([] {
    const std::string bytes = any_bytes();
    RC_ASSERT(is_safe_line(line_of(bytes, {{"text", bytes}, {"json", JsonText{bytes}}})));
    std::string value = text(bytes);
    if (value.ends_with("\"...")) value.resize(value.size() - 3);
    RC_ASSERT(boost::json::parse(value).is_string());
    RC_ASSERT(value.size() <= 4 * Field::max_field_chars + 2);
  }));
}

TEST(Field, ShortValidTextReadsBackAsItWas) {
  EXPECT_TRUE(rc::check([] {
    const auto printable = *rc::gen::container<std::string>(rc::gen::inRange<char>(0, 127));
    const std::string bytes = printable.substr(0, Field::max_field_chars / 6);
    RC_ASSERT(boost::json::parse(text(bytes)).as_string() == bytes);
  }));
}

}  // namespace
}  // namespace duet::base
