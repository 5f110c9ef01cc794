#pragma once

#include <string>
#include <string_view>

#include "app/cli/command_line.h"
#include "duet/base/fd.h"

namespace duet::app {

class DaemonClient;

/// What each command does. They return the exit code; a start that fails throws.
/// Starts the project's daemon first if that is wanted, by --start or the user's settings, and none runs. Throws
/// Failure if the command cannot work where the daemon is: see far_place().
void start_if_wanted(const CommandLine& line);
/// Tells the user what of the project does not count for want of trust, with the cure.
void tell_untrusted(DaemonClient& daemon);
/// The same line; empty: all of it counts.
std::string untrusted_note(DaemonClient& daemon);
int run_rpc(const CommandLine& line, const base::StandardDescriptors& descriptors);
int run_mcp(const CommandLine& line, const base::StandardDescriptors& descriptors);
/// With --print-config.
int print_mcp_config(const CommandLine& line);
int run_version();
int run_completion(const CommandLine& line);
int run_candidates(const CommandLine& line);
int run_print(const CommandLine& line);
int run_daemon_start(const CommandLine& line);
int run_daemon_stop(const CommandLine& line);
int run_daemon_restart(const CommandLine& line);
int run_daemon_status(const CommandLine& line);
int run_daemon_reload(const CommandLine& line);
int run_daemon_logs(const CommandLine& line);
int run_call(const CommandLine& line);
int run_events(const CommandLine& line);
int run_connect(const CommandLine& line);
int run_dashboard(const CommandLine& line);
int run_token_new(const CommandLine& line);
int run_token_list(const CommandLine& line);
int run_token_revoke(const CommandLine& line);
int run_cert_init(const CommandLine& line);
int run_cert_server(const CommandLine& line);
int run_cert_client(const CommandLine& line);
int run_cert_list(const CommandLine& line);
int run_cert_show(const CommandLine& line);
int run_cert_revoke(const CommandLine& line);
int run_cluster_init(const CommandLine& line);
int run_cluster_migrate(const CommandLine& line);
int run_cluster_adopt(const CommandLine& line);
int run_cluster_status(const CommandLine& line);
int run_cluster_set(const CommandLine& line);
int run_cluster_drain(const CommandLine& line);
int run_cluster_undrain(const CommandLine& line);
int run_cluster_forget(const CommandLine& line);
int run_trust(const CommandLine& line);
int run_top(const CommandLine& line);
int run_doctor(const CommandLine& line);
int run_task_submit(const CommandLine& line);
int run_task_list(const CommandLine& line);
int run_task_get(const CommandLine& line);
int run_task_cancel(const CommandLine& line);
int run_task_stats(const CommandLine& line);
int run_task_wait(const CommandLine& line);
int run_task_output(const CommandLine& line);
int run_task_hold(const CommandLine& line);
int run_task_release(const CommandLine& line);
int run_task_restart(const CommandLine& line);
int run_task_edit(const CommandLine& line);
int run_task_remove(const CommandLine& line);
int run_task_clean(const CommandLine& line);
int run_task_explain(const CommandLine& line);
int run_queue_pause(const CommandLine& line);
int run_queue_resume(const CommandLine& line);
int run_queue_status(const CommandLine& line);
int run_agent_list(const CommandLine& line);
int run_agent_release(const CommandLine& line);
int run_automation_status(const CommandLine& line);
int run_automation_enable(const CommandLine& line);
int run_automation_disable(const CommandLine& line);
int run_automation_approve(const CommandLine& line);
int run_automation_deny(const CommandLine& line);
int run_automation_test(const CommandLine& line);
int run_automation_fire(const CommandLine& line);
int run_automation_history(const CommandLine& line);
int run_chat_send(const CommandLine& line);
int run_lsp_check(const CommandLine& line);
int run_lsp_hover(const CommandLine& line);
int run_lsp_definition(const CommandLine& line);
int run_lsp_references(const CommandLine& line);
int run_lsp_completion(const CommandLine& line);
int run_lsp_symbols(const CommandLine& line);
int run_lsp_find(const CommandLine& line);
int run_lsp_diagnostics(const CommandLine& line);
int run_lsp_request(const CommandLine& line);
int run_lsp_list(const CommandLine& line);
int run_lsp_stop(const CommandLine& line);

/// The PARAMS of a command: JSON text, from stdin if it is `-`. Throws Failure if it cannot be params.
std::string params_argument(const std::string& given);

/// All of stdin. Throws Failure if it is more than a message may have.
std::string read_input();

/// Writes text to stdout and returns 0; throws std::system_error if not all of it can be written.
int print_text(std::string_view text);

}  // namespace duet::app
