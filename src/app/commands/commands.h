#pragma once

#include "app/command_line.h"
#include "duet/base/fd.h"

namespace duet::app {

/// What each command does. They return the exit code; a start that fails throws.
int run_rpc(const CommandLine& line, const base::StandardDescriptors& descriptors);
int run_version();
int run_completion(const CommandLine& line);
int run_print(const CommandLine& line);

/// Writes text to stdout and returns 0; throws std::system_error if not all of it can be written.
int print_text(std::string_view text);

}  // namespace duet::app
