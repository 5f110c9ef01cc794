#include "app/command_line.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <system_error>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "app/near_miss.h"

namespace duet::app {
namespace {

constexpr double longest_timeout = 1e6;  // seconds; far beyond any use, and safe to calculate with

std::string long_name(const OptionEntry& option) { return "--" + std::string(option.name); }

std::string in_quotes(std::string_view text) { return "'" + std::string(text) + "'"; }

std::string one_of(std::span<const std::string_view> choices) {
  std::string out;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    if (i > 0) out += i + 1 == choices.size() ? " or " : ", ";
    out += choices[i];
  }
  return out;
}

void add_options(CLI::App& app, std::span<const OptionEntry> options) {
  for (const OptionEntry& option : options) {
    std::string names = long_name(option);
    if (option.letter != '\0') names += std::string(",-") + option.letter;
    if (option.value.empty()) {
      app.add_flag(names)->disable_flag_override();
    } else {
      app.add_option(names)->expected(1)->take_last();
    }
  }
}

void add_command(CLI::App& app, const CommandEntry& command) {
  CLI::App& added = *app.add_subcommand(std::string(command.name));
  added.set_help_flag();
  added.fallthrough();
  add_options(added, command.options);
  if (!command.argument.name.empty()) added.add_option(std::string(command.argument.name))->expected(1);
}

std::vector<std::string_view> names_of_commands() {
  std::vector<std::string_view> names;
  for (const CommandEntry& command : commands()) {
    if (command.listed) names.push_back(command.name);
  }
  return names;
}

std::string meant_option(std::string_view word, const CommandEntry* command) {
  word.remove_prefix(std::min(word.find_first_not_of('-'), word.size()));
  std::vector<std::string_view> names;
  for (const OptionEntry& option : global_options()) {
    if (word.size() == 1 && std::tolower(word.front()) == std::tolower(option.letter)) return long_name(option);
    names.push_back(option.name);
  }
  if (command != nullptr) {
    for (const OptionEntry& option : command->options) names.push_back(option.name);
  }
  const std::string_view found = near_miss(word, names);
  return found.empty() ? std::string() : "--" + std::string(found);
}

// CLI11's own texts speak of types and counts; the option's name is what stands before the colon or the blank.
std::string refusal(const CLI::ParseError& error) {
  std::string text = error.what();
  const std::string name = text.substr(0, text.find_first_of(": "));
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) == nullptr) return text;
  if (text.find("flag override") == std::string::npos) return "option " + in_quotes(name) + " needs a value";
  return "option " + in_quotes("--" + name) + " takes no value";
}

UsageError unexpected(std::string_view word, const CommandEntry* command) {
  if (word.size() > 1 && word.starts_with('-')) {
    word = word.substr(0, word.find('='));
    return {"unknown option " + in_quotes(word), meant_option(word, command), command};
  }
  if (command != nullptr) return {"unexpected argument " + in_quotes(word), {}, command};
  const std::string_view meant = near_miss(word, names_of_commands());
  return {"unknown command " + in_quotes(word), meant.empty() ? meant_option(word, nullptr) : std::string(meant)};
}

// For a command line that CLI11 did not read to its end.
bool asks_for_no_color(std::span<const char* const> arguments) {
  return std::ranges::any_of(arguments, [](std::string_view word) { return word == "-n" || word == "--no-color"; });
}

/// Reads the values that CLI11 found into a CommandLine, and stops at the first that is wrong.
class Reader {
 public:
  explicit Reader(CLI::App& app) : app_(app) {
    for (const CLI::App* chosen : app_.get_subcommands()) {
      result_.command = find_command(chosen->get_name());
      command_ = app_.get_subcommand(chosen->get_name());
    }
  }

  std::variant<CommandLine, UsageError> read() {
    result_.help = app_.get_option("--help")->count() > 0;
    result_.version = app_.get_option("--version")->count() > 0;
    result_.no_color = app_.get_option("--no-color")->count() > 0;
    const std::vector<std::string> extras = app_.remaining(true);
    if (!extras.empty()) error_ = unexpected(extras.front(), result_.command);
    if (!error_) read_level();
    if (!error_ && command_ != nullptr) read_timeout();
    if (!error_ && command_ != nullptr && !result_.help && !result_.version) read_argument();
    if (!error_) return std::move(result_);
    error_->no_color = result_.no_color;
    return std::move(*error_);
  }

 private:
  void fail(std::string message, std::string_view suggestion = {}) {
    error_ = UsageError{std::move(message), std::string(suggestion), result_.command};
  }

  void read_level() {
    const CLI::Option& option = *app_.get_option("--log-level");
    if (option.count() == 0) return;
    const std::string word = option.results().back();
    result_.log_level = base::parse_level(word);
    if (result_.log_level) return;
    const std::span<const std::string_view> names = level_names();
    fail("bad log level " + in_quotes(word) + ": it is one of " + one_of(names),
         near_miss(word, {names.begin(), names.end()}));
  }

  void read_timeout() {
    const CLI::Option* option = command_->get_option_no_throw("--read-timeout");
    if (option == nullptr || option->count() == 0) return;
    const std::string word = option->results().back();
    double seconds = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), seconds);
    const bool whole = error == std::errc() && end == word.data() + word.size();
    if (!whole || !std::isfinite(seconds) || seconds <= 0 || seconds > longest_timeout) {
      return fail("bad read timeout " + in_quotes(word) + ": it is a number of seconds, above 0 and up to 1000000");
    }
    result_.read_timeout = std::chrono::ceil<std::chrono::nanoseconds>(std::chrono::duration<double>(seconds));
  }

  void read_argument() {
    const ArgumentEntry& argument = result_.command->argument;
    if (argument.name.empty()) return;
    const CLI::Option& option = *command_->get_option(std::string(argument.name));
    const std::string name(argument.name);
    if (option.count() == 0) return fail(name + " is missing: " + one_of(argument.choices));
    result_.argument = option.results().back();
    if (std::ranges::find(argument.choices, result_.argument) != argument.choices.end()) return;
    fail("bad " + name + " " + in_quotes(result_.argument) + ": it is one of " + one_of(argument.choices),
         near_miss(result_.argument, {argument.choices.begin(), argument.choices.end()}));
  }

  CLI::App& app_;
  CLI::App* command_ = nullptr;
  CommandLine result_;
  std::optional<UsageError> error_;
};

}  // namespace

std::variant<CommandLine, UsageError> parse_command_line(std::span<const char* const> arguments) {
  CLI::App app{"", std::string(program_name)};
  app.set_help_flag();
  app.allow_extras();
  app.require_subcommand(0, 1);
  add_options(app, global_options());
  for (const CommandEntry& command : commands()) add_command(app, command);
  try {
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));  // CLI11 wants the last one first
  } catch (const CLI::ParseError& error) {
    const std::vector<CLI::App*> chosen = app.get_subcommands();
    const CommandEntry* const command = chosen.empty() ? nullptr : find_command(chosen.front()->get_name());
    return UsageError{refusal(error), {}, command, asks_for_no_color(arguments)};
  }
  return Reader(app).read();
}

}  // namespace duet::app
