#include "app/shell_completion.h"

#include <vector>

#include "app/command_table.h"

namespace duet::app {
namespace {

using Texts = std::vector<std::string>;

std::string joined(const Texts& words, std::string_view between = " ") {
  std::string out;
  for (const std::string& word : words) out.append(out.empty() ? "" : between).append(word);
  return out;
}

std::string escaped(std::string_view text, std::string_view special) {
  std::string out;
  for (const char c : text) {
    if (special.find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

/// A `@MARK@` of a template, and what stands in its place.
struct Filling {
  std::string_view mark;
  std::string text;
};

std::string filled(std::string_view pattern, const std::vector<Filling>& fillings) {
  std::string out(pattern);
  for (const Filling& filling : fillings) out.replace(out.find(filling.mark), filling.mark.size(), filling.text);
  return out;
}

Texts texts(std::span<const std::string_view> words) { return {words.begin(), words.end()}; }

std::vector<const CommandEntry*> listed_commands() {
  std::vector<const CommandEntry*> out;
  for (const CommandEntry& command : commands()) {
    if (command.listed) out.push_back(&command);
  }
  return out;
}

Texts command_names() {
  Texts out;
  for (const CommandEntry* command : listed_commands()) out.emplace_back(command->name);
  return out;
}

std::string heading(std::string_view shell) {
  return "# Completion of duet-rpc for " + std::string(shell) + ", made by: duet-rpc completion " + std::string(shell) +
         "\n";
}

// ---- bash

Texts bash_options(std::span<const OptionEntry> options) {
  Texts out;
  for (const OptionEntry& option : options) {
    if (option.letter != '\0') out.push_back(std::string("-") + option.letter);
    out.push_back("--" + std::string(option.name));
  }
  return out;
}

// `--log-level) words='debug info' ;;`, indented as deep as it stands.
std::string bash_case(std::size_t depth, std::string_view pattern, std::string_view assignment, const Texts& words) {
  const std::string start = std::string(depth * 2, ' ') + std::string(pattern) + ") ";
  return start + std::string(assignment) + joined(words) + "' ;;\n";
}

// The values of every option that takes one. An option without choices offers nothing.
std::string bash_values(std::span<const OptionEntry> options) {
  std::string out;
  for (const OptionEntry& option : options) {
    if (!option.value.empty()) out += bash_case(2, "--" + std::string(option.name), "words='", texts(option.choices));
  }
  return out;
}

constexpr std::string_view bash_pattern = R"(_duet_rpc() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} command='' words='' i
  # Bash cuts --option=value into three words.
  if [[ $word == '=' ]]; then
    word=''
  elif [[ $before == '=' ]]; then
    before=${COMP_WORDS[COMP_CWORD - 2]}
  fi
  for ((i = 1; i < COMP_CWORD; i++)); do
    case ${COMP_WORDS[i]} in
      @COMMANDS@)
        command=${COMP_WORDS[i]}
        break
        ;;
    esac
  done
  case $before in
@VALUES@    *)
      if [[ $word == -* ]]; then
        words='@GLOBAL_OPTIONS@'
        case $command in
@OPTIONS@        esac
      else
        case $command in
@ARGUMENTS@        esac
      fi
      ;;
  esac
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}
complete -F _duet_rpc duet-rpc
)";

std::string bash_script() {
  std::string values = bash_values(global_options());
  std::string options;
  std::string arguments = bash_case(5, "''", "words='", command_names());
  for (const CommandEntry* command : listed_commands()) {
    values += bash_values(command->options);
    if (!command->options.empty()) options += bash_case(5, command->name, "words+=' ", bash_options(command->options));
    const ArgumentEntry& argument = command->argument;
    if (!argument.name.empty()) arguments += bash_case(5, command->name, "words='", texts(argument.choices));
  }
  return heading("bash") + filled(bash_pattern, {{"@COMMANDS@", joined(command_names(), " | ")},
                                                 {"@VALUES@", values},
                                                 {"@GLOBAL_OPTIONS@", joined(bash_options(global_options()))},
                                                 {"@OPTIONS@", options},
                                                 {"@ARGUMENTS@", arguments}});
}

// ---- zsh

std::string zsh_quoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

std::string zsh_option(const OptionEntry& option) {
  const std::string name = "--" + std::string(option.name);
  std::string rest = "[" + escaped(option.summary, "[]:") + "]";
  if (!option.value.empty()) {
    rest += ":" + std::string(option.value) + ":";
    rest += option.choices.empty() ? " " : "(" + joined(texts(option.choices)) + ")";
    rest = "=" + rest;
  }
  if (option.letter == '\0') return zsh_quoted(name + rest);
  const std::string letter = std::string("-") + option.letter;
  return "'(" + letter + " " + name + ")'{" + letter + "," + name + "}" + zsh_quoted(rest);
}

std::string zsh_options(std::span<const OptionEntry> options) {
  std::string out;
  for (const OptionEntry& option : options) out += "    " + zsh_option(option) + "\n";
  return out;
}

constexpr std::string_view zsh_pattern = R"(_duet-rpc() {
  local curcontext=$curcontext state line
  local -a options commands
  options=(
@OPTIONS@  )
  commands=(
@COMMANDS@  )
  _arguments -C $options '1: :->command' '*:: :->arguments'
  case $state in
    command) _describe command commands ;;
    arguments)
      case $line[1] in
@CASES@      esac
      ;;
  esac
}
if [[ $funcstack[1] == _duet-rpc ]]; then
  _duet-rpc "$@"
else
  compdef _duet-rpc duet-rpc
fi
)";

// What `_arguments` is told about a command's own options and its argument.
std::string zsh_specs(const CommandEntry& command) {
  std::string out;
  for (const OptionEntry& option : command.options) out += " " + zsh_option(option);
  const ArgumentEntry& argument = command.argument;
  if (argument.name.empty()) return out;
  return out + " " + zsh_quoted("1:" + std::string(argument.name) + ":(" + joined(texts(argument.choices)) + ")");
}

std::string zsh_script() {
  std::string names;
  std::string cases;
  for (const CommandEntry* command : listed_commands()) {
    const std::string name(command->name);
    names += "    " + zsh_quoted(name + ":" + escaped(command->summary, ":")) + "\n";
    cases += "        " + name + ") _arguments $options" + zsh_specs(*command) + " ;;\n";
  }
  return "#compdef duet-rpc\n" + heading("zsh") +
         filled(zsh_pattern, {{"@OPTIONS@", zsh_options(global_options())}, {"@COMMANDS@", names}, {"@CASES@", cases}});
}

// ---- fish

std::string fish_quoted(std::string_view text) { return "'" + escaped(text, "\\'") + "'"; }

std::string fish_options(std::span<const OptionEntry> options, std::string_view condition) {
  std::string out;
  for (const OptionEntry& option : options) {
    out.append("complete -c duet-rpc").append(condition);
    if (option.letter != '\0') out.append(" -s ") += option.letter;
    out.append(" -l ").append(option.name);
    if (!option.value.empty()) out += " -x";
    if (!option.choices.empty()) out += " -a " + fish_quoted(joined(texts(option.choices)));
    out += " -d " + fish_quoted(option.summary) + "\n";
  }
  return out;
}

std::string fish_script() {
  std::string out = heading("fish") + "complete -c duet-rpc -f\n" + fish_options(global_options(), "");
  for (const CommandEntry* command : listed_commands()) {
    const std::string name(command->name);
    const std::string inside = " -n '__fish_seen_subcommand_from " + name + "'";
    out += "complete -c duet-rpc -n __fish_use_subcommand -a " + name + " -d " + fish_quoted(command->summary) + "\n";
    out += fish_options(command->options, inside);
    if (!command->argument.name.empty()) {
      out += "complete -c duet-rpc" + inside + " -a " + fish_quoted(joined(texts(command->argument.choices))) + "\n";
    }
  }
  return out;
}

}  // namespace

std::string completion_script(std::string_view shell) {
  if (shell == "bash") return bash_script();
  if (shell == "zsh") return zsh_script();
  return fish_script();
}

}  // namespace duet::app
