#pragma once

#include <string>

#include "app/command_line.h"
#include "app/text_style.h"

namespace duet::app {

/// The help of a command, or of the program if there is none.
std::string help_text(const CommandEntry* command, const TextStyle& style);

/// What is wrong, what was probably meant, and the usage.
std::string usage_error_text(const UsageError& error, const TextStyle& style);

/// `duet-rpc rpc [OPTIONS]`
std::string usage_of(const CommandEntry* command);
/// `-n, --no-color`, with the blanks of a missing letter.
std::string option_label(const OptionEntry& option);

}  // namespace duet::app
