#include "app/settings/settings_words.h"

#include <gtest/gtest.h>

namespace duet::app {
namespace {

SettingsWords words(std::string_view text) { return words_of(std::get<Setting>(parse_toml(text))); }

TEST(SettingsWords, AreFlatAndAsWritten) {
  EXPECT_EQ(words(R"(
max_running = 3
ratio = 1.5
[agents.claude]
command = ["claude", "-p"]
env = { A = "1" }
[agents."a.b"]
on = true
[[rules]]
id = "one"
trigger = { cron = "* * * * *" }
conditions = [ { field = "x", value = 2 } ]
[[rules]]
enabled = false
)"),
            (SettingsWords{{"max_running", "3"},
                           {"ratio", "1.5"},
                           {"agents.claude.command", R"(["claude", "-p"])"},
                           {"agents.claude.env.A", "\"1\""},
                           {R"(agents."a.b".on)", "true"},
                           {"rules.one.id", "\"one\""},
                           {"rules.one.trigger.cron", "\"* * * * *\""},
                           {"rules.one.conditions", R"([{ field = "x", value = 2 }])"},
                           {"rules.1.enabled", "false"}}));
}

TEST(SettingsWords, ShowWhatATerminalWouldActUponOrHide) {
  EXPECT_EQ(words("x = \"a\\u001b[2Jb\\nc\\u202ed\\u200be\\u0085 \\\"q\\\" \\\\ ü€😀\"").at("x"),
            "\"a\\u001b[2Jb\\nc\\u202ed\\u200be\\u0085 \\\"q\\\" \\\\ ü€😀\"");
  EXPECT_EQ(words("\"\\u001b\" = 1").begin()->first, "\"\\u001b\"");
}

TEST(SettingsWords, HaveNamesOfABoundedLength) {
  const auto fault = [](const std::string& text) {
    const auto parsed = parse_toml(text);
    const auto* const wrong = std::get_if<SettingFault>(&parsed);
    return wrong == nullptr ? "" : std::to_string(wrong->place.line) + ": " + wrong->text;
  };
  const std::string long_name(1100, 'A');
  const std::string too_long = "a name has more than 1024 bytes, with those of the tables it stands in";
  EXPECT_EQ(fault("\n[" + long_name + "]\na = 1"), "2: " + too_long);
  EXPECT_EQ(fault("\n[[rules]]\nid = '" + long_name + "'\na = 1"), "2: " + too_long) << "the id is part of its names";
  EXPECT_EQ(fault("x = '" + long_name + "'"), "") << "values are as long as they like";
  std::string many = "[" + std::string(1000, 'A') + "]\n";
  for (int i = 0; i < 5'000; ++i) many += "a" + std::to_string(i) + " = 1\n";
  EXPECT_NE(fault(many).find("all names up to here have more than 4 MiB"), std::string::npos) << fault(many);
}

TEST(SettingsWords, AFileGoesOverAnotherByNameAgentAndRule) {
  SettingsWords both =
      words("a = 1\nb = 2\n[agents.x]\ncommand = ['x']\nstdin = 'prompt'\n[watch]\npaths = []\nignore = []");
  put_over(both, words("b = 3\n[agents.x]\ncommand = ['y']\n[watch]\npaths = ['p']"));
  EXPECT_EQ(both, (SettingsWords{{"a", "1"},
                                 {"b", "3"},
                                 {"agents.x.command", "[\"y\"]"},
                                 {"watch.ignore", "[]"},
                                 {"watch.paths", "[\"p\"]"}}));
}

TEST(SettingsWords, ChangesAreToldByWhatIsChangedAsAWhole) {
  const SettingsChange change = change_between(
      words("a = 1\nb = 2\n[agents.x]\ncommand = ['x']\n[agents.\"p.q\"]\ncommand = ['x']\n[[rules]]\nid = 'r'"),
      words("a = 1\nb = 3\n[agents.x]\ncommand = ['x']\nstdin = 'prompt'\n[lsp.z]\ncommand = ['z']"));
  EXPECT_EQ(change.added, std::vector<std::string>{"lsp.z"});
  EXPECT_EQ(change.removed, (std::vector<std::string>{"agents.\"p.q\"", "rules.r"}));
  EXPECT_EQ(change.changed, (std::vector<std::string>{"agents.x", "b"}));
  EXPECT_TRUE(change_between(words("a = 1"), words("a = 1 # same")).empty());
}

}  // namespace
}  // namespace duet::app
