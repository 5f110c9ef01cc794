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
#include "app/top/terminal_guard.h"
#include "app/view/display_text.h"
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
  return error.ends_with_task ? exit_code::follower_failed : exit_code::failed;
}

constexpr std::pair<std::string_view, int (*)(const CommandLine&)> command_functions[] = {
    {"version", [](const CommandLine&) { return run_version(); }},
    {"completion", run_completion},
    {"candidates", run_candidates},
    {"print", run_print},
    {"daemon stop", run_daemon_stop},
    {"daemon restart", run_daemon_restart},
    {"daemon status", run_daemon_status},
    {"daemon reload", run_daemon_reload},
    {"daemon logs", run_daemon_logs},
    {"call", run_call},
    {"events", run_events},
    {"connect", run_connect},
    {"mcp", print_mcp_config},
    {"top", run_top},
    {"doctor", run_doctor},
    {"dashboard", run_dashboard},
    {"token new", run_token_new},
    {"token list", run_token_list},
    {"token revoke", run_token_revoke},
    {"cert init", run_cert_init},
    {"cert server", run_cert_server},
    {"cert client", run_cert_client},
    {"cert list", run_cert_list},
    {"cert show", run_cert_show},
    {"cert revoke", run_cert_revoke},
    {"cluster init", run_cluster_init},
    {"cluster migrate", run_cluster_migrate},
    {"cluster adopt", run_cluster_adopt},
    {"cluster status", run_cluster_status},
    {"cluster set", run_cluster_set},
    {"cluster drain", run_cluster_drain},
    {"cluster undrain", run_cluster_undrain},
    {"cluster forget", run_cluster_forget},
    {"trust", run_trust},
    {"task submit", run_task_submit},
    {"task list", run_task_list},
    {"task get", run_task_get},
    {"task cancel", run_task_cancel},
    {"task stats", run_task_stats},
    {"task wait", run_task_wait},
    {"task output", run_task_output},
    {"task hold", run_task_hold},
    {"task release", run_task_release},
    {"task restart", run_task_restart},
    {"task edit", run_task_edit},
    {"task remove", run_task_remove},
    {"task clean", run_task_clean},
    {"task explain", run_task_explain},
    {"queue pause", run_queue_pause},
    {"queue resume", run_queue_resume},
    {"queue status", run_queue_status},
    {"agent list", run_agent_list},
    {"agent release", run_agent_release},
    {"automation status", run_automation_status},
    {"automation enable", run_automation_enable},
    {"automation disable", run_automation_disable},
    {"automation approve", run_automation_approve},
    {"automation deny", run_automation_deny},
    {"automation test", run_automation_test},
    {"automation fire", run_automation_fire},
    {"automation history", run_automation_history},
    {"chat send", run_chat_send},
    {"lsp check", run_lsp_check},
    {"lsp hover", run_lsp_hover},
    {"lsp definition", run_lsp_definition},
    {"lsp references", run_lsp_references},
    {"lsp completion", run_lsp_completion},
    {"lsp symbols", run_lsp_symbols},
    {"lsp find", run_lsp_find},
    {"lsp diagnostics", run_lsp_diagnostics},
    {"lsp request", run_lsp_request},
    {"lsp list", run_lsp_list},
    {"lsp stop", run_lsp_stop},
};

void need_stdout(const base::StandardDescriptors& descriptors) {
  if (descriptors.was_closed(STDOUT_FILENO)) throw std::runtime_error("stdout is closed");
}

int run_function(const CommandLine& line, const base::StandardDescriptors& descriptors) {
  need_stdout(descriptors);
  start_if_wanted(line);
  for (const auto& [path, function] : command_functions) {
    if (line.path() == path) return function(line);
  }
  throw std::logic_error("nobody runs " + std::string(line.path()));
}

// Where a task's exit code is expected, what the command itself has to say must not look like one.
int run_command(const CommandLine& line, const base::StandardDescriptors& descriptors) {
  if (!line.ends_with_task()) return run_function(line, descriptors);
  try {
    return run_function(line, descriptors);
  } catch (const Failure& failure) {
    const bool timed_out = failure.code() == exit_code::no_answer;
    throw Failure(failure.what(), timed_out ? exit_code::follower_timed_out : exit_code::follower_failed);
  } catch (const std::exception& error) {
    throw Failure(error.what(), exit_code::follower_failed);
  }
}

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
  if (runs && line.path() == "mcp" && !line.text("print-config")) {
    hold_back_ends();
    return run_mcp(line, descriptors);
  }
  if (runs && line.path() == "daemon start") return run_daemon_start(line);
  if (runs) return run_command(line, descriptors);
  need_stdout(descriptors);
  if (line.version) return run_version();
  return print_text(help_text(line.command, TextStyle(colour_wanted(STDOUT_FILENO, line.no_color)), line.program));
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
    if (argc == 2 && argv[1] == app::top::guard_argument) return app::top::run_terminal_guard();
    const std::span<const char* const> arguments(argv, static_cast<std::size_t>(argc));
    const auto parsed = app::parse_command_line(arguments.subspan(argc > 0 ? 1 : 0), program);
    if (const auto* error = std::get_if<app::UsageError>(&parsed)) return app::refuse(*error);
    return app::run(std::get<app::CommandLine>(parsed), descriptors);
  } catch (const app::Failure& failure) {
    app::print_error(std::string(program) + ": " + app::harmless_lines(failure.what()) + "\n");
    return failure.code();
  } catch (const std::exception& error) {
    app::print_error(std::string(program) + ": " + app::harmless_lines(error.what()) + "\n");
    return 1;
  }
}
