#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "app/cli/command_line.h"
#include "app/view/text_style.h"

namespace duet::app {

/// The help of a command, or of the program if there is none; `program` is the name it was called by.
std::string help_text(const CommandEntry* command, const TextStyle& style, std::string_view program = program_name);

/// What is wrong, what was probably meant, and the usage.
std::string usage_error_text(const UsageError& error, const TextStyle& style);

/// The files that a user has to do with.
std::span<const TermEntry> known_files();

std::vector<std::string_view> paragraphs(std::string_view details);

/// `duet-rpc task submit PROMPT... [OPTIONS]`
std::string usage_of(const CommandEntry* command, std::string_view program = program_name);
/// `-n, --no-color`, with the blanks of a missing letter. A letter that means something else to `command` is missing.
std::string option_label(const OptionEntry& option, const CommandEntry* command = nullptr);

}  // namespace duet::app
