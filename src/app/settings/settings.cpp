#include "app/settings/settings.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "app/settings/settings_file.h"
#include "app/settings/settings_rules.h"
#include "app/settings/settings_section.h"
#include "app/words/number.h"
#include "bridge/choice.h"
#include "pattern/glob.h"

namespace duet::app {
namespace {

using Text = std::string_view;

constexpr Text project_file = ".duet-rpc.toml";

constexpr Text top_names[] = {"default_agent", "max_running", "queue_capacity", "keep_days", "keep_tasks",
                              "agents",        "watch",       "rules",          "lsp"};
constexpr Text agent_names[] = {"command", "stdin"};
constexpr Text stdin_choices[] = {"prompt"};
constexpr Text watch_names[] = {"paths", "ignore"};
constexpr Text server_names[] = {"command", "files", "roots", "env", "max_memory", "max_body", "idle"};

constexpr std::size_t longest_name = 64;

// The names of agents, servers and rules are shown in tables and typed on command lines.
void check_name(SettingFaults& faults, SettingPlace place, Text what, Text name) {
  const bool control = std::ranges::any_of(name, [](char c) { return static_cast<unsigned char>(c) < 0x20; });
  if (!name.empty() && name.size() <= longest_name && !control) return;
  faults.add(place, std::string(what) + " '" + shown(name) + "': a name has 1 to 64 bytes and no control characters");
}

// What is outside the project is not watched, and names are compared as they are written.
std::string path_fault(Text path) {
  if (path.starts_with('/')) return "a path within the project, from its root: 'src'";
  for (const auto& name : std::filesystem::path(path)) {
    if (name == "..") return "a path within the project, without '..'";
  }
  return "";
}

std::string glob_fault(Text glob) {
  const auto parsed = pattern::parse_glob(glob);
  const auto* const wrong = std::get_if<std::string>(&parsed);
  return wrong == nullptr ? "" : "a glob such as '*.o' (" + *wrong + ")";
}

std::string ignore_fault(Text glob) {
  if (glob.starts_with('!')) {
    return "a glob of what is left out: nothing is taken back with '!'; '\\!x' is a name that begins with one";
  }
  return glob_fault(glob);
}

/// Puts one file after the other into the same Settings.
class SettingsReader {
 public:
  void add(const SettingsText& source) {
    file_ = source.file;
    faults_ = {};
    auto parsed = parse_toml(source.text);
    if (const auto* fault = std::get_if<SettingFault>(&parsed)) {
      faults_.add(fault->place, fault->text);
    } else {
      read_top(std::get<Setting>(parsed));
    }
    out_.files.push_back(source.file);
    if (!error_ && faults_.first()) fail(file_, faults_.first()->place, faults_.first()->text);
  }

  std::variant<Settings, SettingsError> finish() {
    if (!error_) check_agents();
    if (error_) return std::move(*error_);
    return std::move(out_);
  }

 private:
  /// Words that are judged at the end, when all agents are known.
  struct RuleOrigin {
    std::string file;
    SettingPlace agent_place;
    SettingPlace prompt_place;
  };

  using Places = std::map<std::string, std::size_t>;  // where in a list a name stands

  void fail(const std::string& file, SettingPlace place, const std::string& text) {
    const std::string where = ":" + std::to_string(place.line) + ":" + std::to_string(place.column) + ": ";
    error_ = SettingsError{file + where + text};
  }

  void read_top(const Setting& top) {
    const SettingsSection section(faults_, top, "", top_names);
    task::TaskSettings& tasks = out_.tasks;
    if (auto name = section.text("default_agent")) {
      tasks.default_agent = std::move(*name);
      default_agent_file_ = file_;
      default_agent_place_ = section.find("default_agent")->place;
    }
    const auto count = [&](Text name, std::int64_t most, std::size_t& into) {
      if (const auto number = section.number(name, 1, most)) into = static_cast<std::size_t>(*number);
    };
    count("max_running", 1'000, tasks.max_running);
    count("queue_capacity", 10'000'000, tasks.queue_capacity);
    count("keep_days", 36'500, tasks.keep_days);
    count("keep_tasks", 10'000'000, tasks.keep_tasks);
    for_each_named(section, "agents", [this](const NamedSetting& entry) { read_agent(entry); });
    if (const Setting* watch = section.find("watch")) read_watch(*watch);
    if (const Setting* rules = section.find("rules")) read_rules(section, *rules);
    for_each_named(section, "lsp", [this](const NamedSetting& entry) { read_server(entry); });
  }

  template <typename Action>
  void for_each_named(const SettingsSection& section, Text name, Action action) {
    const Setting* const setting = section.find(name);
    if (setting == nullptr) return;
    const auto* const table = setting->as<Setting::Table>();
    if (table == nullptr) return section.refuse(*setting, name, "a table with a table for each name");
    for (const NamedSetting& entry : *table) action(entry);
  }

  // A command must say what to start.
  std::vector<std::string> read_command(const SettingsSection& section) {
    auto command = section.texts("command");
    if (command && command->empty()) section.refuse(*section.find("command"), "command", "a program and its arguments");
    return std::move(command).value_or(std::vector<std::string>());
  }

  void read_agent(const NamedSetting& entry) {
    check_name(faults_, entry.place, "agent", entry.name);
    const SettingsSection section(faults_, entry.setting, "agents." + shown(Text(entry.name)) + ".", agent_names);
    section.require("command");
    out_.tasks.agents[entry.name] = {read_command(section), section.choice("stdin", stdin_choices).has_value()};
  }

  void read_watch(const Setting& setting) {
    const SettingsSection section(faults_, setting, "watch.", watch_names);
    if (auto paths = section.texts("paths")) {
      refuse_each(section, "paths", *paths, path_fault);
      out_.watch.paths = std::move(*paths);
    }
    if (auto ignore = section.texts("ignore")) {
      refuse_each(section, "ignore", *ignore, ignore_fault);
      out_.watch.ignore = std::move(*ignore);
    }
  }

  // What an entry of a list must be, where it is not; `fault` gives an empty text where it is.
  static void refuse_each(const SettingsSection& section, Text name, const std::vector<std::string>& texts,
                          std::string (*fault)(Text)) {
    const auto& list = *section.find(name)->as<Setting::List>();
    for (std::size_t i = 0; i < texts.size(); ++i) {
      const std::string must_be = fault(texts[i]);
      if (!must_be.empty()) section.refuse(list[i], std::string(name) + "[" + std::to_string(i) + "]", must_be);
    }
  }

  void read_rules(const SettingsSection& section, const Setting& setting) {
    const auto* const list = setting.as<Setting::List>();
    if (list == nullptr) return section.refuse(setting, "rules", "a list of tables, each begun with [[rules]]");
    std::set<std::string> ids;  // of this file
    for (const Setting& entry : *list) {
      ReadRule read = read_rule(faults_, entry);
      const std::string id = read.rule.id;
      if (id.empty()) continue;  // a fault already
      check_name(faults_, read.id_place, "rule", id);
      if (!ids.insert(id).second) {
        faults_.add(read.id_place, "rule '" + shown(Text(id)) + "' is there twice: every id must be another one");
      }
      rule_origins_[id] = {file_, read.agent_place, read.prompt_place};
      put(out_.rules, rule_places_, id, std::move(read.rule));
    }
  }

  void read_server(const NamedSetting& entry) {
    check_name(faults_, entry.place, "language server", entry.name);
    const SettingsSection section(faults_, entry.setting, "lsp." + shown(Text(entry.name)) + ".", server_names);
    bridge::Definition server{.name = entry.name, .command = read_command(section)};
    const std::vector<bridge::Definition> known = bridge::well_known_servers();
    const bool is_known = std::ranges::find(known, entry.name, &bridge::Definition::name) != known.end();
    if (!is_known) section.require("command");
    if (!is_known) section.require("files");
    server.files = section.texts("files").value_or(std::vector<std::string>());
    const Setting* const files = section.find("files");
    if (!server.files.empty()) refuse_each(section, "files", server.files, glob_fault);
    if (!is_known && files != nullptr && server.files.empty()) {
      section.refuse(*files, "files", "globs of the files that it is asked about, [\"*.x\"]");
    }
    server.roots = section.texts("roots").value_or(std::vector<std::string>());
    if (const Setting* env = section.find("env")) read_environment(section, *env, server);
    server.max_memory = section.bytes("max_memory", 0).value_or(server.max_memory);
    server.max_body = section.bytes("max_body", 1024).value_or(server.max_body);
    server.idle = section.duration("idle").value_or(server.idle);
    put(out_.servers, server_places_, entry.name, std::move(server));
  }

  void read_environment(const SettingsSection& section, const Setting& setting, bridge::Definition& server) {
    const auto* const table = setting.as<Setting::Table>();
    if (table == nullptr) return section.refuse(setting, "env", "a table of texts");
    for (const NamedSetting& variable : *table) {
      const auto* const value = variable.setting.as<std::string>();
      const bool good = value != nullptr && value->find('\0') == std::string::npos && !variable.name.empty() &&
                        variable.name.find_first_of(std::string("=\0", 2)) == std::string::npos;
      if (!good)
        return section.refuse(variable.setting, "env." + shown(Text(variable.name)), "a text, named without '='");
      server.env[variable.name] = *value;
    }
  }

  // What has the same name is replaced where it stands.
  template <typename Entry>
  static void put(std::vector<Entry>& list, Places& places, const std::string& name, Entry entry) {
    const auto [place, is_new] = places.try_emplace(name, list.size());
    if (is_new) {
      list.push_back(std::move(entry));
    } else {
      list[place->second] = std::move(entry);
    }
  }

  std::string agents_to_choose_from() const {
    std::vector<Text> names{"claude", "shell"};
    for (const auto& [name, agent] : out_.tasks.agents) {
      if (std::ranges::find(names, name) == names.end()) names.push_back(name);
    }
    return one_of(names);
  }

  bool is_agent(Text name) const {
    return name == "claude" || name == "shell" || out_.tasks.agents.find(name) != out_.tasks.agents.end();
  }

  void check_agents() {
    const std::string& default_agent = out_.tasks.default_agent;
    if (!default_agent.empty() && !is_agent(default_agent)) {
      return fail(default_agent_file_, default_agent_place_,
                  "default_agent is '" + shown(Text(default_agent)) + "': it must be " + agents_to_choose_from());
    }
    for (const automation::Rule& rule : out_.rules) {
      if (!error_ && rule.action.type == automation::Action::Type::agent) check_agent(rule);
    }
  }

  void check_agent(const automation::Rule& rule) {
    const RuleOrigin& origin = rule_origins_[rule.id];
    const std::string& named = rule.action.agent;
    if (!named.empty() && !is_agent(named)) {
      return fail(origin.file, origin.agent_place,
                  "action.agent is '" + shown(Text(named)) + "': it must be " + agents_to_choose_from());
    }
    const bool by_shell = (named.empty() ? out_.tasks.default_agent : named) == "shell";
    if (!by_shell || rule.action.prompt.find("{{") == std::string::npos) return;
    fail(origin.file, origin.prompt_place,
         "action.prompt has a template, and the agent 'shell' would take what comes in for commands: write $DUET_PATH "
         "and the like instead of {{payload.path}}");
  }

  std::string file_;
  SettingFaults faults_;
  std::optional<SettingsError> error_;
  Settings out_;
  std::string default_agent_file_;
  SettingPlace default_agent_place_;
  std::map<std::string, RuleOrigin> rule_origins_;
  Places rule_places_;
  Places server_places_;
};

std::string value_of(const char* variable) {
  const char* const value = std::getenv(variable);
  return value == nullptr ? "" : value;
}

// Adds the file to the texts if it is there.
std::optional<SettingsError> add_file(std::vector<SettingsText>& texts, int folder, const std::string& name,
                                      const std::string& shown_name) {
  auto read = read_settings_file(folder, name);
  if (const auto* refused = std::get_if<RefusedFile>(&read)) {
    return SettingsError{shown_name + ": this settings file is not used: " + refused->why};
  }
  if (auto& text = std::get<std::optional<std::string>>(read)) texts.push_back({shown_name, std::move(*text)});
  return std::nullopt;
}

}  // namespace

SettingsPlaces settings_places() {
  SettingsPlaces places;
  const std::string only = value_of("DUET_RPC_CONFIG");
  std::error_code gone;  // the working directory; then the name stays as it is
  if (!only.empty()) places.only = std::filesystem::absolute(only, gone);
  if (gone) places.only = only;
  const std::string config = value_of("XDG_CONFIG_HOME");
  const std::string home = value_of("HOME");
  if (config.starts_with('/')) {  // the specification has relative ones ignored
    places.user = config + "/duet-rpc/config.toml";
  } else if (home.starts_with('/')) {
    places.user = home + "/.config/duet-rpc/config.toml";
  }
  return places;
}

std::variant<Settings, SettingsError> read_settings(const Project& project, const SettingsPlaces& places) {
  std::vector<SettingsText> texts;
  std::optional<SettingsError> error;
  if (!places.only.empty()) {
    error = add_file(texts, AT_FDCWD, places.only, places.only);
    if (!error && texts.empty())
      return SettingsError{places.only + ": there is no such file, but DUET_RPC_CONFIG names it"};
  } else {
    if (!places.user.empty()) error = add_file(texts, AT_FDCWD, places.user, places.user);
    const std::string own_name = (project.root == "/" ? "" : project.root) + "/" + std::string(project_file);
    if (!error) error = add_file(texts, project.directory.get(), std::string(project_file), own_name);
  }
  if (error) return std::move(*error);
  return parse_settings(texts);
}

std::variant<Settings, SettingsError> parse_settings(std::span<const SettingsText> texts) {
  SettingsReader reader;
  for (const SettingsText& text : texts) reader.add(text);
  return reader.finish();
}

}  // namespace duet::app
