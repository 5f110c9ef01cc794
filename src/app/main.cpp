#include <malloc.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstddef>
#include <exception>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <variant>

#include "app/cli/command_line.h"
#include "app/cli/help.h"
#include "app/commands/commands.h"
#include "app/project/failure.h"
#include "app/view/text_style.h"
#include "bridge/guard.h"
#include "duet/base/fd.h"
#include "task/nursery.h"

namespace duet::app {
namespace {

void print_error(const std::string& text) {
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text.data(), text.size());  // there is no better place
}

int refuse(const UsageError& error) {
  print_error(usage_error_text(error, TextStyle(colour_wanted(STDERR_FILENO, error.no_color))));
  return 1;
}

constexpr std::pair<std::string_view, int (*)(const CommandLine&)> command_functions[] = {
    {"version", [](const CommandLine&) { return run_version(); }},
    {"completion", run_completion},
    {"print", run_print},
    {"daemon stop", run_daemon_stop},
    {"daemon restart", run_daemon_restart},
    {"daemon status", run_daemon_status},
    {"daemon logs", run_daemon_logs},
    {"call", run_call},
    {"events", run_events},
    {"doctor", run_doctor},
    {"task submit", run_task_submit},
    {"task list", run_task_list},
    {"task get", run_task_get},
    {"task cancel", run_task_cancel},
    {"task stats", run_task_stats},
    {"task wait", run_task_wait},
    {"task output", run_task_output},
    {"automation status", run_automation_status},
    {"automation enable", run_automation_enable},
    {"automation disable", run_automation_disable},
    {"automation approve", run_automation_approve},
    {"chat send", run_chat_send},
    {"lsp check", run_lsp_check},
    {"lsp hover", run_lsp_hover},
    {"lsp definition", run_lsp_definition},
    {"lsp references", run_lsp_references},
    {"lsp completion", run_lsp_completion},
    {"lsp symbols", run_lsp_symbols},
    {"lsp diagnostics", run_lsp_diagnostics},
    {"lsp request", run_lsp_request},
    {"lsp list", run_lsp_list},
    {"lsp stop", run_lsp_stop},
};

// `rpc` has a Sentinel that takes these. One that comes when that is gone, while the program ends, changes nothing any
// more: editors send SIGTERM right behind `exit`.
void hold_back_ends() {
  sigset_t ends;
  sigemptyset(&ends);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&ends, signal);
  sigprocmask(SIG_BLOCK, &ends, nullptr);
}

int run(const CommandLine& line, const base::StandardDescriptors& descriptors) {
  const bool runs = line.command != nullptr && !line.help && !line.version;
  if (runs && line.path() == "rpc") {
    hold_back_ends();
    return run_rpc(line, descriptors);
  }
  if (runs && line.path() == "daemon start") return run_daemon_start(line);
  if (descriptors.was_closed(STDOUT_FILENO)) throw std::runtime_error("stdout is closed");
  if (line.version) return run_version();
  if (line.help || line.command == nullptr) {
    return print_text(help_text(line.command, TextStyle(colour_wanted(STDOUT_FILENO, line.no_color)), line.program));
  }
  for (const auto& [path, run_command] : command_functions) {
    if (line.path() == path) return run_command(line);
  }
  throw std::logic_error("nobody runs " + std::string(line.path()));
}

}  // namespace
}  // namespace duet::app

int main(int argc, char** argv) {
  using namespace duet;
  const std::string_view program = app::called_name(argc > 0 ? argv[0] : nullptr);
  try {
    const base::StandardDescriptors descriptors = base::ensure_standard_descriptors();
    signal(SIGCHLD, SIG_DFL);               // a parent that ignores it hands that on, and no child could be waited for
    prctl(PR_SET_NAME, "duet-rpc");         // what runs through a descriptor is otherwise named by its number
    mallopt(M_MMAP_THRESHOLD, 128 * 1024);  // large messages go back to the system at once
    if (argc == 2 && argv[1] == task::nursery_argument) return task::run_nursery();
    if (argc > 2 && argv[1] == bridge::guard_argument) return bridge::run_guard({argv + 2, argv + argc});
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
