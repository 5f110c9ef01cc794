#include "task/shell_agent.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace duet::task {
namespace {

using Words = std::span<const std::string>;
using Text = std::string_view;

/// A program that executes text, and its options.
struct Interpreter {
  Text name;
  Text code;             // letters of options with code behind them, alone or among others: `-lc`
  Text code_names = "";  // the same as words, each with a blank behind it
  Text value = "";       // letters of options that take the next word
  Text value_names = "";
  Text last = "";            // letters of options with the name of a program behind them, whose words the rest are
  bool is_language = false;  // no shell: `-s` is not stdin, and it has more options than are listed here
};

constexpr Text node_values = "--require --import --loader --experimental-loader --conditions --env-file --title ";

constexpr Interpreter interpreters[] = {
    {"sh", "c", "", "oO"},
    {"bash", "c", "", "oO", "--rcfile --init-file "},
    {"rbash", "c", "", "oO", "--rcfile --init-file "},
    {"dash", "c", "", "o"},
    {"ash", "c", "", "o"},
    {"hush", "c"},
    {"zsh", "c", "", "o"},
    {"ksh", "c", "", "o"},
    {"mksh", "c", "", "o"},
    {"pdksh", "c", "", "o"},
    {"oksh", "c", "", "o"},
    {"yash", "c", "", "o"},
    {"osh", "c", "", "oO"},
    {"csh", "c"},
    {"tcsh", "c"},
    {"fish", "cC", "--command --init-command "},
    {"elvish", "c"},
    {"nu", "c", "--commands "},
    {"xonsh", "c"},
    {"python", "c", "", "WX", "", "m", true},
    {"perl", "eE", "", "I", "", "", true},
    {"ruby", "e", "", "rICE", "", "", true},
    {"node", "ep", "--eval --print ", "rC", node_values, "", true},
    {"nodejs", "ep", "--eval --print ", "rC", node_values, "", true},
    {"php", "rRBE", "--run ", "cd", "", "fF", true},
    {"lua", "e", "", "l", "", "", true},
};

// What a language executes as a file.
constexpr Text script_endings[] = {".py", ".pyz", ".pl",  ".rb",  ".js",   ".mjs", ".cjs",
                                   ".ts", ".mts", ".cts", ".php", ".phar", ".lua"};

// What stands behind one of these becomes, joined or not, a line for a shell or code.
constexpr Text passing_on[] = {"script", "watch", "tmux", "screen", "xargs",  "parallel", "at", "batch",
                               "awk",    "gawk",  "mawk", "sed",    "expect", "flock",    "sg", "nix-shell"};

// The same, and hardly anything else is called so: they count wherever they stand.
constexpr Text surely_passing_on[] = {"ssh", "autossh", "mosh", "rsh", "su", "runuser", "pwsh", "powershell"};

// These start the program that stands behind them.
constexpr Text wrappers[] = {"env",      "nice",    "ionice",  "chrt",        "taskset", "timeout",   "time",
                             "nohup",    "setsid",  "stdbuf",  "unbuffer",    "sudo",    "doas",      "busybox",
                             "docker",   "podman",  "kubectl", "systemd-run", "sshpass", "bwrap",     "chroot",
                             "nsenter",  "unshare", "setpriv", "prlimit",     "numactl", "direnv",    "mise",
                             "op",       "asdf",    "nix",     "firejail",    "toolbox", "distrobox", "strace",
                             "xvfb-run", "gosu"};

template <std::size_t Size>
bool is_one_of(const Text (&names)[Size], Text name) {
  return std::ranges::find(names, name) != std::end(names);
}

bool has_prompt(Text word) { return word.find("{prompt}") != word.npos; }

Text base_name(Text word) { return word.substr(word.rfind('/') + 1); }  // npos + 1 is 0

// `python3.11` is `python`, `lua5.4` is `lua`.
Text without_version(Text name) {
  const std::size_t end = name.find_last_not_of("0123456789.");
  return end == name.npos ? name : name.substr(0, end + 1);
}

const Interpreter* interpreter_called(Text word) {
  const auto* const found = std::ranges::find(interpreters, without_version(base_name(word)), &Interpreter::name);
  return found == std::end(interpreters) ? nullptr : found;
}

// Several words in one, as in `env -S "bash -lc"`.
bool names_interpreter_inside(Text word) {
  if (word.find(' ') == word.npos) return false;
  while (!word.empty()) {
    const std::size_t end = std::min(word.find_first_of(" \t"), word.size());
    if (interpreter_called(word.substr(0, end)) != nullptr) return true;
    word.remove_prefix(std::min(end + 1, word.size()));
  }
  return false;
}

bool is_option(Text word) { return word.size() > 1 && (word[0] == '-' || word[0] == '+'); }

bool is_script(Text word) {
  return std::ranges::any_of(script_endings, [&](Text ending) { return word.ends_with(ending); });
}

bool is_listed(Text names, Text name) { return names.find(std::string(name) + ' ') != names.npos; }

/// Looks at the words behind the name of an interpreter: does it execute the prompt?
class InterpreterCall {
 public:
  /// `surely`: the name is that of the program, not perhaps a word like any other.
  InterpreterCall(const Interpreter& interpreter, Words words, bool on_stdin, bool surely)
      : interpreter_(interpreter), words_(words), on_stdin_(on_stdin), surely_(surely) {}

  bool executes_prompt() {
    for (; at_ < words_.size() && !is_last_; ++at_) {
      const Text word = words_[at_];
      const bool is_value = may_be_value(word);
      if (!is_option(word) && !is_value) break;
      if (is_value && !guessed_) guessed_ = at_;
      may_have_value_ = false;
      if (is_value) continue;
      if (word == "--") {
        ++at_;
        break;
      }
      if (take_option(word)) return true;
    }
    return executes_operand();
  }

  /// How many words are of no further interest: code is no program, nor is the name that a shell gives to it.
  std::size_t used() const {
    if (guessed_ && !has_code_) return *guessed_ + 1;
    const std::size_t behind = std::min(at_ + 1, words_.size());
    const bool is_name = has_code_ && behind + 1 < words_.size() && !words_[behind + 1].starts_with('-');
    return behind + (is_name && !has_prompt(words_[behind]) ? 1 : 0);
  }

 private:
  // Of an option that is not known here; or it is the file that is executed.
  bool may_be_value(Text word) const {
    return may_have_value_ && !is_option(word) && !has_prompt(word) && !is_script(word);
  }

  // Of those that people use, and that have no value.
  static bool is_switch(Text word) {
    constexpr Text beginnings[] = {"--no-", "--enable-", "--trace-", "--use-", "--harmony", "--experimental-"};
    constexpr Text letters = "uBIEOSvwWd";
    const auto begins = [word](Text beginning) { return word.starts_with(beginning); };
    if (word.starts_with("--")) return std::ranges::any_of(beginnings, begins);
    return word.find_first_not_of(letters, 1) == Text::npos;
  }

  // True: the prompt stands in the option itself.
  bool take_option(Text word) {
    const Text name = word.substr(0, word.find('='));
    const bool is_long = word.starts_with("--");
    const bool is_code =
        is_long ? is_listed(interpreter_.code_names, name) : word.find_first_of(interpreter_.code, 1) != word.npos;
    if (is_code && has_prompt(word)) return true;
    has_code_ = has_code_ || is_code;
    reads_stdin_ = reads_stdin_ || (!is_long && !interpreter_.is_language && word.find('s', 1) != word.npos);
    is_last_ = !is_long && !is_code && word.find_first_of(interpreter_.last, 1) != word.npos;
    const bool takes_next =
        is_long ? is_listed(interpreter_.value_names, word) : interpreter_.value.find(word.back()) != Text::npos;
    if (takes_next) ++at_;
    may_have_value_ = interpreter_.is_language && !is_code && !takes_next && name == word && !is_switch(word);
    return false;
  }

  // The text behind -c, a file, or stdin.
  bool executes_operand() const {
    const bool is_there = at_ < words_.size() && words_[at_] != "-";
    if (has_code_) return is_there && has_prompt(words_[at_]);
    if (!surely_ || guessed_) return false;
    return is_there && !reads_stdin_ ? has_prompt(words_[at_]) : on_stdin_;
  }

  const Interpreter& interpreter_;
  Words words_;
  bool on_stdin_;
  bool surely_;
  std::size_t at_ = 0;
  std::optional<std::size_t> guessed_;  // the first that is perhaps an option's value
  bool has_code_ = false;
  bool reads_stdin_ = false;
  bool may_have_value_ = false;  // the option before
  bool is_last_ = false;         // of the interpreter's own options
};

bool passes_on(Text word, bool may_be_program) {
  const Text name = base_name(word);
  return is_one_of(surely_passing_on, name) || (may_be_program && is_one_of(passing_on, name));
}

bool any_has_prompt(Words words) { return std::ranges::any_of(words, has_prompt); }

}  // namespace

bool hands_prompt_to_shell(const Agent& agent) {
  if (agent.shell) return true;
  const Words all = agent.command;
  bool may_be_program = true;  // wrappers have options, which may look like anything
  for (Words words = all; !words.empty();) {
    const Text word = words.front();
    const Words rest = words.subspan(1);
    std::size_t used = 0;
    if (passes_on(word, may_be_program) && ((may_be_program && agent.prompt_on_stdin) || any_has_prompt(rest))) {
      return true;
    }
    if (const Interpreter* const interpreter = interpreter_called(word)) {
      InterpreterCall call(*interpreter, rest, agent.prompt_on_stdin, may_be_program);
      if (call.executes_prompt()) return true;
      used = call.used();
    } else if (names_interpreter_inside(word) && (has_prompt(word) || any_has_prompt(rest))) {
      return true;
    }
    may_be_program = is_one_of(wrappers, base_name(all.front()));
    words = rest.subspan(used);
  }
  return false;
}

}  // namespace duet::task
