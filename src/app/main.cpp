#include <malloc.h>
#include <unistd.h>

#include <cstddef>
#include <exception>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <variant>

#include "app/command_line.h"
#include "app/commands/commands.h"
#include "app/failure.h"
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
  const bool runs = line.command != nullptr && !line.help && !line.version;
  if (runs && line.path() == "rpc") return run_rpc(line, descriptors);
  if (runs && line.path() == "daemon start") return run_daemon_start(line);
  if (descriptors.was_closed(STDOUT_FILENO)) throw std::runtime_error("stdout is closed");
  if (line.version) return run_version();
  if (line.help || line.command == nullptr) {
    return print_text(help_text(line.command, TextStyle(colour_wanted(STDOUT_FILENO, line.no_color)), line.program));
  }
  if (line.path() == "version") return run_version();
  if (line.path() == "completion") return run_completion(line);
  if (line.path() == "print") return run_print(line);
  if (line.path() == "daemon stop") return run_daemon_stop(line);
  if (line.path() == "daemon restart") return run_daemon_restart(line);
  if (line.path() == "daemon status") return run_daemon_status(line);
  if (line.path() == "daemon logs") return run_daemon_logs(line);
  if (line.path() == "call") return run_call(line);
  if (line.path() == "events") return run_events(line);
  throw std::logic_error("nobody runs " + std::string(line.path()));
}

}  // namespace
}  // namespace duet::app

int main(int argc, char** argv) {
  using namespace duet;
  const std::string_view program = app::called_name(argc > 0 ? argv[0] : nullptr);
  try {
    const base::StandardDescriptors descriptors = base::ensure_standard_descriptors();
    mallopt(M_MMAP_THRESHOLD, 128 * 1024);  // large messages go back to the system at once
    const std::span<const char* const> arguments(argv, static_cast<std::size_t>(argc));
    const auto parsed = app::parse_command_line(arguments.subspan(argc > 0 ? 1 : 0), program);
    if (const auto* error = std::get_if<app::UsageError>(&parsed)) return app::refuse(*error);
    return app::run(std::get<app::CommandLine>(parsed), descriptors);
  } catch (const app::Failure& failure) {
    app::print_error(std::string(program) + ": " + failure.what() + "\n");
    return failure.code();
  } catch (const std::exception& error) {
    app::print_error(std::string(program) + ": " + error.what() + "\n");
    return 1;
  }
}
