#include "app/cli/shell_completion.h"

#include <algorithm>
#include <vector>

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

// Text without single quotes, between them.
std::string quoted(std::string_view text) { return "'" + std::string(text) + "'"; }

/// A `@MARK@` of a template, and what stands in its place.
struct Filling {
  std::string_view mark;
  std::string text;
};

std::string filled(std::string_view pattern, const std::vector<Filling>& fillings) {
  std::string out(pattern);
  for (const Filling& filling : fillings) {
    for (std::size_t at = out.find(filling.mark); at != std::string::npos; at = out.find(filling.mark, at)) {
      out.replace(at, filling.mark.size(), filling.text);
      at += filling.text.size();
    }
  }
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

Texts names_below(const CommandEntry* group) {
  Texts out;
  for (const CommandEntry* command : commands_below(group)) out.emplace_back(command->name());
  return out;
}

std::string heading(std::string_view shell) {
  return "# Completion of @PROGRAM@ for " + std::string(shell) + ", made by: @PROGRAM@ completion " +
         std::string(shell) + "\n";
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

// What is offered for a value: `words='debug info'`, or files, or what the daemon knows, or nothing.
std::string bash_offer(std::span<const std::string_view> choices, ValueKind kind) {
  if (const std::string_view asked = asked_kind(kind); !asked.empty()) return "asked=" + std::string(asked) + " ";
  if (!choices.empty()) return "words=" + quoted(joined(texts(choices))) + " ";
  if (kind == ValueKind::file) return "files=-f ";
  if (kind == ValueKind::folder) return "files=-d ";
  return "";
}

std::string bash_case(std::size_t depth, std::string_view pattern, std::string_view action) {
  return std::string(depth * 2, ' ') + std::string(pattern) + ") " + std::string(action) + ";;\n";
}

// The options that take a value, as patterns of the command's path and the word before. `path` may be a star.
Texts bash_valued(std::span<const OptionEntry> options, std::string_view path, std::string* cases) {
  Texts out;
  for (const OptionEntry& option : options) {
    if (option.value.empty()) continue;
    std::string pattern = std::string(path) + "' --" + std::string(option.name) + "'";
    if (option.letter != '\0') pattern += " | " + std::string(path) + "' -" + option.letter + "'";
    out.push_back(pattern);
    *cases += bash_case(2, pattern, bash_offer(option.choices, option.kind));
  }
  return out;
}

constexpr std::string_view bash_pattern = R"(@FUNCTION@() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} path='' words='' files='' asked='' name i
  # Bash cuts --option=value into three words.
  if [[ $word == '=' ]]; then
    word=''
  elif [[ $before == '=' ]]; then
    before=${COMP_WORDS[COMP_CWORD - 2]}
  fi
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "$path ${COMP_WORDS[i - 1]}" in
      *' =' | @VALUED@) continue ;;
    esac
    case "$path ${COMP_WORDS[i]}" in
      @PATHS@) path+="${path:+ }${COMP_WORDS[i]}" ;;
    esac
  done
  case "$path $before" in
@VALUES@    *)
      if [[ $word == -* ]]; then
        words='@GLOBAL_OPTIONS@'
        case $path in
@OPTIONS@        esac
      else
        case $path in
@ARGUMENTS@        esac
      fi
      ;;
  esac
  if [[ -n $asked ]]; then
    # Names may have any characters. None of them is for the shell: compgen -W would execute them.
    COMPREPLY=()
    while IFS= read -r name; do
      if [[ $name == "$word"* ]]; then
        printf -v name %q "$name"
        COMPREPLY+=("$name")
      fi
    done < <("${COMP_WORDS[0]/#\~/$HOME}" candidates "$asked" -- "${COMP_WORDS[@]}" 2>/dev/null | cut -f1)
  elif [[ -n $files ]]; then
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <(compgen "$files" -- "$word")
  else
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
  fi
}
complete -F @FUNCTION@ @PROGRAM@
)";

std::string bash_options_case(const CommandEntry& command) {
  Texts words;
  if (command.client || command.group) words = bash_options(client_options(&command));
  std::ranges::copy(bash_options(command.options), std::back_inserter(words));
  if (words.empty()) return {};
  return bash_case(5, quoted(command.path), "words+=" + quoted(" " + joined(words)) + " ");
}

std::string bash_arguments_case(const CommandEntry& command) {
  std::string offer;
  if (command.group) offer = "words=" + quoted(joined(names_below(&command))) + " ";
  if (!command.arguments.empty()) offer = bash_offer(command.arguments.front().choices, command.arguments.front().kind);
  return offer.empty() ? offer : bash_case(5, quoted(command.path), offer);
}

std::string bash_script() {
  std::string values;
  Texts valued = bash_valued(global_options(), "*", &values);
  std::ranges::copy(bash_valued(client_options(), "*", &values), std::back_inserter(valued));
  Texts paths;
  std::string options = bash_case(5, "''", "words+=" + quoted(" " + joined(bash_options(client_options()))) + " ");
  std::string arguments = bash_case(5, "''", "words=" + quoted(joined(names_below(nullptr))) + " ");
  for (const CommandEntry* command : listed_commands()) {
    const std::string path(command->path);
    paths.push_back(quoted(path.find(' ') == std::string::npos ? " " + path : path));
    std::ranges::copy(bash_valued(command->options, quoted(path), &values), std::back_inserter(valued));
    options += bash_options_case(*command);
    arguments += bash_arguments_case(*command);
  }
  return heading("bash") + filled(bash_pattern, {{"@VALUED@", joined(valued, " | ")},
                                                 {"@PATHS@", joined(paths, " | ")},
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

std::string zsh_action(std::span<const std::string_view> choices, ValueKind kind) {
  if (!choices.empty()) return "(" + joined(texts(choices)) + ")";
  if (kind == ValueKind::file) return "_files";
  if (kind == ValueKind::folder) return "_files -/";
  if (const std::string_view asked = asked_kind(kind); !asked.empty()) return " @FUNCTION@_ask " + std::string(asked);
  return " ";
}

std::string zsh_option(const OptionEntry& option) {
  const std::string name = "--" + std::string(option.name) + (option.value.empty() ? "" : "=");
  std::string rest = "[" + escaped(option.summary, "[]:") + "]";
  if (!option.value.empty()) rest += ":" + std::string(option.value) + ":" + zsh_action(option.choices, option.kind);
  if (option.letter == '\0') return zsh_quoted((option.repeatable ? "*" : "") + name + rest);
  const std::string letter = std::string("-") + option.letter;
  const std::string forms = letter + (option.value.empty() ? "," : "+,") + name;
  return "'(" + letter + " --" + std::string(option.name) + ")'{" + forms + "}" + zsh_quoted(rest);
}

std::string zsh_options(std::span<const OptionEntry> options) {
  std::string out;
  for (const OptionEntry& option : options) out += "    " + zsh_option(option) + "\n";
  return out;
}

// `chain` is the command's path; the name `path` belongs to zsh.
constexpr std::string_view zsh_pattern = R"(@FUNCTION@_ask() {
  local -a found
  found=("${(@f)$("${typed[1]/#\~/$HOME}" candidates $1 -- "${(@)typed}" 2>/dev/null)}")
  found=(${(@)${(@)found//:/\\:}/$'\t'/:})
  _describe "$1" found
}
_@PROGRAM@() {
  local curcontext=$curcontext state line chain
  local -a typed=("${(@)words}")
  local -a global client commands
  global=(
@GLOBAL@  )
  client=(
@CLIENT@  )
  commands=(
@COMMANDS@  )
  _arguments -C $global $client '1: :->command' '*:: :->arguments'
  if [[ $state == command ]]; then
    _describe command commands
    return
  fi
  chain=$line[1]
  commands=()
  case $chain in
@GROUPS@  esac
  if (( $#commands )); then
    state=
    _arguments -C $global $client '1: :->command' '*:: :->arguments'
    if [[ $state == command ]]; then
      _describe command commands
      return
    fi
    chain+=" $line[1]"
  fi
  case $chain in
@CASES@  esac
}
if [[ $funcstack[1] == _@PROGRAM@ ]]; then
  _@PROGRAM@ "$@"
else
  compdef _@PROGRAM@ @PROGRAM@
fi
)";

std::string zsh_argument(const ArgumentEntry& argument, std::size_t place) {
  const bool many = argument.count == ArgumentEntry::Count::many || argument.count == ArgumentEntry::Count::any;
  const std::string where =
      many ? "*" : std::to_string(place) + (argument.count == ArgumentEntry::Count::optional ? ":" : "");
  const std::string name = escaped(argument.name, "[]:");
  return zsh_quoted(where + ":" + name + ":" + zsh_action(argument.choices, argument.kind));
}

// Those that the command has.
std::string zsh_client_options(const CommandEntry& command) {
  std::string others;
  for (const OptionEntry& option : client_options()) {
    if (find_option(&command, option.name) != &option) others.append(others.empty() ? "" : "|").append(option.name);
  }
  return others.empty() ? " $client" : " ${client:#--(" + others + ")*}";
}

// What `_arguments` is told about a command's own options and its arguments. A letter that means something else to the
// command than to the program is the command's.
std::string zsh_specs(const CommandEntry& command) {
  std::string out = " $global";
  for (const OptionEntry& option : global_options()) {
    if (option.letter == '\0' || find_option(&command, option.letter) == &option) continue;
    out = " ${global:#*-" + std::string(1, option.letter) + R"(\[*})";
  }
  if (command.client) out += zsh_client_options(command);
  for (const OptionEntry& option : command.options) out += " " + zsh_option(option);
  for (std::size_t i = 0; i < command.arguments.size(); ++i) out += " " + zsh_argument(command.arguments[i], i + 1);
  return out;
}

std::string zsh_names_below(const CommandEntry* group, std::string_view indent) {
  std::string out;
  for (const CommandEntry* command : commands_below(group)) {
    const std::string name(command->name());
    out += std::string(indent) + zsh_quoted(name + ":" + escaped(command->summary, ":")) + "\n";
  }
  return out;
}

std::string zsh_script() {
  std::string groups;
  std::string cases;
  for (const CommandEntry* command : listed_commands()) {
    if (command->group) {
      groups += "    " + std::string(command->path) + ")\n      commands=(\n" + zsh_names_below(command, "        ") +
                "      )\n      ;;\n";
    } else {
      cases += "    " + quoted(command->path) + ") _arguments" + zsh_specs(*command) + " ;;\n";
    }
  }
  return "#compdef @PROGRAM@\n" + heading("zsh") +
         filled(zsh_pattern, {{"@GLOBAL@", zsh_options(global_options())},
                              {"@CLIENT@", zsh_options(client_options())},
                              {"@COMMANDS@", zsh_names_below(nullptr, "    ")},
                              {"@GROUPS@", groups},
                              {"@CASES@", cases}});
}

// ---- fish

std::string fish_quoted(std::string_view text) { return "'" + escaped(text, "\\'") + "'"; }

std::string fish_offer(std::span<const std::string_view> choices, ValueKind kind) {
  if (!choices.empty()) return " -a " + fish_quoted(joined(texts(choices)));
  if (kind == ValueKind::file) return " -F";
  if (kind == ValueKind::folder) return " -a '(__fish_complete_directories)'";
  if (const std::string_view asked = asked_kind(kind); !asked.empty()) {
    return " -a '(@PROGRAM@ candidates " + std::string(asked) + " -- (commandline -opc) 2>/dev/null)'";
  }
  return "";
}

// True for who stands at one of these commands; `""` is at none yet.
std::string fish_at(const Texts& paths) {
  std::string out = "@FUNCTION@_at";
  for (const std::string& path : paths) out.append(" \"").append(path).append("\"");
  return out;
}

std::string fish_option(const OptionEntry& option, std::string_view condition) {
  std::string out = "complete -c @PROGRAM@";
  if (!condition.empty()) out.append(" -n '").append(condition).append("'");
  if (option.letter != '\0') out.append(" -s ") += option.letter;
  out.append(" -l ").append(option.name);
  if (!option.value.empty()) out += option.kind == ValueKind::file ? " -r" : " -x";
  return out + fish_offer(option.choices, option.kind) + " -d " + fish_quoted(option.summary) + "\n";
}

// An option of clients goes with every command but those that do not know it.
std::string fish_client_options() {
  std::string out;
  for (const OptionEntry& option : client_options()) {
    Texts others;
    for (const CommandEntry* command : listed_commands()) {
      if (find_option(command, option.name) != &option) others.emplace_back(command->path);
    }
    out += fish_option(option, "not " + fish_at(others));
  }
  return out;
}

// What is offered below a group, or below the program, while no command has been named there.
std::string fish_names_below(const CommandEntry* group) {
  const std::string where = fish_at({group == nullptr ? std::string() : std::string(group->path)});
  std::string out;
  for (const CommandEntry* command : commands_below(group)) {
    out += "complete -c @PROGRAM@ -n '" + where + "' -a " + std::string(command->name()) + " -d " +
           fish_quoted(command->summary) + "\n";
  }
  return out;
}

// Behind a whole command only its own words come, whatever they look like.
constexpr std::string_view fish_pattern = R"(function @FUNCTION@_at
  set -l chain ''
  set -l before ''
  for word in (commandline -opc)[2..-1]
    contains -- "$chain" @LEAVES@; and break
    if not string match -q -- '-*' "$word"; and not contains -- "$before" @VALUED@
      set chain (string trim "$chain $word")
    end
    set before "$word"
  end
  contains -- "$chain" $argv
end
complete -c @PROGRAM@ -f
)";

std::string fish_function() {
  Texts leaves;
  Texts valued;
  for (const CommandEntry* command : listed_commands()) {
    if (!command->group) leaves.push_back(quoted(command->path));
  }
  for (const std::span<const OptionEntry> list : option_lists(nullptr)) {
    for (const OptionEntry& option : list) {
      if (!option.value.empty()) valued.push_back("--" + std::string(option.name));
    }
  }
  return filled(fish_pattern, {{"@LEAVES@", joined(leaves)}, {"@VALUED@", joined(valued)}});
}

std::string fish_script() {
  std::string out = heading("fish") + fish_function();
  for (const OptionEntry& option : global_options()) out += fish_option(option, "");
  out += fish_client_options() + fish_names_below(nullptr);
  for (const CommandEntry* command : listed_commands()) {
    const std::string inside = fish_at({std::string(command->path)});
    if (command->group) out += fish_names_below(command);
    for (const OptionEntry& option : command->options) out += fish_option(option, inside);
    if (command->arguments.empty()) continue;
    const std::string offer = fish_offer(command->arguments.front().choices, command->arguments.front().kind);
    if (!offer.empty()) out.append("complete -c @PROGRAM@ -n '").append(inside).append("'").append(offer).append("\n");
  }
  return out;
}

}  // namespace

std::string completion_script(std::string_view shell, std::string_view program) {
  std::string function = "_" + std::string(program);
  std::ranges::replace(function, '-', '_');
  const std::string script = shell == "bash" ? bash_script() : shell == "zsh" ? zsh_script() : fish_script();
  return filled(script, {{"@PROGRAM@", std::string(program)}, {"@FUNCTION@", function}});
}

}  // namespace duet::app
