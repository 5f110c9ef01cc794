#include "app/settings/settings.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "app/settings/harmless.h"
#include "app/settings/settings_cluster.h"
#include "app/settings/settings_hold.h"
#include "app/settings/settings_rules.h"
#include "app/settings/settings_section.h"
#include "app/words/number.h"
#include "bridge/choice.h"
#include "pattern/glob.h"
#include "task/shell_agent.h"
#include "task/task.h"

namespace duet::app {
namespace {

using Text = std::string_view;

constexpr Text top_names[] = {"default_agent", "max_running", "queue_capacity", "keep_days", "keep_tasks",
                              "keep_output",   "agents",      "groups",         "watch",     "rules",
                              "lsp",           "daemon",      "http",           "tls",       "mcp",
                              "store",         "cluster"};
constexpr Text agent_names[] = {"command", "stdin",    "shell", "max_running", "env",       "time_limit", "retries",
                                "group",   "priority", "hold",  "memory",      "processes", "cpu"};
constexpr Text group_names[] = {"max_running", "paused"};
constexpr Text built_in_agents[] = {"claude", "shell"};
constexpr Text stdin_choices[] = {"prompt"};
constexpr Text daemon_names[] = {"state", "autostart"};
constexpr Text mcp_names[] = {"agents"};
constexpr Text state_choices[] = {"project", "user"};
constexpr Text watch_names[] = {"paths", "ignore", "gitignore", "max_chain"};
constexpr Text server_names[] = {"command", "files", "roots", "env", "max_memory", "max_body", "idle"};

const std::string usual_agent = "claude";  // the default agent without a default_agent

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
    of_project_ = source.of_project;
    others_may_read_ = source.others_may_read;
    faults_ = {};
    auto parsed = parse_toml(source.text);
    if (const auto* fault = std::get_if<SettingFault>(&parsed)) {
      faults_.add(fault->place, fault->text);
    } else {
      read_file(std::get<Setting>(parsed), source.trusted);
    }
    out_.files.push_back(source.file);
    if (!error_ && faults_.first()) fail(file_, faults_.first()->place, faults_.first()->text);
  }

  Settings finish_unchecked() { return std::move(out_); }

  void check_cluster(const std::optional<std::string>& store) {
    if (error_) return;
    const auto fault = cluster_.finish(store);
    out_.cluster = cluster_.settings();
    if (fault && fault->file.empty()) error_ = SettingsError{fault->text};
    if (fault && !fault->file.empty()) fail(fault->file, fault->place, fault->text);
  }

  std::variant<Settings, SettingsError> finish() {
    if (!error_) check_agents();
    if (!error_) check_groups();
    if (error_) return std::move(*error_);
    std::ranges::sort(out_.servers, {}, &bridge::Definition::name);  // the first that fits a file gets it
    return std::move(out_);
  }

 private:
  /// Words that are judged at the end, when all agents are known.
  struct RuleOrigin {
    std::string file;
    SettingPlace agent_place;
    SettingPlace prompt_place;
  };

  struct GroupOrigin {
    std::string file;
    SettingPlace place;
  };

  using Places = std::map<std::string, std::size_t>;  // where in a list a name stands

  void fail(const std::string& file, SettingPlace place, const std::string& text) {
    const std::string where = ":" + std::to_string(place.line) + ":" + std::to_string(place.column) + ": ";
    error_ = SettingsError{file + where + text};
  }

  void read_file(Setting& top, bool trusted) {
    const SettingsWords all = words_of(top);
    if (of_project_) refuse_tls(top);
    if (!trusted) {
      note_untrusted_names(top);
      remove_harmful(top);
    }
    const SettingsWords counting = trusted ? all : words_of(top);
    std::ranges::set_difference(all, counting, std::inserter(out_.withheld, out_.withheld.end()));
    put_over(out_.words, counting);
    read_top(top);
  }

  // Whether the file is trusted or not: nobody should think that it counts.
  void refuse_tls(const Setting& top) {
    const auto* const table = top.as<Setting::Table>();
    const auto tls = std::ranges::find(*table, "tls", &NamedSetting::name);
    if (tls == table->end()) return;
    faults_.add(tls->setting.place,
                "[tls] is for your own settings, since a project must not open your machine to the network: move it to "
                "config.toml");
  }

  // A task that names one of them is told so.
  void note_untrusted_names(const Setting& top) {
    const auto* const table = top.as<Setting::Table>();
    const auto chosen = std::ranges::find(*table, "default_agent", &NamedSetting::name);
    const auto* const name = chosen == table->end() ? nullptr : chosen->setting.as<std::string>();
    if (name != nullptr) out_.tasks.untrusted_default = *name;
    const auto note_names = [table](Text section, std::set<std::string, std::less<>>& into) {
      const auto found = std::ranges::find(*table, section, &NamedSetting::name);
      const auto* const names = found == table->end() ? nullptr : found->setting.as<Setting::Table>();
      if (names == nullptr) return;
      for (const NamedSetting& entry : *names) into.insert(entry.name);
    };
    note_names("agents", out_.tasks.untrusted_agents);
    note_names("groups", out_.tasks.untrusted_groups);
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
    tasks.keep_output = section.bytes("keep_output", 0).value_or(tasks.keep_output);
    if (const Setting* daemon = section.find("daemon")) read_daemon(*daemon);
    if (const Setting* mcp = section.find("mcp")) check_mcp(*mcp);
    if (const Setting* http = section.find("http")) read_http(faults_, *http, out_.http);
    if (const Setting* tls = section.find("tls"); tls != nullptr && !of_project_) read_tls(faults_, *tls, out_.tls);
    for_each_named(section, "agents", [this](const NamedSetting& entry) { read_agent(entry); });
    for_each_named(section, "groups", [this](const NamedSetting& entry) { read_group(entry); });
    if (const Setting* watch = section.find("watch")) read_watch(*watch);
    if (const Setting* rules = section.find("rules")) read_rules(section, *rules);
    cluster_.read(faults_, section, file_, others_may_read_);
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
    if (std::ranges::find(built_in_agents, entry.name) == std::end(built_in_agents)) section.require("command");
    task::Agent agent{.command = read_command(section),
                      .prompt_on_stdin = section.choice("stdin", stdin_choices).has_value(),
                      .shell = section.flag("shell").value_or(false)};
    agent.max_running = read_max_running(section);
    if (const Setting* env = section.find("env")) read_environment(section, *env, agent.env);
    agent.time_limit = section.duration("time_limit");
    if (agent.time_limit && agent.time_limit->count() == 0) {
      section.refuse(*section.find("time_limit"), "time_limit", "longer than nothing");
    }
    if (const auto retries = section.number("retries", 0, 1'000'000)) {
      agent.retries = static_cast<std::uint32_t>(*retries);
    }
    agent.priority =
        section.number("priority", std::numeric_limits<std::int32_t>::min(), std::numeric_limits<std::int32_t>::max());
    if (auto group = section.text("group")) {
      agent.group = std::move(*group);
      group_origins_[entry.name] = {file_, section.find("group")->place};
    } else {
      group_origins_.erase(entry.name);
    }
    if (const Setting* hold = section.find("hold"))
      agent.hold = read_usage_hold(faults_, *hold, "agents." + shown(Text(entry.name)) + ".hold.");
    agent.limits = read_limits(section);
    out_.tasks.agents[entry.name] = std::move(agent);
  }

  static std::optional<std::size_t> read_max_running(const SettingsSection& section) {
    const auto number = section.number("max_running", 1, 1'000);
    return number ? std::optional(static_cast<std::size_t>(*number)) : std::nullopt;
  }

  void read_group(const NamedSetting& entry) {
    check_name(faults_, entry.place, "group", entry.name);
    const SettingsSection section(faults_, entry.setting, "groups." + shown(Text(entry.name)) + ".", group_names);
    out_.tasks.groups[entry.name] = {read_max_running(section), section.flag("paused").value_or(false)};
  }

  void read_daemon(const Setting& setting) {
    if (of_project_) {
      return faults_.add(setting.place, "[daemon] is for your own settings: move it to config.toml");
    }
    const SettingsSection section(faults_, setting, "daemon.", daemon_names);
    if (const auto state = section.choice("state", state_choices)) {
      out_.daemon.state = *state == "user" ? StatePlace::user : StatePlace::project;
    }
    out_.daemon.autostart = section.flag("autostart").value_or(out_.daemon.autostart);
  }

  // The daemon has no use for it: `duet-rpc mcp` reads it itself (offered_agents.h).
  void check_mcp(const Setting& setting) {
    if (of_project_) return faults_.add(setting.place, "[mcp] is for your own settings: move it to config.toml");
    const SettingsSection section(faults_, setting, "mcp.", mcp_names);
    section.texts("agents");
  }

  static process::Limits read_limits(const SettingsSection& section) {
    process::Limits limits;
    limits.memory = section.bytes("memory", process::Limits::least_memory);
    if (const auto most = section.number("processes", 1, 4'000'000)) {
      limits.processes = static_cast<std::uint64_t>(*most);
    }
    limits.cpu = section.decimal("cpu", process::Limits::least_cpu, 10'000);
    return limits;
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
    if (const auto gitignore = section.flag("gitignore")) out_.watch.gitignore = *gitignore;
    constexpr std::int64_t longest_chain = 1'000;
    if (const auto chain = section.number("max_chain", 1, longest_chain)) {
      out_.watch.max_chain = static_cast<unsigned>(*chain);
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
    if (const Setting* env = section.find("env")) read_environment(section, *env, server.env);
    server.max_memory = section.bytes("max_memory", 0).value_or(server.max_memory);
    server.max_body = section.bytes("max_body", 1024).value_or(server.max_body);
    server.idle = section.duration("idle").value_or(server.idle);
    put(out_.servers, server_places_, entry.name, std::move(server));
  }

  template <typename Variables>
  static void read_environment(const SettingsSection& section, const Setting& setting, Variables& env) {
    const auto* const table = setting.as<Setting::Table>();
    if (table == nullptr) return section.refuse(setting, "env", "a table of texts");
    for (const NamedSetting& variable : *table) {
      const auto* const value = variable.setting.as<std::string>();
      const bool good = value != nullptr && value->find('\0') == std::string::npos && !variable.name.empty() &&
                        variable.name.find_first_of(std::string("=\0", 2)) == std::string::npos;
      if (!good)
        return section.refuse(variable.setting, "env." + shown(Text(variable.name)), "a text, named without '='");
      env[variable.name] = *value;
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

  // A group may be said in another file than the agent.
  void check_groups() {
    for (const auto& [name, origin] : group_origins_) {
      const std::string& group = out_.tasks.agents[name].group;
      if (error_ || group == task::default_group || out_.tasks.groups.contains(group)) continue;
      std::vector<Text> known{task::default_group};
      for (const auto& [other, settings] : out_.tasks.groups) known.emplace_back(other);
      fail(origin.file, origin.place,
           "agents." + shown(Text(name)) + ".group is '" + shown(Text(group)) + "': it must be " + one_of(known));
    }
  }

  void check_agent(const automation::Rule& rule) {
    const RuleOrigin& origin = rule_origins_[rule.id];
    const std::string& named = rule.action.agent;
    if (!named.empty() && !is_agent(named)) {
      return fail(origin.file, origin.agent_place,
                  "action.agent is '" + shown(Text(named)) + "': it must be " + agents_to_choose_from());
    }
    const std::string& default_agent = out_.tasks.default_agent.empty() ? usual_agent : out_.tasks.default_agent;
    const std::string& agent = named.empty() ? default_agent : named;
    if (!hands_prompt_on(agent) || rule.action.prompt.find("{{") == std::string::npos) return;
    fail(origin.file, origin.prompt_place,
         "action.prompt has a template, and the agent '" + shown(Text(agent)) +
             "' would take what comes in for commands: write $DUET_PATH and the like instead of {{payload.path}}");
  }

  // To a shell, whatever it is called.
  bool hands_prompt_on(Text name) const {
    const auto agent = out_.tasks.agents.find(name);
    return name == "shell" || (agent != out_.tasks.agents.end() && task::hands_prompt_to_shell(agent->second));
  }

  std::string file_;
  bool of_project_ = false;
  bool others_may_read_ = false;
  SettingFaults faults_;
  ClusterReader cluster_;
  std::optional<SettingsError> error_;
  Settings out_;
  std::string default_agent_file_;
  SettingPlace default_agent_place_;
  std::map<std::string, RuleOrigin> rule_origins_;
  std::map<std::string, GroupOrigin> group_origins_;  // by agent
  Places rule_places_;
  Places server_places_;
};

}  // namespace

std::vector<std::string> known_settings() {
  std::vector<std::string> names;
  for (const Text name : top_names) {
    if (name != "watch") names.emplace_back(name);
  }
  for (const Text name : watch_names) names.push_back("watch." + std::string(name));
  return names;
}

std::variant<Settings, SettingsError> parse_settings(std::span<const SettingsText> texts,
                                                     const std::optional<std::string>& store) {
  SettingsReader reader;
  for (const SettingsText& text : texts) reader.add(text);
  reader.check_cluster(store);
  return reader.finish();
}

std::variant<Settings, SettingsError> parse_users_settings(std::span<const SettingsText> texts) {
  SettingsReader reader;
  for (const SettingsText& text : texts) reader.add(text);
  return reader.finish();
}

Settings settings_in(const SettingsText& text) {
  SettingsReader reader;
  reader.add(text);
  return reader.finish_unchecked();
}

}  // namespace duet::app
