#include "app/settings/toml_text.h"

#include <gtest/gtest.h>

namespace duet::app {
namespace {

/// The text, or the place and words of the fault.
std::string read(std::string_view text) {
  const auto read = cautious_toml(text);
  if (const auto* fault = std::get_if<SettingFault>(&read)) {
    return std::to_string(fault->place.line) + ':' + std::to_string(fault->place.column) + ' ' + fault->text;
  }
  return std::get<std::string>(read);
}

TEST(TomlText, StaysAsItIsWhereTheLibraryCanReadIt) {
  for (const char* text :
       {"", "a = 1\n", "a = 'é' # è\n\"ü\" = \"ö\"\n", "a = '''\né'''", "a = \"\\\"é\"", "a = \"open é\nb = 1"}) {
    EXPECT_EQ(read(text), text);
  }
}

TEST(TomlText, LettersOutsideOfStringsAreAFaultInTheirPlace) {
  EXPECT_TRUE(read("a = 1\n  é = 2").starts_with("2:3 this is not TOML: letters beyond ASCII"));
  EXPECT_TRUE(read("a = 'é' é").starts_with("1:9 "));
  EXPECT_TRUE(read("a = \"\\é\"").starts_with("1:7 this is not TOML: no letter"));
}

TEST(TomlText, LettersOfALongStringBecomeEscapesThatMeanTheSame) {
  EXPECT_EQ(read("a = \"\"\"\\\n  É😀\"\"\" # é"), "a = \"\"\"\\\n  \\U000000C9\\U0001F600\"\"\" # é");
  const auto parsed = parse_toml("a = \"\"\"\\\n  É😀\"\"\"");
  EXPECT_EQ(*std::get<Setting>(parsed).as<Setting::Table>()->at(0).setting.as<std::string>(), "É😀");
}

TEST(TomlText, DotsHaveABoundOutsideOfStrings) {
  std::string keys = "a";
  for (int i = 0; i < 1001; ++i) keys += ".a";
  EXPECT_TRUE(read(keys + " = 1").ends_with("this line has more than 1000 dots"));
  EXPECT_EQ(read("a = '" + std::string(2000, '.') + "'").size(), 2006U);
}

TEST(TomlText, BytesThatAreNoTextAreTheLibrarysToRefuse) {
  EXPECT_EQ(read("a = \"\xFF\""), "a = \"\xFF\"");
  EXPECT_TRUE(std::holds_alternative<SettingFault>(parse_toml("a = \"\xFF\"")));
}

}  // namespace
}  // namespace duet::app
