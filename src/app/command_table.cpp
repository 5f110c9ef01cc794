#include "app/command_table.h"

#include <algorithm>

namespace duet::app {
namespace {

using Text = std::string_view;

constexpr Text levels[] = {"debug", "info", "warn", "error"};
constexpr Text shells[] = {"bash", "zsh", "fish"};
constexpr Text pages[] = {"manual", "methods"};

constexpr OptionEntry everywhere[] = {
    {.letter = 'h', .name = "help", .summary = "Show help, of the command if one is given"},
    {.letter = 'V', .name = "version", .summary = "Print the version and nothing else"},
    {.letter = 'n', .name = "no-color", .summary = "No colours, not even on a terminal"},
    {.name = "log-level", .value = "LEVEL", .summary = "debug, info, warn or error, in any case", .choices = levels},
};

constexpr OptionEntry rpc_options[] = {
    {.name = "read-timeout",
     .value = "SECONDS",
     .summary = "Drop a message that is not complete so long after its first byte; 30 if not given"},
};

constexpr Text rpc_details[] = {
    "Answers JSON-RPC 2.0 requests on stdin and stdout, framed as in the Language Server Protocol, until stdin ends, a "
    "client calls shutdown, or SIGINT, SIGTERM or SIGHUP arrives. Then it finishes the request it is working on and "
    "ends, within 2 seconds in any case.",
    "The log goes to stderr, and there it has warnings and errors only, because some clients mix stderr into what they "
    "read. With DUET_RPC_LOG it goes to a file, from level info up. --log-level changes either.",
};

constexpr Text version_details[] = {"Prints the version and nothing else, as --version does."};

constexpr Text completion_details[] = {
    "Prints a script that completes the commands and options of duet-rpc in SHELL. Installing duet-rpc puts these "
    "scripts where the shells look for them.",
    "To try it in bash: source <(duet-rpc completion bash)",
};

constexpr Text print_details[] = {
    "Prints a page that is made from the program's own tables: the manual page, or docs/methods.md.",
};

constexpr CommandEntry all_commands[] = {
    {.name = "rpc", .summary = "Serve JSON-RPC on stdin and stdout", .details = rpc_details, .options = rpc_options},
    {.name = "version", .summary = "Print the version", .details = version_details},
    {.name = "completion",
     .summary = "Print a completion script for bash, zsh or fish",
     .details = completion_details,
     .argument = {.name = "SHELL", .choices = shells}},
    {.name = "print",
     .summary = "Print generated documentation",
     .details = print_details,
     .argument = {.name = "PAGE", .choices = pages},
     .listed = false},
};

constexpr TermEntry variables[] = {
    {"DUET_RPC_LOG", "A file that rpc logs to instead of stderr, at level info unless --log-level says otherwise"},
    {"NO_COLOR", "No colours, if set and not empty"},
};

constexpr TermEntry codes[] = {
    {"0", "All went well; for rpc, it was asked to end, by whatever means"},
    {"1", "Bad usage, a failed start, or stdin or stdout broke"},
};

}  // namespace

std::span<const std::string_view> level_names() { return levels; }
std::span<const OptionEntry> global_options() { return everywhere; }
std::span<const CommandEntry> commands() { return all_commands; }
std::span<const TermEntry> environment() { return variables; }
std::span<const TermEntry> exit_codes() { return codes; }

const CommandEntry* find_command(std::string_view name) {
  const auto* const found = std::ranges::find(all_commands, name, &CommandEntry::name);
  return found == std::end(all_commands) ? nullptr : found;
}

}  // namespace duet::app
