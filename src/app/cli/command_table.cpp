#include "app/cli/command_table.h"

#include <algorithm>

#include "duet/base/log_line.h"

namespace duet::app {
namespace {

using Text = std::string_view;
using Count = ArgumentEntry::Count;

constexpr Text shells[] = {"bash", "zsh", "fish"};
constexpr Text pages[] = {"manual", "methods"};
constexpr Text states[] = {"queued", "running", "completed", "failed", "cancelled"};

constexpr OptionEntry everywhere[] = {
    {.letter = 'h', .name = "help", .summary = "Show help, of the command if one is given"},
    {.letter = 'V', .name = "version", .summary = "Print the version and nothing else"},
    {.letter = 'n', .name = "no-color", .summary = "No colours, not even on a terminal"},
    {.name = "log-level",
     .value = "LEVEL",
     .summary = "debug, info, warn or error, in any case",
     .choices = base::level_names},
};

constexpr OptionEntry of_clients[] = {
    {.name = "json", .summary = "Print the result as the daemon gave it"},
    {.name = "project",
     .value = "DIR",
     .summary = "The project's folder; else the nearest one upward with .aiwg or .git",
     .kind = ValueKind::folder},
    {.name = "socket",
     .value = "PATH",
     .summary = "The daemon's socket, if it is not in .aiwg/daemon of the project",
     .kind = ValueKind::file},
    {.name = "timeout",
     .value = "TIME",
     .summary = "How long to wait for the daemon: 500ms, 10s, 5m, 1h; a bare number is seconds; 30s if not given, "
                "45s for lsp, no limit for what waits or follows",
     .kind = ValueKind::duration,
     .least = 1},
    {.name = "trace", .summary = "Show every message, in and out, on stderr"},
};

// ---- the program itself

constexpr OptionEntry rpc_options[] = {
    {.name = "read-timeout",
     .value = "SECONDS",
     .summary = "Drop a message that is not complete so long after its first byte; 30 if not given",
     .kind = ValueKind::duration,
     .least = 1},
};

constexpr ArgumentEntry shell_argument[] = {{.name = "SHELL", .choices = shells}};
constexpr ArgumentEntry page_argument[] = {{.name = "PAGE", .choices = pages}};

constexpr CommandEntry program_commands[] = {
    {.path = "rpc",
     .summary = "Serve JSON-RPC on stdin and stdout",
     .details =
         "Answers JSON-RPC 2.0 requests on stdin and stdout, framed as in the Language Server Protocol, until "
         "stdin ends, a client calls shutdown, or SIGINT, SIGTERM or SIGHUP arrives. Then it finishes the request "
         "it is working on and ends, within 2 seconds in any case.\n"
         "The log goes to stderr, and there it has warnings and errors only, because some clients mix stderr into "
         "what they read. With DUET_RPC_LOG it goes to a file, from level info up. --log-level changes either.",
     .options = rpc_options},
    {.path = "version",
     .summary = "Print the version",
     .details = "Prints the version and nothing else, as --version does."},
    {.path = "completion",
     .summary = "Print a completion script for bash, zsh or fish",
     .details =
         "Prints a script that completes the commands and options of duet-rpc in SHELL. Installing duet-rpc puts "
         "these scripts where the shells look for them.\n"
         "To try it in bash: source <(duet-rpc completion bash)",
     .arguments = shell_argument},
    {.path = "print",
     .summary = "Print generated documentation",
     .details = "Prints a page that is made from the program's own tables: the manual page, or docs/methods.md.",
     .arguments = page_argument,
     .listed = false},
};

// ---- the project's daemon

constexpr OptionEntry start_options[] = {
    {.name = "foreground", .summary = "Stay in the foreground and log to stderr, or to the file of DUET_RPC_LOG"},
};
constexpr OptionEntry stop_options[] = {
    {.name = "force", .summary = "End running tasks now instead of giving them 15 seconds"},
};
constexpr OptionEntry logs_options[] = {
    {.letter = 'n',
     .name = "lines",
     .value = "N",
     .summary = "Begin with the last N lines; 10 if not given",
     .kind = ValueKind::number,
     .least = 0},
    {.letter = 'f', .name = "follow", .summary = "Go on with what is logged from now on, until ^C"},
};
constexpr OptionEntry events_options[] = {
    {.name = "since",
     .value = "SEQ",
     .summary = "Begin with the event of that number, as far as it is still known",
     .kind = ValueKind::number,
     .least = 0},
    {.name = "kind",
     .value = "K",
     .summary = "Only this kind, such as taskFailed; may be repeated",
     .repeatable = true},
};

constexpr ArgumentEntry call_arguments[] = {{.name = "METHOD"}, {.name = "PARAMS", .count = Count::optional}};

constexpr CommandEntry daemon_commands[] = {
    {.path = "daemon",
     .summary = "Start, stop and watch the daemon",
     .details = "Each project has one daemon of its own. It keeps the project's tasks and answers on a socket in "
                ".aiwg/daemon that only its owner can open.",
     .group = true},
    {.path = "daemon start",
     .summary = "Start the daemon",
     .details = "Starts the project's daemon and returns when it answers. If one is running already, that is an error "
                "which names its process.",
     .options = start_options,
     .client = true},
    {.path = "daemon stop",
     .summary = "Stop the daemon",
     .details =
         "Stops the project's daemon. No new work is accepted, running tasks get 15 seconds to finish before they "
         "are ended, and queued tasks stay queued for the next start.",
     .options = stop_options,
     .client = true},
    {.path = "daemon restart",
     .summary = "Stop the daemon and start it again",
     .details = "Stops the project's daemon and starts it again, or starts it if there is none. Running tasks go on.",
     .client = true},
    {.path = "daemon status",
     .summary = "Show how the daemon is",
     .details = "Shows whether the project's daemon is well, what it is doing, and what is wrong.",
     .client = true},
    {.path = "daemon logs",
     .summary = "Show the daemon's log",
     .details = "Shows the end of the log of the project's daemon, running or not; with --json an object a line.",
     .options = logs_options,
     .client = true},
    {.path = "call",
     .summary = "Call any method of the daemon",
     .details =
         "Calls a method of the daemon and prints its result, as it came, on one line. PARAMS is a JSON object or "
         "array; - reads it from stdin. listMethods and describeMethods tell what can be called.",
     .arguments = call_arguments,
     .client = true},
    {.path = "events",
     .summary = "Print what happens in the daemon",
     .details = "Prints what happens in the daemon, one JSON-RPC notification a line, until ^C.",
     .options = events_options,
     .client = true},
};

// ---- tasks

constexpr OptionEntry agent_option{
    .name = "agent", .value = "A", .summary = "Which agent does it; else the default one"};
constexpr OptionEntry follow_option{
    .letter = 'f', .name = "follow", .summary = "Print the output as it comes, until the task ends"};

constexpr OptionEntry submit_options[] = {
    agent_option,
    {.name = "priority", .value = "N", .summary = "Higher runs first; 0 if not given", .kind = ValueKind::number},
    {.name = "key", .value = "K", .summary = "Submitting the same key again gives the same task"},
    {.name = "time-limit",
     .value = "TIME",
     .summary = "End the task when it has run so long: 90s, 5m, 1h; a bare number is seconds",
     .kind = ValueKind::duration,
     .least = 1},
    {.name = "after", .value = "ID", .summary = "Wait for that task to succeed; may be repeated", .repeatable = true},
    follow_option,
};
constexpr OptionEntry list_options[] = {
    {.name = "state",
     .value = "S",
     .summary = "Only queued, running, completed, failed or cancelled ones",
     .choices = states},
    {.name = "limit",
     .value = "N",
     .summary = "At most so many; 20 if not given",
     .kind = ValueKind::number,
     .least = 1,
     .most = 10'000},
};
constexpr OptionEntry output_options[] = {follow_option};

constexpr ArgumentEntry prompt_argument[] = {{.name = "PROMPT", .count = Count::many}};
constexpr ArgumentEntry id_argument[] = {{.name = "ID"}};
constexpr ArgumentEntry ids_argument[] = {{.name = "ID", .count = Count::many}};

constexpr CommandEntry task_commands[] = {
    {.path = "task",
     .summary = "Submit, watch and cancel tasks",
     .details = "Tasks are kept by the daemon. Once accepted they survive its end and its start; a running one goes on "
                "meanwhile.",
     .group = true},
    {.path = "task submit",
     .summary = "Hand a task to an agent",
     .details =
         "Hands a task to an agent and prints its id. The words of PROMPT are joined by blanks; after -- they may "
         "begin with a hyphen, and a single - reads them from stdin. The task works in the current folder, with the "
         "current PATH.\n"
         "With --follow the output is printed as it comes, and the exit code is the task's own.",
     .arguments = prompt_argument,
     .options = submit_options,
     .client = true},
    {.path = "task list",
     .summary = "Show the newest tasks",
     .details = "Shows the newest tasks.",
     .options = list_options,
     .client = true},
    {.path = "task get",
     .summary = "Show one task",
     .details = "Shows everything that is known about a task.",
     .arguments = id_argument,
     .client = true},
    {.path = "task cancel",
     .summary = "End tasks",
     .details = "Ends tasks, waiting or running, with every process they have started. Says of each whether it is "
                "cancelled, or "
                "cancelling because it still runs.",
     .arguments = ids_argument,
     .client = true},
    {.path = "task stats", .summary = "Count the tasks", .details = "Counts the tasks in each state.", .client = true},
    {.path = "task wait",
     .summary = "Wait until tasks have ended",
     .details = "Waits until the tasks have ended and exits with their exit code: 128 and the signal's number for one "
                "that was killed, 130 for one that was cancelled; of several, the first that is not 0.",
     .arguments = ids_argument,
     .client = true},
    {.path = "task output",
     .summary = "Print what a task has written",
     .details =
         "Prints what a task has written, byte for byte. Where more than 64 MiB came, the middle is missing and a "
         "line says how much. With --follow it goes on until the task ends, and exits with the task's exit code.",
     .arguments = id_argument,
     .options = output_options,
     .client = true},
};

// ---- automation and chat

constexpr ArgumentEntry rule_argument[] = {{.name = "RULE", .count = Count::optional}};
constexpr ArgumentEntry message_argument[] = {{.name = "MESSAGE", .count = Count::many}};
constexpr OptionEntry chat_options[] = {
    {.name = "priority", .value = "N", .summary = "Higher runs first; 5 if not given", .kind = ValueKind::number},
};

constexpr CommandEntry automation_commands[] = {
    {.path = "automation",
     .summary = "Show and switch the rules that start tasks",
     .details = "The rules in the settings start tasks when a file changes, when it is time, or when another task has "
                "ended.",
     .group = true},
    {.path = "automation status",
     .summary = "Show the rules and what they did",
     .details = "Shows the rules, what they did lately, and what was held back and why.",
     .client = true},
    {.path = "automation enable",
     .summary = "Switch a rule on, or all of them",
     .details = "Switches a rule on, or all of automation. It stays so over restarts.",
     .arguments = rule_argument,
     .client = true},
    {.path = "automation disable",
     .summary = "Switch a rule off, or all of them",
     .details = "Switches a rule off, or all of automation. It stays so over restarts.",
     .arguments = rule_argument,
     .client = true},
    {.path = "automation approve",
     .summary = "Let a firing go ahead that waits for it",
     .details = "Lets a firing go ahead that waits for approval. automation status shows its ID.",
     .arguments = id_argument,
     .client = true},
};

constexpr CommandEntry chat_commands[] = {
    {.path = "chat",
     .summary = "Send a message to the default agent",
     .details = "Messages to the default agent.",
     .group = true},
    {.path = "chat send",
     .summary = "Send a message as a task",
     .details =
         "Submits a message to the default agent as a task and prints the task's id. The words are joined by blanks; "
         "after -- they may begin with a hyphen, and a single - reads them from stdin.",
     .arguments = message_argument,
     .options = chat_options,
     .client = true},
};

// ---- language servers

constexpr OptionEntry wait_options[] = {
    {.name = "wait",
     .value = "TIME",
     .summary = "How long the server may take to look at the present text: 500ms, 10s, 1m; 10s if not given",
     .kind = ValueKind::duration,
     .least = 0},
};
constexpr OptionEntry server_options[] = {
    {.name = "server", .value = "NAME", .summary = "Which server; else by the document, else the only one that runs"},
};

constexpr ArgumentEntry server_command[] = {{.name = "COMMAND", .count = Count::many}};
constexpr ArgumentEntry place_argument[] = {{.name = "FILE[:LINE[:COL]]", .kind = ValueKind::file}};
constexpr ArgumentEntry files_argument[] = {{.name = "FILE", .kind = ValueKind::file, .count = Count::many}};
constexpr ArgumentEntry server_argument[] = {{.name = "NAME"}};

constexpr CommandEntry lsp_commands[] = {
    {.path = "lsp",
     .summary = "Ask language servers",
     .details =
         "Asks language servers, which the daemon starts when they are needed and keeps ready. Lines and columns "
         "begin with 1, and columns count characters.",
     .group = true},
    {.path = "lsp check",
     .summary = "Try a language server",
     .details = "Starts a language server, without the daemon, and shows its name, its version, what it can do and how "
                "long that took; or says why it failed. Put -- before a command that has options.",
     .arguments = server_command,
     .client = true},
    {.path = "lsp hover",
     .summary = "Show what is known about a place",
     .details = "Shows what the language server says about a place.",
     .arguments = place_argument,
     .client = true},
    {.path = "lsp definition",
     .summary = "Show where something is defined",
     .details = "Shows where the thing at a place is defined, as FILE:LINE:COL.",
     .arguments = place_argument,
     .client = true},
    {.path = "lsp references",
     .summary = "Show where something is used",
     .details = "Shows where the thing at a place is used, as FILE:LINE:COL.",
     .arguments = place_argument,
     .client = true},
    {.path = "lsp completion",
     .summary = "Show what could be written at a place",
     .details = "Shows what could be written at a place.",
     .arguments = place_argument,
     .client = true},
    {.path = "lsp symbols",
     .summary = "Show what a file declares",
     .details = "Shows what a file declares.",
     .arguments = place_argument,
     .client = true},
    {.path = "lsp diagnostics",
     .summary = "Show errors and warnings in files",
     .details = "Shows errors and warnings in the present text of files. Findings are no failure: the exit code is 0. "
                "Those that "
                "did not come in time are not known yet, and the exit code is 4.",
     .arguments = files_argument,
     .options = wait_options,
     .client = true},
    {.path = "lsp request",
     .summary = "Send any request to a language server",
     .details = "Sends a request to a language server and prints its result as it came. PARAMS is a JSON object or "
                "array; - reads it from stdin.",
     .arguments = call_arguments,
     .options = server_options,
     .client = true},
    {.path = "lsp list",
     .summary = "Show the servers that run",
     .details = "Shows the language servers that run.",
     .client = true},
    {.path = "lsp stop",
     .summary = "Shut a server down",
     .details = "Shuts a language server down. It comes back when it is needed.",
     .arguments = server_argument,
     .client = true},
};

// ---- doctor

constexpr OptionEntry doctor_options[] = {
    {.name = "fix", .summary = "Clear away what dead daemons left behind"},
};

constexpr CommandEntry doctor_commands[] = {
    {.path = "doctor",
     .summary = "Find out what is wrong",
     .details =
         "Looks at the settings, the agents, the language servers, the socket, the store, what keeps a daemon from "
         "starting and what dead daemons left behind, and says what is wrong. The exit code is 1 if something is. "
         "It gives a daemon 2.5s to answer.",
     .options = doctor_options,
     .client = true},
};

template <std::size_t... Sizes>
consteval auto joined(const CommandEntry (&... lists)[Sizes]) {
  std::array<CommandEntry, (Sizes + ...)> out{};
  auto next = out.begin();
  ((next = std::ranges::copy(lists, next).out), ...);
  return out;
}

// A command is there when it works: a list that is not named here does not exist for anybody.
constexpr auto all_commands = joined(daemon_commands, task_commands, automation_commands, chat_commands, lsp_commands,
                                     doctor_commands, program_commands);

constexpr TermEntry variables[] = {
    {"AIWG_IPC_DEBUG", "If 1, every message between a command and the daemon is shown on stderr, as with --trace"},
    {"DUET_RPC_CONFIG", "The settings file to read instead of the project's and the user's own"},
    {"DUET_RPC_LOG",
     "A file that rpc and daemon start --foreground log to instead of stderr, at level info unless --log-level says "
     "otherwise"},
    {"NO_COLOR", "No colours, if set and not empty"},
};

constexpr TermEntry codes[] = {
    {"0", "All went well; for rpc, it was asked to end, by whatever means"},
    {"1", "Bad usage, a failed start, or stdin or stdout broke; for the other commands, it was refused or has failed"},
    {"3", "No daemon is running"},
    {"4", "The daemon, or a language server asked for diagnostics, did not answer in time"},
    {"other", "Of task wait, and of task submit and task output with --follow: that of the task, which may be any"},
};

}  // namespace

std::span<const OptionEntry> global_options() { return everywhere; }
std::span<const OptionEntry> client_options() { return of_clients; }
std::span<const CommandEntry> commands() { return all_commands; }
std::span<const TermEntry> environment() { return variables; }
std::span<const TermEntry> exit_codes() { return codes; }

const CommandEntry* find_command(std::string_view path) {
  const auto* const found = std::ranges::find(all_commands, path, &CommandEntry::path);
  return found == std::end(all_commands) ? nullptr : found;
}

std::vector<const CommandEntry*> commands_below(const CommandEntry* group) {
  const std::string_view parent = group == nullptr ? std::string_view() : group->path;
  std::vector<const CommandEntry*> out;
  for (const CommandEntry& command : all_commands) {
    const std::string_view above = command.path.substr(0, command.path.size() - command.name().size());
    const bool below = above.empty() ? parent.empty() : above.substr(0, above.size() - 1) == parent;
    if (below && command.listed) out.push_back(&command);
  }
  return out;
}

std::array<std::span<const OptionEntry>, 3> option_lists(const CommandEntry* command) {
  const bool undecided = command == nullptr || command->group;
  std::array<std::span<const OptionEntry>, 3> out{{{}, {}, everywhere}};
  if (!undecided) out[0] = command->options;
  if (undecided || command->client) out[1] = of_clients;
  return out;
}

const OptionEntry* find_option(const CommandEntry* command, std::string_view name) {
  for (const std::span<const OptionEntry> list : option_lists(command)) {
    const auto found = std::ranges::find(list, name, &OptionEntry::name);
    if (found != list.end()) return &*found;
  }
  return nullptr;
}

const OptionEntry* find_option(const CommandEntry* command, char letter) {
  for (const std::span<const OptionEntry> list : option_lists(command)) {
    const auto found = std::ranges::find(list, letter, &OptionEntry::letter);
    if (found != list.end()) return &*found;
  }
  return nullptr;
}

std::string_view called_name(const char* argv0) {
  const std::string_view path = argv0 == nullptr ? "" : argv0;
  return path.substr(path.rfind('/') + 1) == short_name ? short_name : program_name;
}

}  // namespace duet::app
