#include "app/cli/command_table.h"

#include <algorithm>

#include "app/cli/cert_commands.h"
#include "app/cli/cluster_commands.h"
#include "app/cli/task_commands.h"
#include "duet/base/log_line.h"

namespace duet::app {
namespace {

using Text = std::string_view;
using Count = ArgumentEntry::Count;

constexpr Text shells[] = {"bash", "zsh", "fish"};
constexpr Text asked_kinds[] = {"task", "live-task", "ended-task", "agent", "group", "rule", "token", "certificate"};
constexpr Text pages[] = {"manual", "methods", "tools"};

constexpr OptionEntry everywhere[] = {
    {.letter = 'h', .name = "help", .summary = "Show help, of the command if one is given"},
    {.letter = 'V', .name = "version", .summary = "Print the version and nothing else"},
    {.letter = 'n', .name = "no-color", .summary = "No colours, not even on a terminal"},
    {.name = "log-level",
     .value = "LEVEL",
     .summary = "debug, info, warn or error, in any case",
     .choices = base::level_names},
};

constexpr std::size_t far_options = 3;  // see client_options()
constexpr OptionEntry of_clients[] = {
    {.name = "connect",
     .value = "URL",
     .summary = "A daemon of another machine: tls://HOST, or tls://HOST:PORT if its port is not 7443",
     .kind = ValueKind::far_daemon},
    {.name = "identity",
     .value = "FILE",
     .summary =
         "With --connect: your key, your certificate and the CA to trust; else tls/client.pem beside config.toml",
     .kind = ValueKind::file},
    {.name = "server-name",
     .value = "NAME",
     .summary = "With --connect: the name that the certificate there must have, if it is not HOST, as behind a tunnel"},
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
    {.name = "start", .summary = "Start the daemon first if none is running"},  // the last: see client_options()
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
constexpr ArgumentEntry candidates_arguments[] = {{.name = "KIND", .choices = asked_kinds},
                                                  {.name = "WORD", .count = Count::any}};
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
    {.path = "candidates",
     .summary = "Print what a shell may offer",
     .details =
         "Prints what the daemon knows of a kind, for the completion scripts: a name a line, and behind a tabulator "
         "what it is. The words are those of the command line so far, with the program's name; those among them "
         "that say where the daemon is count. Without a daemon nothing is printed.",
     .arguments = candidates_arguments,
     .listed = false},
    {.path = "print",
     .summary = "Print generated documentation",
     .details = "Prints a page that is made from the program's own tables: the manual page, docs/methods.md, or the "
                "table of docs/mcp.md.",
     .arguments = page_argument,
     .listed = false},
};

// ---- the project's daemon

constexpr Text started_there = "a daemon is started on its own machine: log in there, with ssh for example";

constexpr OptionEntry start_options[] = {
    {.name = "if-needed",
     .summary = "One that is running already is fine, too; the end of one that stops is waited for"},
    {.name = "http",
     .value = "ADDR:PORT",
     .summary = "Open the HTTP door there, or at any port of 127.0.0.1, whatever the settings say",
     .usual = "127.0.0.1:0"},
    {.name = "tls",
     .value = "ADDR:PORT",
     .summary = "Open the TLS door there, for other machines, whatever the settings say"},
    {.name = "idle",
     .value = "TIME",
     .summary = "End by itself after so long without a client, a task that is queued or runs, and a rule that is on",
     .kind = ValueKind::duration,
     .least = 1},
    {.name = "started-by", .value = "NAME", .summary = "What starts it, for daemon.status to tell"},
    {.name = "foreground", .summary = "Stay in the foreground and log to stderr, or to the file of DUET_RPC_LOG"},
};
constexpr OptionEntry stop_options[] = {
    {.name = "force", .summary = "End running tasks now instead of giving them 15 seconds"},
    {.name = "leave-tasks", .summary = "Leave running tasks running, for the next daemon"},
    {.name = "drain",
     .summary = "Start nothing new, and give running tasks all the time they need, or that of --timeout"},
    {.name = "if-running", .summary = "That none is running is fine, too"},
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

constexpr Text framings[] = {"lsp", "lines"};
constexpr OptionEntry connect_options[] = {
    {.name = "framing",
     .value = "FRAMING",
     .summary = "lsp, a Content-Length header before each message, which is the default; or lines, a message a line",
     .choices = framings},
    {.name = "events",
     .value = "KIND,...",
     .summary = "Only these kinds of events, such as taskFailed,taskCompleted; all adds the output of tasks"},
};

constexpr Text mcp_clients[] = {"claude", "codex", "vscode", "cursor", "zed", "gemini"};
constexpr OptionEntry mcp_options[] = {
    {.name = "project",
     .value = "DIR",
     .summary = "The project; else the nearest folder upward with .aiwg/ or .git, else that of CLAUDE_PROJECT_DIR",
     .kind = ValueKind::folder},
    {.name = "allow",
     .value = "DIR",
     .summary = "Answer questions about files below this folder, too; may be repeated",
     .kind = ValueKind::folder,
     .repeatable = true},
    {.name = "tools", .value = "GROUP,...", .summary = "Offer only these groups of tools: code, task, project"},
    {.name = "read-only", .summary = "Leave out task_run and task_cancel"},
    {.name = "agents",
     .value = "NAME,...",
     .summary = "The agents that task_run offers; else those of the settings, and never shell"},
    {.name = "no-start", .summary = "Start no daemon; use one that runs"},
    {.name = "trace", .summary = "Show every message to and from the client and the daemon on stderr"},
    {.name = "print-config",
     .value = "CLIENT",
     .summary = "Print what this client's configuration file needs, and where it belongs, and end",
     .choices = mcp_clients},
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
                "which names its process, unless --if-needed is given.",
     .options = start_options,
     .client = true,
     .starts = StartsDaemon::never,
     .only_here = started_there},
    {.path = "daemon stop",
     .summary = "Stop the daemon",
     .details =
         "Stops the project's daemon. No new work is accepted, running tasks get 15 seconds to finish before they "
         "are ended, and queued tasks stay queued for the next start. On a terminal it says every second what it "
         "waits for.",
     .options = stop_options,
     .client = true,
     .starts = StartsDaemon::never},
    {.path = "daemon restart",
     .summary = "Stop the daemon and start it again",
     .details = "Stops the project's daemon and starts it again, or starts it if there is none. Running tasks go on.",
     .client = true,
     .starts = StartsDaemon::never,
     .only_here = started_there},
    {.path = "daemon status",
     .summary = "Show how the daemon is",
     .details = "Shows whether the project's daemon is well, what it is doing, and what is wrong.",
     .client = true,
     .starts = StartsDaemon::if_asked},
    {.path = "daemon reload",
     .summary = "Read the settings again",
     .details =
         "Has the daemon read its settings files again, and says what changed. It does so by itself when they are "
         "saved; files with a fault are refused here and there, and the settings from before stay.",
     .client = true,
     .starts = StartsDaemon::if_asked},
    {.path = "daemon logs",
     .summary = "Show the daemon's log",
     .details = "Shows the end of the log of the project's daemon, running or not; with --json an object a line.",
     .options = logs_options,
     .client = true,
     .starts = StartsDaemon::never,
     .only_here = "the log is a file of the daemon's machine: read it there, with ssh for example"},
    {.path = "call",
     .summary = "Call any method of the daemon",
     .details =
         "Calls a method of the daemon and prints its result, as it came, on one line. PARAMS is a JSON object or "
         "array; - reads it from stdin. listMethods and describeMethods tell what can be called.",
     .arguments = call_arguments,
     .client = true},
    {.path = "events",
     .summary = "Print what happens in the daemon",
     .details = "Prints what happens in the daemon until ^C: on a terminal a line for people, else or with --json one "
                "JSON-RPC notification a line.",
     .options = events_options,
     .client = true},
    {.path = "top",
     .summary = "Watch the tasks on the whole screen",
     .details =
         "Shows on the whole terminal what runs, with the last line of its output, what waits and for what, what has "
         "ended, how many end in a minute, and what is wrong; it goes along with what happens. The arrows choose a "
         "task, enter follows its output, c cancels it after a question, p pauses the queue or lets it go on, ? tells "
         "all keys, q quits. Tasks and daemon go on without it.\n"
         "It needs a terminal that can move its cursor. When the daemon goes away it waits for the next one.",
     .client = true},
    {.path = "connect",
     .summary = "Join stdin and stdout to the daemon",
     .details =
         "Brings what comes on stdin to the project's daemon, and what that writes to stdout, so that an editor or a "
         "program reaches tasks, events and language servers through the JSON-RPC client it has. Every method of the "
         "daemon can be called, in batches, too.\n"
         "When stdin ends, every answer is still written, and the exit code is 0. When the daemon goes, also for a "
         "restart, so does this, with exit code 3: what the connection stood for (events, open documents) has gone, "
         "too, and is set up again by whoever connects again.",
     .options = connect_options,
     .client = true},
    {.path = "mcp",
     .summary = "Serve agents on stdin and stdout (Model Context Protocol)",
     .details =
         "Serves a client of the Model Context Protocol, such as Claude Code, Codex, VS Code, Cursor, Zed or Gemini "
         "CLI, which starts it: tools for the project's code, by its language servers, and for tasks that outlive the "
         "session. The project's daemon does the work; it is started with the first call, and ends by itself after 30 "
         "minutes without a client, a task or a rule.\n"
         "What a client's configuration needs is printed by --print-config. Ends with 0 when stdin does.",
     .options = mcp_options},
};

// ---- automation

constexpr ArgumentEntry rule_argument[] = {{.name = "RULE", .kind = ValueKind::rule, .count = Count::optional}};
constexpr ArgumentEntry firing_argument[] = {{.name = "ID", .count = Count::many}};

constexpr ArgumentEntry one_rule_argument[] = {{.name = "RULE", .kind = ValueKind::rule}};
constexpr OptionEntry path_option = {
    .name = "path",
    .value = "FILE",
    .summary = "The file that would have changed, from here, or outside of the project from its root"};
constexpr OptionEntry test_options[] = {
    path_option,
    {.name = "task", .value = "ID", .summary = "The task that would have ended as it is", .kind = ValueKind::task},
    {.name = "time", .value = "TIME", .summary = "The time of a schedule: 2026-06-01T12:00, with a Z in UTC"},
};
constexpr OptionEntry fire_options[] = {path_option};

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
     .details =
         "Lets firings go ahead that wait for approval. automation status shows their IDs; 7 is firing-7, and the "
         "name of a rule stands for all of it that waits.",
     .arguments = firing_argument,
     .client = true},
    {.path = "automation deny",
     .summary = "Take a firing back that waits for approval",
     .details =
         "Takes firings back that wait for approval. automation status shows their IDs, and what they would do; 7 "
         "is firing-7, and the name of a rule stands for all of it that waits.",
     .arguments = firing_argument,
     .client = true},
    {.path = "automation test",
     .summary = "Show whether a rule would fire, and what it would do",
     .details = "Shows whether a rule would fire for a file, a task or a time, which condition says no, and what it "
                "would do. Nothing is done. Exits with 1 if it would not fire.",
     .arguments = one_rule_argument,
     .options = test_options,
     .client = true},
    {.path = "automation fire",
     .summary = "Have a rule fire now",
     .details = "Has a rule fire now, whatever its trigger, conditions, cooldown and rate say. Exits with 1 if it was "
                "held back.",
     .arguments = one_rule_argument,
     .options = fire_options,
     .client = true},
    {.path = "automation history",
     .summary = "Show the last firings of a rule",
     .details = "Shows the last firings of a rule, with what set them off and their tasks.",
     .arguments = one_rule_argument,
     .client = true},
};

// ---- language servers

constexpr Text severities[] = {"error", "warning"};
constexpr OptionEntry diagnostics_options[] = {
    {.name = "fail-on",
     .value = "SEVERITY",
     .summary = "Exit with 5 if there is an error; with warning, if there is an error or a warning",
     .choices = severities},
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

constexpr ArgumentEntry name_argument[] = {{.name = "NAME"}};
constexpr OptionEntry find_options[] = {
    {.name = "file", .value = "FILE", .summary = "Only in this file", .kind = ValueKind::file},
};

constexpr CommandEntry lsp_commands[] = {
    {.path = "lsp",
     .summary = "Ask language servers",
     .details =
         "Asks language servers, which the daemon starts when they are needed and keeps ready. Lines and columns "
         "begin with 1, and columns count characters. A place is FILE[:LINE[:COL]], or by name FILE#NAME (what the "
         "file "
         "declares), FILE:LINE#NAME (the word in that line or near it) or #NAME (as far as the servers that run know).",
     .group = true},
    {.path = "lsp check",
     .summary = "Try a language server",
     .details = "Starts a language server, without the daemon, and shows its name, its version, what it can do and how "
                "long that took; or says why it failed. Put -- before a command that has options.",
     .arguments = server_command,
     .client = true,
     .starts = StartsDaemon::never,
     .only_here = "it starts the server on this machine: run it there, with ssh for example"},
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
    {.path = "lsp find",
     .summary = "Find symbols by name",
     .details =
         "Shows the symbols that have a name, or the end of a path as in Server::start, or a text in their name: those "
         "of the project, as far as the language servers that run know, or of a file. What is printed as the path of a "
         "symbol is accepted as a name by the other commands, as in FILE#NAME.",
     .arguments = name_argument,
     .options = find_options,
     .client = true},
    {.path = "lsp diagnostics",
     .summary = "Show errors and warnings in files",
     .details =
         "Shows errors and warnings in the present text of files. Findings are no failure, unless --fail-on says "
         "so: the exit code is 0. Those that did not come in time are not known yet, and the exit code is 4; "
         "what --fail-on is about comes first.",
     .arguments = files_argument,
     .options = diagnostics_options,
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

// ---- the dashboard

constexpr OptionEntry dashboard_options[] = {
    {.name = "read-only", .summary = "The browser sees everything and changes nothing"},
    {.name = "no-open", .summary = "Print the URL, and open no browser"},
};

constexpr CommandEntry dashboard_commands[] = {
    {.path = "dashboard",
     .summary = "Open the dashboard in a browser",
     .details =
         "Opens the daemon's HTTP door, unless it is open or the settings forbid it, and prints a URL by which a "
         "browser logs in, once, within 5 minutes. If stdout is a terminal and there is a display, a browser is "
         "opened with it: that of BROWSER, else xdg-open.\n"
         "Whoever opens the URL first is logged in, and can run any program as you unless --read-only is given. "
         "From another machine: ssh -L PORT:127.0.0.1:PORT HOST, and then the same URL. With --connect it is the "
         "page at that daemon's TLS door, to which the browser shows a certificate (cert client --p12).",
     .options = dashboard_options,
     .client = true},
};

// ---- tokens

constexpr Text token_roles[] = {"observe", "operate", "own"};
constexpr OptionEntry new_token_options[] = {
    {.name = "role",
     .value = "R",
     .summary = "observe sees everything, prompts and output included; operate also steers tasks and rules; own, which "
                "is the default, may do everything but make tokens",
     .choices = token_roles},
    {.name = "expires",
     .value = "TIME",
     .summary = "How long it is good: 12h, 30d, up to a year, or never; 90d if not given"},
};
constexpr OptionEntry revoke_options[] = {
    {.name = "all", .summary = "End all of them, those of browsers included, and login codes that wait"},
};
constexpr Text tokens_there =
    "tokens are made and ended on the daemon's own machine: log in there; through TLS a certificate lets in, not a "
    "token";
constexpr ArgumentEntry new_token_argument[] = {{.name = "NAME"}};
constexpr ArgumentEntry tokens_argument[] = {{.name = "NAME", .kind = ValueKind::token, .count = Count::any}};

constexpr CommandEntry token_commands[] = {
    {.path = "token",
     .summary = "Let programs in through the HTTP door",
     .details = "A token lets its holder in through the daemon's HTTP door, with a role that says what he may do. The "
                "daemon keeps no more of it than a checksum.",
     .group = true},
    {.path = "token new",
     .summary = "Make a token",
     .details = "Makes a token and prints it, this once. NAME, of letters, digits, '.', '_' and '-', is what logs, "
                "tasks and token revoke call it. It outlives restarts of the daemon. Whoever has one with the role own "
                "can run any program as you. A task cannot make tokens.",
     .arguments = new_token_argument,
     .options = new_token_options,
     .client = true,
     .only_here = tokens_there},
    {.path = "token list",
     .summary = "Show the tokens",
     .details = "Shows the tokens, those of browsers included, with what they may do, when they were used last and "
                "when they end.",
     .client = true,
     .only_here = tokens_there},
    {.path = "token revoke",
     .summary = "End tokens",
     .details = "Ends tokens, and the connections of their holders.",
     .arguments = tokens_argument,
     .options = revoke_options,
     .client = true,
     .only_here = tokens_there},
};

// ---- trust

constexpr OptionEntry trust_options[] = {
    {.name = "yes", .summary = "Do not ask"},
    {.name = "list", .summary = "Show which settings files are trusted"},
    {.name = "revoke", .summary = "Trust the project's settings file no longer"},
};

constexpr CommandEntry trust_commands[] = {
    {.path = "trust",
     .summary = "Let the project's settings file start programs",
     .details =
         "Shows what .duet-rpc.toml in the project would have the daemon run and use: agents, rules, language servers, "
         "their environment. Then it asks whether you trust that. Until you do, and after every change of the file, "
         "only its limits and ignore lists count. What you trusted before is compared with what is there now.\n"
         "Your own settings need no trust. A task cannot trust anything.",
     .options = trust_options,
     .client = true,
     .starts = StartsDaemon::never,
     .only_here = "a project is trusted on its own machine: log in there, with ssh for example"},
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
         "It gives a daemon 2.5s to answer. Of a shared queue it looks at the database, too, with the settings' own "
         "role.",
     .options = doctor_options,
     .client = true,
     .starts = StartsDaemon::never,
     .only_here = "it looks at this machine: run it there; 'daemon status' asks a daemon of another one how it is"},
};

template <std::size_t... Sizes>
consteval auto joined(const CommandEntry (&... lists)[Sizes]) {
  std::array<CommandEntry, (Sizes + ...)> out{};
  auto next = out.begin();
  ((next = std::ranges::copy(lists, next).out), ...);
  return out;
}

// A command is there when it works: a list that is not named here does not exist for anybody.
constexpr auto all_commands =
    joined(daemon_commands, entries::task_commands, entries::task_change_commands, entries::queue_commands,
           entries::agent_commands, automation_commands, entries::chat_commands, lsp_commands, dashboard_commands,
           token_commands, entries::cert_commands, entries::cluster_commands, trust_commands, doctor_commands,
           program_commands);

constexpr TermEntry variables[] = {
    {"AIWG_IPC_DEBUG", "If 1, every message between a command and the daemon is shown on stderr, as with --trace"},
    {"BROWSER", "The program that dashboard opens a URL with"},
    {"DUET_RPC_CONFIG", "The settings file to read instead of the project's and the user's own"},
    {"DUET_RPC_CONNECT", "What --connect stands for, if neither that nor --project nor --socket is given"},
    {"DUET_RPC_IDENTITY", "What --identity stands for, if that is not given"},
    {"DUET_RPC_LOG",
     "A file that rpc and daemon start --foreground log to instead of stderr, at level info unless --log-level says "
     "otherwise"},
    {"DUET_RPC_STORE", "The database of the shared queue, over what the settings call store: a URL of PostgreSQL"},
    {"NO_COLOR", "No colours, if set and not empty"},
};

constexpr TermEntry codes[] = {
    {"0", "All went well; for rpc, it was asked to end, by whatever means"},
    {"1", "Bad usage, a failed start, or stdin or stdout broke; for the other commands, it was refused or has failed"},
    {"3", "No daemon is running, or with --connect nobody answers there"},
    {"4", "The daemon, or a language server asked for diagnostics, did not answer in time"},
    {"5", "Of lsp diagnostics --fail-on: there are such findings"},
    {"75", "Of daemon start: it lacks memory or room on the disk; worth another try"},
    {"123", "Of a command that ends with a task's code, task wait and --follow: it has failed itself, for any cause"},
    {"124", "Of such a command: the time that --timeout gave is over"},
    {"other", "Of such a command: that of the task, which may be any"},
};

}  // namespace

std::string_view asked_kind(ValueKind kind) {
  if (kind < ValueKind::task) return {};
  return asked_kinds[static_cast<std::size_t>(kind) - static_cast<std::size_t>(ValueKind::task)];
}

std::span<const OptionEntry> global_options() { return everywhere; }
std::span<const OptionEntry> client_options(const CommandEntry* command) {
  const bool never_starts = command != nullptr && command->starts == StartsDaemon::never;
  const bool is_only_here = command != nullptr && !command->only_here.empty();
  const std::span starting = std::span(of_clients).first(std::size(of_clients) - (never_starts ? 1 : 0));
  return starting.subspan(is_only_here ? far_options : 0);
}
bool leads_far(const OptionEntry& option) {
  return std::ranges::find(std::span(of_clients).first(far_options), option.name, &OptionEntry::name) !=
         std::span(of_clients).first(far_options).end();
}
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
  if (undecided || command->client) out[1] = client_options(command);
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
