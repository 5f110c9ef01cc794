#include "app/command_line.h"

#include <vector>

#include <gtest/gtest.h>

namespace duet::app {
namespace {

using Arguments = std::vector<const char*>;

CommandLine read(const Arguments& arguments) {
  auto parsed = parse_command_line(arguments);
  const auto* error = std::get_if<UsageError>(&parsed);
  EXPECT_EQ(error, nullptr) << (error != nullptr ? error->message : "");
  return error != nullptr ? CommandLine() : std::get<CommandLine>(parsed);
}

UsageError refused(const Arguments& arguments) {
  auto parsed = parse_command_line(arguments);
  EXPECT_TRUE(std::holds_alternative<UsageError>(parsed));
  return std::holds_alternative<UsageError>(parsed) ? std::get<UsageError>(parsed) : UsageError();
}

std::string_view command_of(const CommandLine& line) { return line.command == nullptr ? "" : line.command->name; }

TEST(CommandLine, MayBeEmpty) {
  const CommandLine line = read({});
  EXPECT_EQ(line.command, nullptr);
  EXPECT_FALSE(line.help || line.version || line.no_color || line.log_level);
}

TEST(CommandLine, TakesGlobalOptionsBeforeAndAfterTheCommand) {
  for (const Arguments& arguments :
       {Arguments{"--log-level", "info", "-n", "rpc"}, Arguments{"rpc", "--log-level=info", "--no-color"},
        Arguments{"--no-color", "rpc", "--log-level", "INFO"}}) {
    const CommandLine line = read(arguments);
    EXPECT_EQ(command_of(line), "rpc");
    EXPECT_EQ(line.log_level, base::Level::info);
    EXPECT_TRUE(line.no_color);
  }
}

TEST(CommandLine, KnowsEveryCommandOfTheTable) {
  for (const CommandEntry& command : commands()) {
    Arguments arguments{command.name.data()};
    if (!command.argument.name.empty()) arguments.push_back(command.argument.choices.front().data());
    EXPECT_EQ(read(arguments).command, &command);
  }
}

TEST(CommandLine, KnowsEveryOptionOfTheTable) {
  for (const CommandEntry& command : commands()) {
    for (const OptionEntry& option : command.options) {
      const std::string name = "--" + std::string(option.name);
      EXPECT_EQ(read({command.name.data(), name.c_str(), "1"}).command, &command);
    }
  }
}

TEST(CommandLine, OfAnOptionGivenTwiceTheLastCounts) {
  EXPECT_EQ(read({"--log-level", "debug", "rpc", "--log-level", "error"}).log_level, base::Level::error);
}

TEST(CommandLine, HelpAndVersionGoWithACommand) {
  EXPECT_TRUE(read({"rpc", "-h"}).help);
  EXPECT_TRUE(read({"--help", "rpc"}).help);
  EXPECT_TRUE(read({"rpc", "-V"}).version);
  EXPECT_TRUE(read({"completion", "--help"}).help) << "its argument is not needed for that";
}

TEST(CommandLine, ReadTimeoutTakesFractions) {
  EXPECT_EQ(read({"rpc"}).read_timeout, std::chrono::seconds(30));
  EXPECT_EQ(read({"rpc", "--read-timeout", "0.25"}).read_timeout, std::chrono::milliseconds(250));
  EXPECT_EQ(read({"rpc", "--read-timeout=1e-3"}).read_timeout, std::chrono::milliseconds(1));
  EXPECT_GT(read({"rpc", "--read-timeout=1e-300"}).read_timeout, std::chrono::nanoseconds(0));
}

TEST(CommandLine, ReadTimeoutRefusesNonsense) {
  for (const char* word : {"soon", "-1", "0", "nan", "inf", "1e9", "", "3s", "0x10", " 3", "1,5"}) {
    const UsageError error = refused({"rpc", "--read-timeout", word});
    EXPECT_NE(error.message.find("'" + std::string(word) + "'"), std::string::npos) << error.message;
    EXPECT_EQ(error.command, find_command("rpc"));
  }
}

TEST(CommandLine, TellsWhatIsWrong) {
  EXPECT_EQ(refused({"frobnicate"}).message, "unknown command 'frobnicate'");
  EXPECT_EQ(refused({"--frobnicate=3"}).message, "unknown option '--frobnicate'");
  EXPECT_EQ(refused({"rpc", "frobnicate"}).message, "unexpected argument 'frobnicate'");
  EXPECT_EQ(refused({"rpc", "version"}).message, "unexpected argument 'version'");
  EXPECT_EQ(refused({"rpc", "--log-level"}).message, "option '--log-level' needs a value");
  EXPECT_EQ(refused({"--no-color=yes"}).message, "option '--no-color' takes no value");
  EXPECT_EQ(refused({"--log-level", "loud"}).message, "bad log level 'loud': it is one of debug, info, warn or error");
  EXPECT_EQ(refused({"completion"}).message, "SHELL is missing: bash, zsh or fish");
  EXPECT_EQ(refused({"completion", "tcsh"}).message, "bad SHELL 'tcsh': it is one of bash, zsh or fish");
}

TEST(CommandLine, WrongUsageWinsOverHelpAndVersion) {
  EXPECT_EQ(refused({"frobnicate", "--help"}).message, "unknown command 'frobnicate'");
  EXPECT_EQ(refused({"--version", "--frobnicate"}).message, "unknown option '--frobnicate'");
}

TEST(CommandLine, SuggestsWhatWasMeant) {
  EXPECT_EQ(refused({"versoin"}).suggestion, "version");
  EXPECT_EQ(refused({"help"}).suggestion, "--help");
  EXPECT_EQ(refused({"--hepl"}).suggestion, "--help");
  EXPECT_EQ(refused({"-v"}).suggestion, "--version");
  EXPECT_EQ(refused({"-version"}).suggestion, "--version");
  EXPECT_EQ(refused({"rpc", "--read-timout=3"}).suggestion, "--read-timeout");
  EXPECT_EQ(refused({"version", "--read-timout=3"}).suggestion, "") << "an option of another command";
  EXPECT_EQ(refused({"rpc", "--log-level", "wran"}).suggestion, "warn");
  EXPECT_EQ(refused({"xylophone"}).suggestion, "");
  EXPECT_EQ(refused({"prnt"}).suggestion, "") << "not in the help";
}

TEST(CommandLine, RemembersThatNoColourWasAskedFor) {
  EXPECT_TRUE(refused({"-n", "frobnicate"}).no_color);
  EXPECT_TRUE(refused({"-n", "rpc", "--log-level"}).no_color);
  EXPECT_FALSE(refused({"frobnicate"}).no_color);
}

}  // namespace
}  // namespace duet::app
