#include "app/cli/command_line.h"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

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

/// The words of a path, and something for each argument.
std::vector<std::string> calling(const CommandEntry& command) {
  std::vector<std::string> words;
  for (std::string_view rest = command.path; !rest.empty();) {
    words.emplace_back(rest.substr(0, rest.find(' ')));
    rest.remove_prefix(std::min(words.back().size() + 1, rest.size()));
  }
  for (const ArgumentEntry& argument : command.arguments) {
    words.emplace_back(argument.choices.empty() ? "something" : argument.choices.front());
  }
  return words;
}

Arguments pointers(const std::vector<std::string>& words) {
  Arguments out;
  for (const std::string& word : words) out.push_back(word.c_str());
  return out;
}

std::string good_value(const OptionEntry& option) {
  if (option.kind == ValueKind::pair) return "k=v";
  if (option.kind == ValueKind::bytes) return "1G";
  if (option.kind == ValueKind::far_daemon) return "tls://far";
  return option.choices.empty() ? "1" : std::string(option.choices[0]);
}

TEST(CommandLine, MayBeEmpty) {
  const CommandLine line = read({});
  EXPECT_EQ(line.command, nullptr);
  EXPECT_FALSE(line.help || line.version || line.no_color || line.log_level);
}

TEST(CommandLine, ADaemonOfAnotherMachineIsNamedByItself) {
  EXPECT_EQ(read({"--connect", "tls://far", "task", "list"}).text("connect"), "tls://far");
  EXPECT_EQ(refused({"task", "list", "--connect", "far"}).message,
            "bad value 'far' of option '--connect': it is tls://HOST or tls://HOST:PORT, as tls://build.example or "
            "tls://[::1]");
  for (const char* const other : {"--project", "--socket"}) {
    EXPECT_EQ(refused({"task", "list", "--connect", "tls://far", other, "/x"}).message,
              "--connect says which daemon is meant: it goes with neither --project nor --socket");
  }
}

TEST(CommandLine, WhatIsForThisMachineOnlySaysWhatToDoInstead) {
  for (const CommandEntry& command : commands()) {
    if (command.only_here.empty()) continue;
    std::vector<std::string> words = calling(command);
    for (const bool at_front : {true, false}) {
      std::vector<std::string> all = words;
      all.insert(at_front ? all.begin() : all.end(), "--connect=tls://far");
      EXPECT_EQ(refused(pointers(all)).message,
                "option '--connect' does not go with this command: " + std::string(command.only_here));
    }
  }
}

TEST(CommandLine, TakesGlobalOptionsBeforeAndAfterTheCommand) {
  for (const Arguments& arguments :
       {Arguments{"--log-level", "info", "-n", "rpc"}, Arguments{"rpc", "--log-level=info", "--no-color"},
        Arguments{"--no-color", "rpc", "--log-level", "INFO"}}) {
    const CommandLine line = read(arguments);
    EXPECT_EQ(line.path(), "rpc");
    EXPECT_EQ(line.log_level, base::Level::info);
    EXPECT_TRUE(line.no_color);
  }
}

TEST(CommandLine, KnowsEveryCommandOfTheTable) {
  for (const CommandEntry& command : commands()) {
    const std::vector<std::string> words = calling(command);
    if (command.group) {
      EXPECT_TRUE(refused(pointers(words)).message.starts_with("COMMAND is missing: ")) << command.path;
    } else {
      EXPECT_EQ(read(pointers(words)).command, &command);
    }
  }
}

TEST(CommandLine, KnowsEveryOptionOfTheTable) {
  for (const CommandEntry& command : commands()) {
    if (command.group) continue;
    for (const std::span<const OptionEntry> list : option_lists(&command)) {
      for (const OptionEntry& option : list) {
        std::vector<std::string> words = calling(command);
        words.push_back("--" + std::string(option.name));
        if (!option.value.empty() && option.usual.empty()) words.push_back(good_value(option));
        const CommandLine line = read(pointers(words));
        EXPECT_EQ(line.command, &command);
        EXPECT_TRUE(line.flag(option.name)) << command.path << " --" << option.name;
      }
    }
  }
}

TEST(CommandTable, EveryPathBeginsWithAGroupOfItsOwn) {
  for (const CommandEntry& command : commands()) {
    EXPECT_EQ(find_command(command.path), &command) << "twice: " << command.path;
    const std::size_t blank = command.path.rfind(' ');
    if (blank == std::string_view::npos) continue;
    const CommandEntry* const group = find_command(command.path.substr(0, blank));
    ASSERT_NE(group, nullptr) << command.path;
    EXPECT_TRUE(group->group) << command.path;
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
  for (const char* word : {"soon", "-1", "0", "nan", "inf", "1e9", "", "3x", "0x10", " 3", "1,5"}) {
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
  EXPECT_EQ(refused({"-V=1"}).message, "option '-V' takes no value");
  EXPECT_EQ(refused({"--log-level=", "debug"}).message,
            "bad value '' of option '--log-level': it is one of debug, info, warn or error");
  EXPECT_EQ(refused({"--read-timeout", "5", "rpc"}).message,
            "option '--read-timeout' goes after the command it belongs to");
  EXPECT_EQ(refused({"daemon", "frobnicate"}).message, "unknown command 'daemon frobnicate'");
  EXPECT_EQ(refused({"daemon start"}).message, "unknown command 'daemon start'") << "in one word";
  EXPECT_EQ(refused({"daemon"}).message, "COMMAND is missing: start, stop, restart, status, reload or logs");
  EXPECT_EQ(refused({"daemon", "status", "now"}).message, "unexpected argument 'now'");
  EXPECT_EQ(refused({"call"}).message, "METHOD is missing");
  EXPECT_EQ(refused({"--json", "rpc"}).message, "option '--json' does not go with this command");
  EXPECT_EQ(refused({"--start", "daemon", "stop"}).message, "option '--start' does not go with this command");
  EXPECT_EQ(refused({"rpc", "--json"}).message, "unknown option '--json'");
  EXPECT_EQ(refused({"rpc", "--connect", "tls://far"}).message, "unknown option '--connect'");
  EXPECT_EQ(refused({"--json"}).message, "option '--json' needs a command");
  EXPECT_EQ(refused({"daemon", "status", "--project="}).message, "the value of option '--project' is empty");
  EXPECT_EQ(refused({"daemon", "status", "--timeout", "soon"}).message,
            "bad value 'soon' of option '--timeout': it is 500ms, 10s, 5m, 1h, 2d or a number of seconds, above 0, up "
            "to a year");
  EXPECT_EQ(refused({"daemon", "logs", "-n", "many"}).message,
            "bad value 'many' of option '--lines': it is a whole number, at least 0");
  EXPECT_EQ(refused({"daemon", "logs", "-n-1"}).message,
            "bad value '-1' of option '--lines': it is a whole number, at least 0");
  EXPECT_EQ(refused({"--log-level", "loud"}).message,
            "bad value 'loud' of option '--log-level': it is one of debug, info, warn or error");
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
  EXPECT_EQ(refused({"--read-timeout", "5", "rpc"}).suggestion, "") << "it was written as it should be";
  EXPECT_EQ(refused({"deamon", "status"}).suggestion, "daemon");
  EXPECT_EQ(refused({"daemon", "sttaus"}).suggestion, "daemon status");
  EXPECT_EQ(refused({"logs"}).suggestion, "daemon logs") << "a subcommand without its group";
  EXPECT_EQ(refused({"daemon", "logs", "--folow"}).suggestion, "--follow");
  EXPECT_EQ(refused({"daemon", "status", "--projcet=x"}).suggestion, "--project");
  EXPECT_EQ(refused({"-help"}).suggestion, "--help");
  EXPECT_EQ(refused({"xylophone"}).suggestion, "");
  EXPECT_EQ(refused({"prnt"}).suggestion, "") << "not in the help";
}

TEST(CommandLine, RemembersThatNoColourWasAskedFor) {
  EXPECT_TRUE(refused({"-n", "frobnicate"}).no_color);
  EXPECT_TRUE(refused({"-n", "rpc", "--log-level"}).no_color);
  EXPECT_TRUE(refused({"frobnicate", "--no-color"}).no_color);
  EXPECT_FALSE(refused({"frobnicate"}).no_color);
}

TEST(CommandLine, RemembersItsName) {
  const Arguments good{"version"};
  const Arguments bad{"versoin"};
  EXPECT_EQ(std::get<CommandLine>(parse_command_line(good, "aiwg")).program, "aiwg");
  EXPECT_EQ(std::get<UsageError>(parse_command_line(bad, "aiwg")).program, "aiwg");
  EXPECT_EQ(called_name("/usr/bin/aiwg"), "aiwg");
  EXPECT_EQ(called_name("aiwg"), "aiwg");
  EXPECT_EQ(called_name("bin/duet-rpc"), "duet-rpc");
  EXPECT_EQ(called_name("my-aiwg"), "duet-rpc");
  EXPECT_EQ(called_name(nullptr), "duet-rpc");
}

TEST(CommandLine, TakesClientOptionsBeforeAndAfterTheCommand) {
  for (const Arguments& arguments : {Arguments{"--json", "--project", "p", "daemon", "status"},
                                     Arguments{"daemon", "--json", "--project=p", "status"},
                                     Arguments{"daemon", "status", "--project", "p", "--json"}}) {
    const CommandLine line = read(arguments);
    EXPECT_EQ(line.path(), "daemon status");
    EXPECT_TRUE(line.flag("json"));
    EXPECT_FALSE(line.flag("trace"));
    EXPECT_EQ(line.text("project"), "p");
    EXPECT_EQ(line.text("socket"), std::nullopt);
  }
}

TEST(CommandLine, ALetterMeansWhatTheCommandSays) {
  EXPECT_TRUE(read({"-n", "daemon", "logs"}).no_color) << "before the command it is the program's";
  for (const Arguments& arguments : {Arguments{"daemon", "logs", "-n", "5", "-f"}, Arguments{"daemon", "logs", "-fn5"},
                                     Arguments{"daemon", "logs", "-n=5", "--follow"}}) {
    const CommandLine line = read(arguments);
    EXPECT_FALSE(line.no_color);
    EXPECT_EQ(line.number("lines"), 5);
    EXPECT_TRUE(line.flag("follow"));
  }
  EXPECT_TRUE(read({"daemon", "status", "-n"}).no_color);
}

TEST(CommandLine, GivesDurationsAndRepeatedValues) {
  EXPECT_EQ(read({"daemon", "status", "--timeout", "1.5"}).duration("timeout"), std::chrono::milliseconds(1500));
  EXPECT_EQ(read({"daemon", "status", "--timeout=2m"}).duration("timeout"), std::chrono::minutes(2));
  EXPECT_EQ(read({"daemon", "status"}).duration("timeout"), std::nullopt);
  EXPECT_EQ(read({"events", "--kind", "a", "--since", "7", "--kind=b"}).texts("kind"),
            (std::vector<std::string>{"a", "b"}));
}

TEST(CommandLine, ArgumentsMayBeHyphensAndAfterTwoOfThemAnything) {
  const std::vector<std::string> from_stdin{"m", "-"};
  EXPECT_EQ(read({"call", "m", "-"}).arguments, from_stdin);
  EXPECT_EQ(read({"call", "--", "m", "-"}).arguments, from_stdin);
  EXPECT_EQ(read({"--", "call", "m", "-"}).arguments, from_stdin);
  const std::vector<std::string> hyphens{"--json", "-n"};
  const CommandLine line = read({"call", "--", "--json", "-n"});
  EXPECT_EQ(line.arguments, hyphens);
  EXPECT_FALSE(line.flag("json") || line.no_color);
}

TEST(CommandLine, SeveralWordsAndTheirOptionsMayBeMixed) {
  const CommandLine line = read({"task", "submit", "Fix", "--priority", "-5", "the", "--after=task-1", "tests", "-f"});
  EXPECT_EQ(line.arguments, (std::vector<std::string>{"Fix", "the", "tests"}));
  EXPECT_EQ(line.number("priority"), -5);
  EXPECT_EQ(line.texts("after"), std::vector<std::string>{"task-1"});
  EXPECT_TRUE(line.flag("follow"));
  EXPECT_EQ(read({"lsp", "check", "--", "clangd", "--background-index"}).arguments,
            (std::vector<std::string>{"clangd", "--background-index"}));
  EXPECT_EQ(read({"task", "list", "--state", "FAILED"}).text("state"), "failed") << "as the table spells it";
  EXPECT_EQ(refused({"task", "submit"}).message, "PROMPT is missing");
}

TEST(CommandLine, AValueMayBeANegativeNumberButNoOption) {
  EXPECT_EQ(refused({"events", "--since", "-5"}).message,
            "bad value '-5' of option '--since': it is a whole number, at least 0");
  EXPECT_EQ(refused({"events", "--kind", "--json"}).message, "option '--kind' needs a value");
  EXPECT_EQ(read({"events", "--kind=--json"}).text("kind"), "--json");
}

RC_GTEST_PROP(CommandLine, AnyWordsGiveAnAnswer, ()) {
  const std::vector<std::string> known{"daemon",     "start", "logs",        "call",   "events", "--",
                                       "-",          "-n",    "-fn",         "--json", "--kind", "=",
                                       "--project=", "-5",    "--log-level", "",       "rpc"};
  const auto words = *rc::gen::container<std::vector<std::string>>(
      rc::gen::oneOf(rc::gen::elementOf(known), rc::gen::nonEmpty(rc::gen::string<std::string>())));
  const auto parsed = parse_command_line(pointers(words));
  if (const auto* error = std::get_if<UsageError>(&parsed)) {
    RC_ASSERT(!error->message.empty());
  }
}

TEST(CommandLine, ATaskMayBeItsNumber) {
  EXPECT_EQ(read({"task", "get", "3"}).arguments, std::vector<std::string>{"task-3"});
  EXPECT_EQ(read({"task", "wait", "task-3", "4"}).arguments, (std::vector<std::string>{"task-3", "task-4"}));
  EXPECT_EQ(read({"task", "submit", "3", "--after", "7"}).texts("after"), std::vector<std::string>{"task-7"});
  EXPECT_EQ(read({"task", "submit", "3"}).arguments, std::vector<std::string>{"3"}) << "a prompt is no task";
  EXPECT_EQ(read({"automation", "approve", "3"}).arguments, std::vector<std::string>{"3"});
}

TEST(CommandLine, APairHasANameAndAValue) {
  EXPECT_EQ(read({"task", "submit", "x", "--env", "A=", "--env", "B=c=d"}).texts("env"),
            (std::vector<std::string>{"A=", "B=c=d"}));
  for (const char* word : {"A", "=b", ""}) {
    EXPECT_NE(refused({"task", "submit", "x", "--env", word}).message.find("NAME=VALUE"), std::string::npos) << word;
  }
}

TEST(CommandLine, KnowsWhetherItEndsWithATasksCode) {
  EXPECT_TRUE(read({"task", "wait", "1"}).ends_with_task());
  EXPECT_TRUE(read({"task", "output", "1", "-f"}).ends_with_task());
  EXPECT_FALSE(read({"task", "output", "1"}).ends_with_task());
  EXPECT_FALSE(read({"daemon", "logs", "-f"}).ends_with_task());
  EXPECT_TRUE(refused({"task", "wait"}).ends_with_task);
  EXPECT_TRUE(refused({"task", "submit", "--nonsense", "-f", "x"}).ends_with_task);
  EXPECT_FALSE(refused({"task", "submit", "--nonsense", "x"}).ends_with_task);
  EXPECT_TRUE(refused({"--nonsense", "task", "wait", "1"}).ends_with_task) << "the fault comes before the command";
  EXPECT_TRUE(refused({"--project", "p", "--timeout", "soon", "task", "wait", "1"}).ends_with_task);
  EXPECT_TRUE(refused({"task", "--nonsense", "value", "wait", "1"}).ends_with_task);
  EXPECT_TRUE(refused({"--nonsense", "task", "submit", "-nf", "x"}).ends_with_task);
  EXPECT_FALSE(refused({"--nonsense", "task", "submit", "x", "--", "-f"}).ends_with_task) << "it is the prompt's";
  EXPECT_FALSE(refused({"--nonsense", "task", "list"}).ends_with_task);
  EXPECT_FALSE(refused({"nonsense", "wait"}).ends_with_task);
}

}  // namespace
}  // namespace duet::app
