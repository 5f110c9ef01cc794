#pragma once

#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <variant>

#include "app/command_table.h"
#include "duet/base/log_line.h"

namespace duet::app {

/// What the user asked for.
struct CommandLine {
  const CommandEntry* command = nullptr;  // none was given
  std::string argument;                   // of the command, one of its choices
  bool help = false;
  bool version = false;
  bool no_color = false;
  std::optional<base::Level> log_level;
  std::chrono::nanoseconds read_timeout = std::chrono::seconds(30);
};

/// What is wrong with a command line.
struct UsageError {
  std::string message;
  std::string suggestion;                 // what was probably meant; may be empty
  const CommandEntry* command = nullptr;  // whose usage to show; none: the program's
  bool no_color = false;
};

/// Reads the arguments, without the program's name, by the entries of the command table. Never throws on bad usage.
/// Global options count wherever they stand; of an option given twice the last one counts.
std::variant<CommandLine, UsageError> parse_command_line(std::span<const char* const> arguments);

}  // namespace duet::app
