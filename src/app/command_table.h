#pragma once

#include <span>
#include <string_view>

namespace duet::app {

/// One option as people see it.
struct OptionEntry {
  char letter = '\0';  // '\0': none
  std::string_view name;
  std::string_view value = {};  // what stands for its value in the help; empty: a flag
  std::string_view summary;
  std::span<const std::string_view> choices = {};  // the only values, matched in any case
};

/// The one argument a command may need. No name: it takes none.
struct ArgumentEntry {
  std::string_view name = {};
  std::span<const std::string_view> choices = {};
};

struct CommandEntry {
  std::string_view name;
  std::string_view summary;
  std::span<const std::string_view> details;  // paragraphs
  ArgumentEntry argument = {};
  std::span<const OptionEntry> options = {};
  bool listed = true;
};

/// A name with what it means: an environment variable, an exit code.
struct TermEntry {
  std::string_view name;
  std::string_view summary;
};

/// Everything the command line knows, as constants: the parser, the help, the shell completions and the manual page
/// are all made from these entries.
inline constexpr std::string_view program_name = "duet-rpc";
inline constexpr std::string_view program_summary = "JSON-RPC 2.0 for editors, over stdin and stdout.";

std::span<const std::string_view> level_names();
std::span<const OptionEntry> global_options();
std::span<const CommandEntry> commands();
std::span<const TermEntry> environment();
std::span<const TermEntry> exit_codes();

const CommandEntry* find_command(std::string_view name);

}  // namespace duet::app
