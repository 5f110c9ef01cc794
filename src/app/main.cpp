#include <malloc.h>
#include <unistd.h>

#include <cstddef>
#include <exception>
#include <span>
#include <stdexcept>
#include <string>
#include <variant>

#include "app/command_line.h"
#include "app/commands/commands.h"
#include "app/help.h"
#include "app/text_style.h"
#include "duet/base/fd.h"

namespace duet::app {
namespace {

void print_error(const std::string& text) {
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text.data(), text.size());  // there is no better place
}

int refuse(const UsageError& error) {
  print_error(usage_error_text(error, TextStyle(colour_wanted(STDERR_FILENO, error.no_color))));
  return 1;
}

int run(const CommandLine& line, const base::StandardDescriptors& descriptors) {
  const bool serves = line.command != nullptr && line.command->name == "rpc" && !line.help && !line.version;
  if (serves) return run_rpc(line, descriptors);
  if (descriptors.was_closed(STDOUT_FILENO)) throw std::runtime_error("stdout is closed");
  if (line.version) return run_version();
  if (line.help || line.command == nullptr) {
    return print_text(help_text(line.command, TextStyle(colour_wanted(STDOUT_FILENO, line.no_color))));
  }
  if (line.command->name == "version") return run_version();
  if (line.command->name == "completion") return run_completion(line);
  return run_print(line);
}

}  // namespace
}  // namespace duet::app

int main(int argc, char** argv) {
  using namespace duet;
  try {
    const base::StandardDescriptors descriptors = base::ensure_standard_descriptors();
    mallopt(M_MMAP_THRESHOLD, 128 * 1024);  // large messages go back to the system at once
    const std::span<const char* const> arguments(argv, static_cast<std::size_t>(argc));
    const auto parsed = app::parse_command_line(arguments.subspan(argc > 0 ? 1 : 0));
    if (const auto* error = std::get_if<app::UsageError>(&parsed)) return app::refuse(*error);
    return app::run(std::get<app::CommandLine>(parsed), descriptors);
  } catch (const std::exception& error) {
    app::print_error(std::string("duet-rpc: ") + error.what() + "\n");
    return 1;
  }
}
