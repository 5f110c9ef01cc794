#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "app/cli/command_table.h"
#include "duet/base/log_line.h"

namespace duet::app {

/// What the user asked for. Every value is as the command table wants it: the accessors need no check, and asking for
/// an option that the command does not have is a mistake of the program.
struct CommandLine {
  const CommandEntry* command = nullptr;  // none was given
  std::vector<std::string> arguments = {};
  std::string_view program = program_name;  // what it was called by
  bool help = false;
  bool version = false;
  bool no_color = false;
  std::optional<base::Level> log_level = {};
  std::chrono::nanoseconds read_timeout = std::chrono::seconds(30);

  struct Given {
    const OptionEntry* option;
    std::string value;  // of a choice, as the table spells it
  };
  std::vector<Given> options = {};  // in the order they came

  /// `task submit`, or an empty text.
  std::string_view path() const { return command == nullptr ? std::string_view() : command->path; }
  bool flag(std::string_view name) const { return last(name) != nullptr; }
  std::optional<std::string> text(std::string_view name) const;
  std::vector<std::string> texts(std::string_view name) const;
  std::optional<std::int64_t> number(std::string_view name) const;
  std::optional<double> decimal(std::string_view name) const;
  std::optional<std::uint64_t> bytes(std::string_view name) const;
  std::optional<std::chrono::milliseconds> duration(std::string_view name) const;
  /// Whether it exits with the code of a task, so that its own codes have to be others.
  bool ends_with_task() const;

 private:
  const Given* last(std::string_view name) const;
};

/// What is wrong with a command line.
struct UsageError {
  std::string message;
  std::string suggestion = {};            // what was probably meant; may be empty
  const CommandEntry* command = nullptr;  // whose usage to show; none: the program's
  bool no_color = false;
  std::string_view program = program_name;
  bool ends_with_task = false;  // as the command line would
};

/// Reads the arguments, without the program's name, by the entries of the command table. Never throws on bad usage.
///
/// Global options count wherever they stand, and so do those of every client; a command's own come after it. What
/// follows `--` is no option. An option takes the next word as its value unless that looks like another option; a
/// number may be negative. Letters may be put together, as in `-fn5`.
std::variant<CommandLine, UsageError> parse_command_line(std::span<const char* const> arguments,
                                                         std::string_view program = program_name);

}  // namespace duet::app
