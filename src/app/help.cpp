#include "app/help.h"

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

std::vector<Row> rows_of(std::span<const OptionEntry> options) {
  std::vector<Row> rows;
  for (const OptionEntry& option : options) rows.push_back({option_label(option), option.summary});
  return rows;
}

std::vector<Row> rows_of(std::span<const TermEntry> terms) {
  std::vector<Row> rows;
  for (const TermEntry& term : terms) rows.push_back({std::string(term.name), term.summary});
  return rows;
}

std::vector<Row> rows_of_commands() {
  std::vector<Row> rows;
  for (const CommandEntry& command : commands()) {
    if (command.listed) rows.push_back({std::string(command.name), command.summary});
  }
  return rows;
}

}  // namespace

std::string usage_of(const CommandEntry* command) {
  const std::string program(program_name);
  if (command == nullptr) return program + " [COMMAND] [OPTIONS]";
  std::string out = program + " " + std::string(command->name);
  if (!command->argument.name.empty()) out += " " + std::string(command->argument.name);
  return out + " [OPTIONS]";
}

std::string option_label(const OptionEntry& option) {
  std::string out = option.letter == '\0' ? "    " : std::string("-") + option.letter + ", ";
  out += "--" + std::string(option.name);
  if (!option.value.empty()) out += " " + std::string(option.value);
  return out;
}

std::string help_text(const CommandEntry* command, const TextStyle& style) {
  std::string out = style.heading("Usage:") + " " + usage_of(command) + "\n\n";
  if (command == nullptr) {
    out += std::string(program_summary) + "\n";
    out += section("Commands:", rows_of_commands(), style);
    out += section("Options, before or after the command:", rows_of(global_options()), style);
    out += section("Environment:", rows_of(environment()), style);
    return out + "\nSee 'duet-rpc <command> --help' for more information.\n";
  }
  for (std::size_t i = 0; i < command->details.size(); ++i) {
    out += (i > 0 ? "\n" : "") + wrapped(command->details[i], 0) + "\n";
  }
  out += section("Options:", rows_of(command->options), style);
  out += section("Global options:", rows_of(global_options()), style);
  return out + section("Environment:", rows_of(environment()), style);
}

std::string usage_error_text(const UsageError& error, const TextStyle& style) {
  std::string out = style.fault("duet-rpc:") + " " + error.message + "\n";
  if (!error.suggestion.empty()) out += "Did you mean '" + style.name(error.suggestion) + "'?\n";
  out += "\n" + style.heading("Usage:") + " " + usage_of(error.command) + "\n";
  const std::string command = error.command == nullptr ? "" : std::string(error.command->name) + " ";
  return out + "See 'duet-rpc " + command + "--help' for more information.\n";
}

}  // namespace duet::app
