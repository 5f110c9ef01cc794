#pragma once

#include <string>
#include <string_view>

namespace duet::app {

/// A script that completes the program's commands, options and their values, made from the command table.
/// `shell` is bash, zsh or fish.
std::string completion_script(std::string_view shell);

}  // namespace duet::app
