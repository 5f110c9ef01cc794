#include "app/cli/command_line.h"

#include <algorithm>
#include <cassert>
#include <cctype>
#include <initializer_list>
#include <utility>

#include "app/cli/option_value.h"
#include "app/words/bytes.h"
#include "app/words/duration.h"
#include "app/words/near_miss.h"
#include "app/words/number.h"
#include "app/words/task_name.h"

namespace duet::app {
namespace {

std::string in_quotes(std::string_view text) { return "'" + std::string(text) + "'"; }

std::string long_name(const OptionEntry& option) { return "--" + std::string(option.name); }

bool looks_like_option(std::string_view word) {
  if (word.size() < 2 || word[0] != '-') return false;
  return std::isdigit(static_cast<unsigned char>(word[1])) == 0 && word[1] != '.';
}

std::string meant_option(std::string_view word, const CommandEntry* command) {
  word.remove_prefix(std::min(word.find_first_not_of('-'), word.size()));
  std::vector<std::string_view> names;
  for (const std::span<const OptionEntry> list : option_lists(command)) {
    for (const OptionEntry& option : list) {
      if (word.size() == 1 && std::tolower(word.front()) == std::tolower(option.letter)) return long_name(option);
      names.push_back(option.name);
    }
  }
  const std::string_view found = near_miss(word, names);
  return found.empty() ? std::string() : "--" + std::string(found);
}

std::string meant_command(std::string_view word, const CommandEntry* group) {
  std::vector<std::string_view> names;
  for (const CommandEntry* command : commands_below(group)) names.push_back(command->name());
  const std::string_view found = near_miss(word, names);
  if (!found.empty()) return (group == nullptr ? "" : std::string(group->path) + " ") + std::string(found);
  if (group != nullptr) return {};
  for (const CommandEntry& command : commands()) {
    if (command.listed && command.name() == word) return std::string(command.path);
  }
  return meant_option(word, nullptr);
}

bool belongs_to_a_command(std::string_view option) {
  return std::ranges::any_of(commands(), [&](const CommandEntry& command) {
    return command.listed && std::ranges::find(command.options, option, &OptionEntry::name) != command.options.end();
  });
}

/// Goes through the words from left to right, and stops at the first that is wrong.
class Parser {
 public:
  Parser(std::span<const char* const> words, std::string_view program) : words_(words) { line_.program = program; }

  std::variant<CommandLine, UsageError> parse() {
    while (next_ < words_.size() && !error_) read(words_[next_++]);
    if (!error_ && !line_.help && !line_.version) check_whole();
    if (!error_) return std::move(line_);
    error_->no_color = is_among_words({"-n", "--no-color"});
    error_->program = line_.program;
    error_->ends_with_task = would_end_with_task();
    return std::move(*error_);
  }

 private:
  void fail(std::string message, std::string suggestion = {}) {
    error_ = UsageError{std::move(message), std::move(suggestion), line_.command};
  }

  void read(std::string_view word) {
    if (options_ended_ || word.size() < 2 || word[0] != '-') return read_word(word);
    if (word == "--") {
      options_ended_ = true;
    } else if (word[1] == '-') {
      read_long_option(word);
    } else {
      read_letters(word);
    }
  }

  void read_word(std::string_view word) {
    if (line_.command != nullptr && !line_.command->group) return read_argument(word);
    const std::string above = line_.command == nullptr ? "" : std::string(line_.command->path) + " ";
    const std::string path = above + std::string(word);
    const CommandEntry* const found = word.find(' ') == std::string_view::npos ? find_command(path) : nullptr;
    if (found == nullptr) return fail("unknown command " + in_quotes(path), meant_command(word, line_.command));
    line_.command = found;
  }

  void read_argument(std::string_view word) {
    const std::span<const ArgumentEntry> entries = line_.command->arguments;
    const bool into_last = !entries.empty() && (entries.back().count == ArgumentEntry::Count::many ||
                                                entries.back().count == ArgumentEntry::Count::any);
    const std::size_t index = line_.arguments.size();
    if (index >= entries.size() && !into_last) return fail("unexpected argument " + in_quotes(word));
    const ArgumentEntry& entry = entries[std::min(index, entries.size() - 1)];
    const std::span<const std::string_view> choices = entry.choices;
    if (!choices.empty() && std::ranges::find(choices, word) == choices.end()) {
      return fail("bad " + std::string(entry.name) + " " + in_quotes(word) + ": it is one of " + one_of(choices),
                  std::string(near_miss(word, {choices.begin(), choices.end()})));
    }
    line_.arguments.push_back(is_task(entry.kind) ? task_name(word) : std::string(word));
  }

  void read_long_option(std::string_view word) {
    const std::size_t equals = word.find('=');
    const std::string_view name = word.substr(0, equals);
    const OptionEntry* const option = find_option(line_.command, name.substr(2));
    if (option == nullptr) return unknown_option(name);
    if (equals == std::string_view::npos) return take(*option, name);
    give(*option, name, word.substr(equals + 1));
  }

  // `-nf`, `-n5`, `-n 5`: flags may be put together, and the first that takes a value takes the rest.
  void read_letters(std::string_view word) {
    for (std::size_t i = 1; i < word.size() && !error_; ++i) {
      const OptionEntry* const option = find_option(line_.command, word[i]);
      if (option == nullptr) return unknown_option(word.substr(0, word.find('=')));
      const std::string shown = {'-', word[i]};
      const std::string_view rest = word.substr(i + 1);
      const bool ends_here = !option->value.empty() || rest.starts_with('=');
      if (!ends_here || rest.empty()) {
        take(*option, shown);
      } else {
        return give(*option, shown, rest.substr(rest.starts_with('=') ? 1 : 0));
      }
    }
  }

  void unknown_option(std::string_view name) {
    const OptionEntry* const known = name.starts_with("--") ? find_option(nullptr, name.substr(2)) : nullptr;
    if (known != nullptr && is_refused_far(*known)) return refuse_client_option(*known);
    const bool too_early = (line_.command == nullptr || line_.command->group) && name.starts_with("--") &&
                           belongs_to_a_command(name.substr(2));
    if (too_early) return fail("option " + in_quotes(name) + " goes after the command it belongs to");
    fail("unknown option " + in_quotes(name), meant_option(name, line_.command));
  }

  // An option whose value, if it takes one, is the next word.
  void take(const OptionEntry& option, std::string_view shown) {
    if (option.value.empty() || !option.usual.empty()) return accept(option, std::string(option.usual));
    const bool has_next = next_ < words_.size() && !looks_like_option(words_[next_]);
    if (!has_next) return fail("option " + in_quotes(shown) + " needs a value");
    give(option, shown, words_[next_++]);
  }

  void give(const OptionEntry& option, std::string_view shown, std::string_view word) {
    if (option.value.empty()) return fail("option " + in_quotes(shown) + " takes no value");
    std::variant<std::string, BadValue> checked = checked_value(option, word);
    if (auto* bad = std::get_if<BadValue>(&checked)) return fail(std::move(bad->message), std::move(bad->suggestion));
    accept(option, std::get<std::string>(std::move(checked)));
  }

  void accept(const OptionEntry& option, std::string value) {
    if (option.name == "help") line_.help = true;
    if (option.name == "version") line_.version = true;
    if (option.name == "no-color") line_.no_color = true;
    if (option.name == "log-level") line_.log_level = base::parse_level(value);
    if (option.name == "read-timeout") line_.read_timeout = *parse_duration(value);
    line_.options.push_back({&option, std::move(value)});
  }

  void check_whole() {
    const CommandEntry* const command = line_.command;
    if (command == nullptr || !command->group) refuse_client_options();
    if (error_ || command == nullptr) return;
    if (command->group) return fail("COMMAND is missing: " + one_of(names_below(command)));
    if (line_.arguments.size() >= command->arguments.size()) return;
    const ArgumentEntry& missing = command->arguments[line_.arguments.size()];
    if (missing.count == ArgumentEntry::Count::optional || missing.count == ArgumentEntry::Count::any) return;
    const std::string choices = missing.choices.empty() ? "" : ": " + one_of(missing.choices);
    fail(std::string(missing.name) + " is missing" + choices);
  }

  // They are taken before the command is known, which may have only some of them, none, or one of its own by that name.
  void refuse_client_options() {
    const bool has_some = line_.command != nullptr && line_.command->client;
    const auto allowed = has_some ? client_options(line_.command) : std::span<const OptionEntry>();
    const auto own = line_.command == nullptr ? std::span<const OptionEntry>() : line_.command->options;
    for (const CommandLine::Given& given : line_.options) {
      const auto same = [&](const OptionEntry& option) { return &option == given.option; };
      if (std::ranges::none_of(client_options(), same) || std::ranges::any_of(allowed, same)) continue;
      if (std::ranges::find(own, given.option->name, &OptionEntry::name) != own.end()) continue;
      return refuse_client_option(*given.option);
    }
    if (has_some) refuse_two_places();
  }

  bool is_refused_far(const OptionEntry& option) const {
    return line_.command != nullptr && !line_.command->only_here.empty() && leads_far(option);
  }

  void refuse_client_option(const OptionEntry& option) {
    std::string where = line_.command == nullptr ? " needs a command" : " does not go with this command";
    if (is_refused_far(option)) where += ": " + std::string(line_.command->only_here);
    fail("option " + in_quotes(long_name(option)) + where);
  }

  void refuse_two_places() {
    const auto is_given = [this](std::string_view name) {
      return std::ranges::any_of(line_.options, [&](const auto& given) { return given.option->name == name; });
    };
    if (!is_given("connect") || (!is_given("project") && !is_given("socket"))) return;
    fail("--connect says which daemon is meant: it goes with neither --project nor --socket");
  }

  static std::vector<std::string_view> names_below(const CommandEntry* group) {
    std::vector<std::string_view> names;
    for (const CommandEntry* command : commands_below(group)) names.push_back(command->name());
    return names;
  }

  // A fault may stand before the command, and before --follow.
  bool would_end_with_task() const {
    const CommandEntry* command = line_.command;
    for (std::size_t i = next_; i < words_.size() && (command == nullptr || command->group); ++i) {
      const std::string above = command == nullptr ? "" : std::string(command->path) + " ";
      const CommandEntry* const below = find_command(above + words_[i]);
      if (below != nullptr) command = below;
    }
    if (command == nullptr || !command->ends_with_task) return false;
    return find_option(command, "follow") == nullptr || asks_to_follow();
  }

  // `--follow`, `-f`, or that letter among others.
  bool asks_to_follow() const {
    const auto behind_options = std::ranges::find(words_, std::string_view("--"));
    return std::any_of(words_.begin(), behind_options, [](std::string_view word) {
      const bool letters = word.starts_with('-') && !word.starts_with("--");
      return word == "--follow" || (letters && word.find('f') != std::string_view::npos);
    });
  }

  // Also what was not read any more counts.
  bool is_among_words(std::initializer_list<std::string_view> wanted) const {
    return std::ranges::any_of(words_, [&](std::string_view word) { return std::ranges::count(wanted, word) > 0; });
  }

  std::span<const char* const> words_;
  std::size_t next_ = 0;
  bool options_ended_ = false;
  CommandLine line_;
  std::optional<UsageError> error_;
};

}  // namespace

const CommandLine::Given* CommandLine::last(std::string_view name) const {
  assert(find_option(command, name) != nullptr);
  const auto found =
      std::find_if(options.rbegin(), options.rend(), [&](const Given& given) { return given.option->name == name; });
  return found == options.rend() ? nullptr : &*found;
}

std::optional<std::string> CommandLine::text(std::string_view name) const {
  const Given* const given = last(name);
  return given == nullptr ? std::nullopt : std::optional(given->value);
}

std::vector<std::string> CommandLine::texts(std::string_view name) const {
  std::vector<std::string> out;
  for (const Given& given : options) {
    if (given.option->name == name) out.push_back(given.value);
  }
  return out;
}

std::optional<std::int64_t> CommandLine::number(std::string_view name) const {
  const Given* const given = last(name);
  return given == nullptr ? std::nullopt : parse_number(given->value);
}

std::optional<double> CommandLine::decimal(std::string_view name) const {
  const Given* const given = last(name);
  return given == nullptr ? std::nullopt : parse_decimal(given->value);
}

std::optional<std::uint64_t> CommandLine::bytes(std::string_view name) const {
  const Given* const given = last(name);
  return given == nullptr ? std::nullopt : parse_bytes(given->value);
}

std::optional<std::chrono::milliseconds> CommandLine::duration(std::string_view name) const {
  const Given* const given = last(name);
  return given == nullptr ? std::nullopt : parse_duration(given->value);
}

bool CommandLine::ends_with_task() const {
  if (command == nullptr || !command->ends_with_task) return false;
  return find_option(command, "follow") == nullptr || flag("follow");
}

std::variant<CommandLine, UsageError> parse_command_line(std::span<const char* const> arguments,
                                                         std::string_view program) {
  return Parser(arguments, program).parse();
}

}  // namespace duet::app
