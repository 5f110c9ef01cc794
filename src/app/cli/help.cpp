#include "app/cli/help.h"

#include <algorithm>
#include <vector>

namespace duet::app {
namespace {

constexpr std::size_t text_width = 80;
constexpr std::size_t widest_label = 26;

struct Row {
  std::string label;
  std::string_view summary;
};

// Words of `text` in lines of at most text_width, each but the first behind `indent` blanks.
std::string wrapped(std::string_view text, std::size_t indent) {
  std::string out;
  std::size_t column = indent;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(word.size() + 1, text.size()));
    if (column > indent && column + 1 + word.size() > text_width) {
      out += '\n' + std::string(indent, ' ');
      column = indent;
    } else if (column > indent) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
  }
  return out;
}

std::string section(std::string_view heading, const std::vector<Row>& rows, const TextStyle& style) {
  if (rows.empty()) return {};
  std::size_t width = 0;
  for (const Row& row : rows) width = std::max(width, std::min(row.label.size(), widest_label));
  std::string out = "\n" + style.heading(heading) + "\n";
  for (const Row& row : rows) {
    const std::size_t gap = width > row.label.size() ? width - row.label.size() : 0;
    out += "  " + style.name(row.label) + std::string(gap + 2, ' ') + wrapped(row.summary, width + 4) + "\n";
  }
  return out;
}

std::vector<Row> rows_of(std::span<const OptionEntry> options, const CommandEntry* command) {
  std::vector<Row> rows;
  for (const OptionEntry& option : options) rows.push_back({option_label(option, command), option.summary});
  return rows;
}

std::vector<Row> rows_of(std::span<const TermEntry> terms) {
  std::vector<Row> rows;
  for (const TermEntry& term : terms) rows.push_back({std::string(term.name), term.summary});
  return rows;
}

std::vector<Row> rows_below(const CommandEntry* group) {
  std::vector<Row> rows;
  for (const CommandEntry* command : commands_below(group)) {
    rows.push_back({std::string(command->name()), command->summary});
  }
  return rows;
}

std::string argument_label(const ArgumentEntry& argument) {
  const std::string name(argument.name);
  if (argument.count == ArgumentEntry::Count::optional) return " [" + name + "]";
  if (argument.count == ArgumentEntry::Count::any) return " [" + name + "...]";
  return " " + name + (argument.count == ArgumentEntry::Count::many ? "..." : "");
}

std::string called_as(std::string_view program, const CommandEntry* command) {
  return std::string(program) + (command == nullptr ? "" : " " + std::string(command->path));
}

std::string program_help(const TextStyle& style) {
  std::string out = std::string(program_summary) + "\n" + section("Commands:", rows_below(nullptr), style);
  out += section("Options, before or after the command:", rows_of(global_options(), nullptr), style);
  out += section("Environment:", rows_of(environment()), style);
  return out + section("Files:", rows_of(known_files()), style);
}

// The table speaks of duet-rpc.
std::string said_by(std::string_view program, std::string_view paragraph) {
  std::string out(paragraph);
  for (std::size_t at = out.find(program_name); at != std::string::npos; at = out.find(program_name, at + 1)) {
    out.replace(at, program_name.size(), program);
  }
  return out;
}

std::string command_help(const CommandEntry& command, const TextStyle& style, std::string_view program) {
  std::string out;
  for (const std::string_view paragraph : paragraphs(command.details)) {
    out += (out.empty() ? "" : "\n") + wrapped(said_by(program, paragraph), 0) + "\n";
  }
  if (command.group) out += section("Commands:", rows_below(&command), style);
  out += section("Options:", rows_of(command.options, &command), style);
  if (command.client) {
    out +=
        section("Options of every command that asks the daemon:", rows_of(client_options(&command), &command), style);
  }
  return out + section("Global options:", rows_of(global_options(), &command), style);
}

}  // namespace

std::span<const TermEntry> known_files() {
  static constexpr TermEntry files[] = {
      {".aiwg/daemon", "In the project's folder: the daemon's socket, its log, the tasks and their output"},
      {".duet-rpc.toml", "In the project's folder: its settings (agents, rules), see duet-rpc-settings(5)"},
      {"~/.config/duet-rpc/config.toml", "Your own settings; with XDG_CONFIG_HOME set, duet-rpc/config.toml there"},
      {"~/.config/duet-rpc/tls", "Beside it: keys and certificates for the TLS door, made by duet-rpc cert"},
  };
  return files;
}

std::vector<std::string_view> paragraphs(std::string_view details) {
  std::vector<std::string_view> out;
  while (!details.empty()) {
    out.push_back(details.substr(0, details.find('\n')));
    details.remove_prefix(std::min(out.back().size() + 1, details.size()));
  }
  return out;
}

std::string usage_of(const CommandEntry* command, std::string_view program) {
  std::string out = called_as(program, command);
  if (command == nullptr) return out + " [COMMAND] [OPTIONS]";
  if (command->group) out += " COMMAND";
  for (const ArgumentEntry& argument : command->arguments) out += argument_label(argument);
  return out + " [OPTIONS]";
}

std::string option_label(const OptionEntry& option, const CommandEntry* command) {
  const bool has_letter =
      option.letter != '\0' && (command == nullptr || find_option(command, option.letter) == &option);
  std::string out = has_letter ? std::string("-") + option.letter + ", " : "    ";
  out += "--" + std::string(option.name);
  if (!option.usual.empty()) {
    out += "[=" + std::string(option.value) + "]";
  } else if (!option.value.empty()) {
    out += " " + std::string(option.value);
  }
  return out;
}

std::string help_text(const CommandEntry* command, const TextStyle& style, std::string_view program) {
  std::string out = style.heading("Usage:") + " " + usage_of(command, program) + "\n\n";
  out += command == nullptr ? program_help(style) : command_help(*command, style, program);
  if (command != nullptr && !command->group) return out;
  return out + "\nSee '" + called_as(program, command) + " <command> --help' for more information.\n";
}

std::string usage_error_text(const UsageError& error, const TextStyle& style) {
  std::string out = style.fault(std::string(error.program) + ":") + " " + error.message + "\n";
  if (!error.suggestion.empty()) out += "Did you mean '" + style.name(error.suggestion) + "'?\n";
  out += "\n" + style.heading("Usage:") + " " + usage_of(error.command, error.program) + "\n";
  return out + "See '" + called_as(error.program, error.command) + " --help' for more information.\n";
}

}  // namespace duet::app
