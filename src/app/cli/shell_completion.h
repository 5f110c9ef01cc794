#pragma once

#include <string>
#include <string_view>

#include "app/cli/command_table.h"

namespace duet::app {

/// A script that completes the program's commands, options and their values, made from the command table.
/// `shell` is bash, zsh or fish; `program` is the name that it completes.
std::string completion_script(std::string_view shell, std::string_view program = program_name);

}  // namespace duet::app
