#include "app/cli/help.h"

#include <regex>
#include <sstream>

#include <gtest/gtest.h>

namespace duet::app {
namespace {

const TextStyle plain(false);
const TextStyle coloured(true);

std::string without_colours(const std::string& text) {
  return std::regex_replace(text, std::regex("\x1b\\[[0-9;]*m"), "");
}

std::vector<std::string> all_texts(const TextStyle& style) {
  std::vector<std::string> texts{help_text(nullptr, style)};
  for (const CommandEntry& command : commands()) texts.push_back(help_text(&command, style));
  texts.push_back(usage_error_text({"unknown command 'rcp'", "rpc"}, style));
  return texts;
}

TEST(Help, NamesEveryListedCommandAndEveryOption) {
  for (const CommandEntry& command : commands()) {
    const std::size_t blank = command.path.rfind(' ');
    const CommandEntry* const group =
        blank == std::string_view::npos ? nullptr : find_command(command.path.substr(0, blank));
    const std::string above = help_text(group, plain);
    EXPECT_EQ(above.find("\n  " + std::string(command.name()) + " ") != std::string::npos, command.listed)
        << command.path;
    if (command.group) continue;
    const std::string text = help_text(&command, plain);
    for (const std::span<const OptionEntry> list : option_lists(&command)) {
      for (const OptionEntry& option : list) {
        EXPECT_NE(text.find(option_label(option, &command)), std::string::npos) << command.path << " " << option.name;
      }
    }
  }
}

TEST(Help, TellsOfTheEnvironmentOnce) {
  for (const TermEntry& variable : environment()) {
    EXPECT_NE(help_text(nullptr, plain).find(variable.name), std::string::npos) << variable.name;
  }
  for (const CommandEntry& command : commands()) {
    EXPECT_EQ(help_text(&command, plain).find("Environment:"), std::string::npos) << command.path;
  }
}

TEST(Help, TellsWhereTheSettingsAre) {
  EXPECT_NE(help_text(nullptr, plain).find("\nFiles:\n"), std::string::npos);
  EXPECT_NE(help_text(nullptr, plain).find("  .duet-rpc.toml "), std::string::npos);
}

TEST(Help, ShowsALetterOnlyWhereItMeansThat) {
  const std::string text = help_text(find_command("daemon logs"), plain);
  EXPECT_NE(text.find("  -n, --lines N"), std::string::npos);
  EXPECT_NE(text.find("      --no-color"), std::string::npos);
  EXPECT_NE(help_text(find_command("daemon status"), plain).find("  -n, --no-color"), std::string::npos);
}

TEST(Help, UsageShowsWhatACommandTakes) {
  EXPECT_EQ(usage_of(find_command("daemon")), "duet-rpc daemon COMMAND [OPTIONS]");
  EXPECT_EQ(usage_of(find_command("call")), "duet-rpc call METHOD [PARAMS] [OPTIONS]");
  EXPECT_EQ(usage_of(find_command("completion"), "aiwg"), "aiwg completion SHELL [OPTIONS]");
}

TEST(Help, SaysTheNameItWasCalledBy) {
  EXPECT_TRUE(help_text(nullptr, plain, "aiwg").starts_with("Usage: aiwg [COMMAND] [OPTIONS]\n"));
  EXPECT_TRUE(help_text(nullptr, plain, "aiwg").ends_with("\nSee 'aiwg <command> --help' for more information.\n"));
  EXPECT_EQ(help_text(find_command("completion"), plain, "aiwg").find("duet-rpc"), std::string::npos);
  const UsageError error{"unknown command 'x'", {}, find_command("daemon"), false, "aiwg"};
  EXPECT_EQ(usage_error_text(error, plain),
            "aiwg: unknown command 'x'\n"
            "\n"
            "Usage: aiwg daemon COMMAND [OPTIONS]\n"
            "See 'aiwg daemon --help' for more information.\n");
}

TEST(Help, EndsWithTheFooter) {
  EXPECT_TRUE(help_text(nullptr, plain).ends_with("\nSee 'duet-rpc <command> --help' for more information.\n"));
  EXPECT_TRUE(help_text(find_command("daemon"), plain)
                  .ends_with("\nSee 'duet-rpc daemon <command> --help' for more information.\n"));
}

TEST(Help, FitsIntoEightyColumns) {
  for (const std::string& text : all_texts(plain)) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      EXPECT_LE(line.size(), 80U) << line;
      EXPECT_FALSE(line.ends_with(' ')) << line;
    }
  }
}

TEST(Help, ColoursChangeNothingButColours) {
  const std::vector<std::string> with = all_texts(coloured);
  const std::vector<std::string> without = all_texts(plain);
  for (std::size_t i = 0; i < with.size(); ++i) {
    EXPECT_NE(with[i], without[i]);
    EXPECT_EQ(without_colours(with[i]), without[i]);
  }
}

TEST(UsageError, ShowsTheUsageOfTheCommandItIsAbout) {
  EXPECT_EQ(usage_error_text({"unexpected argument 'x'", {}, find_command("rpc")}, plain),
            "duet-rpc: unexpected argument 'x'\n"
            "\n"
            "Usage: duet-rpc rpc [OPTIONS]\n"
            "See 'duet-rpc rpc --help' for more information.\n");
  EXPECT_EQ(usage_error_text({"unknown command 'rcp'", "rpc"}, plain),
            "duet-rpc: unknown command 'rcp'\n"
            "Did you mean 'rpc'?\n"
            "\n"
            "Usage: duet-rpc [COMMAND] [OPTIONS]\n"
            "See 'duet-rpc --help' for more information.\n");
}

}  // namespace
}  // namespace duet::app
