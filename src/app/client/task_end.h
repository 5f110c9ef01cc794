#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <boost/json/object.hpp>

#include "app/cli/command_line.h"

namespace duet::app {

class DaemonClient;

/// The words of a PROMPT or a MESSAGE, joined by blanks; a single `-` reads it from stdin. Throws Failure if it says
/// nothing, or is not UTF-8, which JSON has to be.
std::string joined_words(const CommandLine& line);

/// For people, beside the output on stdout: to stderr.
void print_aside(std::string_view text);

/// Says why a task that was followed did not succeed, and gives the exit code.
int end_with(const boost::json::object& record, const CommandLine& line);

/// Says the id of a new task on stderr, prints its output from byte `from` on until it ends, and gives its exit code.
int follow_new(DaemonClient& daemon, const CommandLine& line, const std::string& id, std::uint64_t from);

/// Waits for tasks, prints how each ended, and gives the first exit code that is not 0.
int wait_for(DaemonClient& daemon, const CommandLine& line, const std::vector<std::string>& ids);

/// Prints what is to be told of a new task: its id, or with --follow its output, from byte `from` on, and its end.
int answer_with(DaemonClient& daemon, const CommandLine& line, const std::string& result, std::uint64_t from = 0);

}  // namespace duet::app
