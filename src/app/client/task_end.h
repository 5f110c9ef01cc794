#pragma once

#include <string>
#include <string_view>

#include <boost/json/object.hpp>

#include "app/cli/command_line.h"

namespace duet::app {

/// The words of a PROMPT or a MESSAGE, joined by blanks; a single `-` reads it from stdin. Throws Failure if it says
/// nothing, or is not UTF-8, which JSON has to be.
std::string joined_words(const CommandLine& line);

/// For people, beside the output on stdout: to stderr.
void print_aside(std::string_view text);

/// Says why a task that was followed did not succeed, and gives the exit code.
int end_with(const boost::json::object& record, const CommandLine& line);

}  // namespace duet::app
