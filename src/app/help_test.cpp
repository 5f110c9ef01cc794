#include "app/help.h"

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
  const std::string text = help_text(nullptr, plain);
  for (const CommandEntry& command : commands()) {
    EXPECT_EQ(text.find("\n  " + std::string(command.name) + " ") != std::string::npos, command.listed) << command.name;
    for (const OptionEntry& option : command.options) {
      EXPECT_NE(help_text(&command, plain).find(option_label(option)), std::string::npos);
    }
  }
  for (const OptionEntry& option : global_options()) EXPECT_NE(text.find(option_label(option)), std::string::npos);
}

TEST(Help, EndsWithTheFooter) {
  EXPECT_TRUE(help_text(nullptr, plain).ends_with("\nSee 'duet-rpc <command> --help' for more information.\n"));
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
