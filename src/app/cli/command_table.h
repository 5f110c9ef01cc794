#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

#include "app/words/program_name.h"

namespace duet::app {

/// What a value must look like; it also tells a shell what to offer. A task may be written as `3` for `task-3`; tasks
/// and what follows them are asked for, of the daemon or, for certificates, of the user's folder. A pair is
/// `NAME=VALUE`; a far daemon is a TlsUrl.
enum class ValueKind : std::uint8_t {
  text,
  number,
  decimal,
  bytes,
  duration,
  pair,
  file,
  folder,
  far_daemon,
  task,
  live_task,
  ended_task,
  agent,
  group,
  rule,
  token,
  certificate
};

inline bool is_task(ValueKind kind) {
  return kind == ValueKind::task || kind == ValueKind::live_task || kind == ValueKind::ended_task;
}

/// What `candidates` is asked for to get values of a kind; empty if nobody knows them.
std::string_view asked_kind(ValueKind kind);

/// One option as people see it.
struct OptionEntry {
  char letter = '\0';  // '\0': none
  std::string_view name;
  std::string_view value = {};  // what stands for its value in the help; empty: a flag
  std::string_view summary;
  std::span<const std::string_view> choices = {};  // the only values, matched in any case
  ValueKind kind = ValueKind::text;
  std::int64_t least = std::numeric_limits<std::int64_t>::min();  // of a number; of a duration in milliseconds
  std::int64_t most = std::numeric_limits<std::int64_t>::max();
  bool repeatable = false;      // else the last one counts
  std::string_view usual = {};  // the value of one that is given without; else it needs one. Another stands behind `=`
};

/// What a command takes besides options.
struct ArgumentEntry {
  enum class Count : std::uint8_t {
    one,
    optional,
    many,
    any
  };  // many: one or more; any: also none; nothing after them
  std::string_view name;
  std::span<const std::string_view> choices = {};
  ValueKind kind = ValueKind::text;
  Count count = Count::one;
};

/// Whether a command starts the daemon when none runs.
enum class StartsDaemon : std::uint8_t {
  if_wanted,  ///< with --start, or if the user's settings say so
  if_asked,   ///< with --start only
  never,
};

struct CommandEntry {
  std::string_view path;  // the words that call it: `rpc`, `daemon`, `daemon start`
  std::string_view summary;
  std::string_view details;  // paragraphs, a line each
  std::span<const ArgumentEntry> arguments = {};
  std::span<const OptionEntry> options = {};
  bool group = false;           // stands for the commands whose paths begin with its own
  bool client = false;          // talks to the daemon, and takes the client options
  bool ends_with_task = false;  // its exit code is a task's; if it has --follow, then with that only
  bool listed = true;
  StartsDaemon starts = StartsDaemon::if_wanted;  // of a client
  std::string_view only_here = {};                // of what asks no daemon of another machine: what to do instead

  std::string_view name() const { return path.substr(path.rfind(' ') + 1); }  // the last word
};

/// A name with what it means: an environment variable, an exit code.
struct TermEntry {
  std::string_view name;
  std::string_view summary;
};

/// Everything the command line knows, as constants: the parser, the help, the shell completions and the manual page
/// are all made from these entries.
inline constexpr std::string_view short_name = "aiwg";  // the other name it may be called by
inline constexpr std::string_view program_summary =
    "JSON-RPC 2.0 for editors on stdin and stdout, and a daemon for each project.";

std::span<const OptionEntry> global_options();
/// Of every command that asks the daemon. One that never starts it has no --start, and one that is only for this
/// machine has nothing that leads to another.
std::span<const OptionEntry> client_options(const CommandEntry* command = nullptr);
/// The same if it is for daemons of other machines.
bool leads_far(const OptionEntry& option);
std::span<const CommandEntry> commands();
std::span<const TermEntry> environment();
std::span<const TermEntry> exit_codes();

const CommandEntry* find_command(std::string_view path);
/// The listed commands directly below a group; below the program if there is none.
std::vector<const CommandEntry*> commands_below(const CommandEntry* group);

/// Where an option of a command may come from, in the order they are looked up: its own, those of every client, the
/// global ones. A letter means what the first of them says. Before the command is known the last two count.
std::array<std::span<const OptionEntry>, 3> option_lists(const CommandEntry* command);
const OptionEntry* find_option(const CommandEntry* command, std::string_view name);
const OptionEntry* find_option(const CommandEntry* command, char letter);

/// `duet-rpc` or `aiwg`, whichever the program was called by.
std::string_view called_name(const char* argv0);

}  // namespace duet::app
