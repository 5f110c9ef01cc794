#include <fcntl.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

#include "app/project/user_state.h"
#include "app/settings/settings.h"
#include "app/settings/settings_file.h"
#include "app/settings/settings_section.h"
#include "app/settings/trusted_files.h"
#include "app/words/number.h"
#include "app/words/sha256.h"

namespace duet::app {
namespace {

using Parsed = std::variant<Settings, SettingsError>;

std::string value_of(const char* variable) {
  const char* const value = std::getenv(variable);
  return value == nullptr ? "" : value;
}

// Adds a file of the user to the texts if it is there.
std::optional<SettingsError> add_file(std::vector<SettingsText>& texts, const std::string& name) {
  bool others_may_read = false;
  auto read = read_settings_file(AT_FDCWD, name, 1, FileOwner::ours, &others_may_read);
  if (const auto* refused = std::get_if<RefusedFile>(&read)) {
    return SettingsError{name + ": this settings file is not used: " + refused->why};
  }
  if (auto& text = std::get<std::optional<std::string>>(read)) {
    texts.push_back({.file = name, .text = std::move(*text), .others_may_read = others_may_read});
  }
  return std::nullopt;
}

/// The project's file, read once: what is judged is what is used.
struct ProjectFile {
  std::optional<std::string> text = {};
  std::string refusal = {};
  bool others_may_read = false;
  bool trusted = false;
  bool was_trusted = false;  // with this content or another one; so it is, too, if nobody can tell
  std::string problem = {};  // why nobody can tell
};

ProjectFile read_project_file(const Project& project, const std::string& path, const std::string& user_state) {
  ProjectFile file;
  auto read = read_settings_file(project.directory.get(), ".duet-rpc.toml", 1, FileOwner::ours, &file.others_may_read);
  if (const auto* refused = std::get_if<RefusedFile>(&read)) {
    file.refusal = path + ": this settings file is not used: " + refused->why;
  } else {
    file.text = std::move(std::get<std::optional<std::string>>(read));
  }
  const auto trusted = TrustedFiles(user_state).trusted(path);
  if (!trusted) file.problem = trusted.error();
  file.was_trusted = !trusted || *trusted;
  file.trusted = trusted && *trusted && file.text && **trusted == sha256(*file.text);
  return file;
}

// `agents, default_agent and rules`; of very many the first ones.
std::string sections_of(const SettingsWords& words) {
  constexpr std::size_t most = 12;
  std::set<std::string> sections;
  for (const auto& [name, value] : words) sections.insert(shown(std::string_view(name).substr(0, name.find('.'))));
  const std::size_t left = sections.size() > most ? sections.size() - most : 0;
  std::vector<std::string_view> named(sections.begin(), std::prev(sections.end(), static_cast<std::ptrdiff_t>(left)));
  const std::string rest = std::to_string(left) + " more";
  if (left > 0) named.emplace_back(rest);
  return one_of(named, "and");
}

std::string note_about(const ProjectFile& file, const std::string& path, const SettingsWords& withheld) {
  const std::string what = withheld.empty() ? ": " : ": its " + sections_of(withheld) + " do not count; ";
  if (!file.problem.empty()) return path + " is not known to be trusted" + what + file.problem;
  if (withheld.empty()) return {};
  if (file.was_trusted) {
    return path + " was changed after it was trusted" + what + "'duet-rpc trust' shows the difference and asks";
  }
  return path + " is not trusted" + what + "'duet-rpc trust' shows them and asks";
}

// The content that was trusted last, if there is one. It is used to forbid only, so that any list will do.
std::optional<std::string> trusted_content(const std::string& path, const std::string& user_state) {
  const TrustedFiles files(user_state);
  const auto trusted = files.said_to_be_trusted(path);
  return trusted ? files.content(*trusted) : std::nullopt;
}

// So that no save of the file lets go what waits for a slot of a group, or deletes what was to be kept: whatever of the
// settings and of the content that was trusted last is stricter counts.
void keep_bounds(Settings& settings, const Settings& last) {
  const auto keep_more = [&last](const char* name, auto& kept, auto before) {
    if (last.words.contains(name)) kept = std::max(kept, before);
  };
  keep_more("keep_days", settings.tasks.keep_days, last.tasks.keep_days);
  keep_more("keep_tasks", settings.tasks.keep_tasks, last.tasks.keep_tasks);
  keep_more("keep_output", settings.tasks.keep_output, last.tasks.keep_output);
  if (last.words.contains("watch.max_chain")) {
    settings.watch.max_chain = std::min(settings.watch.max_chain, last.watch.max_chain);
  }
  for (const auto& [name, before] : last.tasks.groups) {
    task::GroupSettings& group = settings.tasks.groups[name];
    if (before.max_running && (!group.max_running || *before.max_running < *group.max_running)) {
      group.max_running = before.max_running;
    }
    group.paused = group.paused || before.paused;
  }
  for (const auto& [name, value] : last.words) {
    const bool is_bound = name.starts_with("groups.") || name.starts_with("keep_") || name == "watch.max_chain";
    if (is_bound) settings.words.try_emplace(name, value);
  }
}

// The end of a note.
std::string about_groups(const Settings& last) {
  return last.tasks.groups.empty() ? "" : "; until then the groups that you trusted keep their bounds and pauses";
}

const char* const look_there = "'duet-rpc trust' says what is wrong";

// For a project's file that cannot be read or makes no sense. What could do no harm of the content that was trusted
// last still counts, and no agent of another file takes the place of one that it had.
Parsed read_without_project(std::vector<SettingsText> texts, const std::string& path, const SettingsPlaces& places) {
  std::optional<std::string> before = trusted_content(path, places.user_state);
  if (!before) return parse_settings(texts, places.store);
  const Settings last = settings_in({path, *before, true, true});
  texts.push_back({path, std::move(*before), true, false});
  Parsed parsed = parse_settings(texts, places.store);
  if (auto* const settings = std::get_if<Settings>(&parsed)) {
    keep_bounds(*settings, last);
    settings->note = about_groups(last);
    settings->tasks.had_trust = true;
    settings->tasks.distrust = {"their file cannot be used", look_there};
    return parsed;
  }
  texts.pop_back();
  return parse_settings(texts, places.store);
}

/// What the content that was trusted last had and the present one has not.
struct Lost {
  std::vector<std::string_view> agents = {};  // their names stand in the settings
  bool default_agent = false;
  std::string about_groups = {};  // which are not lost
};

// Of a content that is not trusted: the names of the one that was trusted last, which may not be in it any more, and
// what it bounded.
Lost add_last_trusted(Settings& settings, const std::string& path, const std::string& user_state) {
  const std::optional<std::string> before = trusted_content(path, user_state);
  if (!before) return {};
  const Settings last = settings_in({path, *before, true, true});
  keep_bounds(settings, last);
  Lost lost{.about_groups = about_groups(last)};
  for (const auto& [name, agent] : last.tasks.agents) {
    const auto [place, is_new] = settings.tasks.untrusted_agents.insert(name);
    if (is_new) lost.agents.emplace_back(*place);
  }
  std::string& default_agent = settings.tasks.untrusted_default;
  lost.default_agent = default_agent.empty() && !last.tasks.default_agent.empty();
  if (lost.default_agent) default_agent = last.tasks.default_agent;
  return lost;
}

// `agents (one and two) and default_agent`; empty: nothing is lost.
std::string in_words(const Lost& lost) {
  const std::string agents = lost.agents.empty() ? "" : "agents (" + one_of(lost.agents, "and") + ")";
  const std::string both = agents.empty() ? "" : " and ";
  return lost.default_agent ? agents + both + "default_agent" : agents;
}

// Says what does not count, and keeps others from taking the place of agents that were trusted.
void judge(Settings& settings, const ProjectFile& file, const std::string& path, const std::string& user_state) {
  settings.note = note_about(file, path, settings.withheld);
  settings.tasks.had_trust = file.was_trusted && !file.trusted;
  if (!file.problem.empty()) settings.tasks.distrust = {"whether they are trusted is not known", look_there};
  if (!settings.tasks.had_trust) return;
  const Lost lost = add_last_trusted(settings, path, user_state);
  const std::string names = in_words(lost);
  const bool says_nothing = names.empty() && lost.about_groups.empty();
  if (settings.note.empty() && !says_nothing) {
    settings.note = path + " was changed after it was trusted" +
                    (names.empty() ? "" : ", and has lost " + names + ", whose place nobody takes") +
                    "; 'duet-rpc trust' shows the difference and asks";
  }
  settings.note += lost.about_groups;
}

// For a project without a file. One that was trusted and is gone has taken its agents along, and nobody steps in.
Parsed read_without_file(const std::vector<SettingsText>& texts, const ProjectFile& file, const std::string& path,
                         const SettingsPlaces& places) {
  Parsed parsed = parse_settings(texts, places.store);
  auto* const settings = std::get_if<Settings>(&parsed);
  if (settings == nullptr || !file.was_trusted) return parsed;
  settings->tasks.had_trust = true;
  settings->tasks.distrust = {"their file is gone", "put it back, or say 'duet-rpc trust --revoke'"};
  const Lost last = add_last_trusted(*settings, path, places.user_state);
  const std::string lost = in_words(last);
  if (!file.problem.empty()) {
    const std::string agents = lost.empty() ? "" : "; nobody takes the place of its " + lost;
    settings->note =
        "whether there was a " + path + " that you had trusted is not known" + agents + ": " + file.problem;
    settings->tasks.distrust = {"whether you had trusted them is not known", look_there};
  } else if (!lost.empty() || !last.about_groups.empty()) {
    const std::string names = lost.empty() ? "" : ": nobody takes the place of its " + lost;
    settings->note = path + " is gone, and you had trusted it" + names + "; " + settings->tasks.distrust.cure;
  }
  settings->note += last.about_groups;
  return parsed;
}

// The user's files, and whatever of the project's may count.
Parsed read_with_project(const Project& project, const SettingsPlaces& places, std::vector<SettingsText> texts) {
  const std::string path = settings_path_of(project);
  ProjectFile file = read_project_file(project, path, places.user_state);
  if (!file.text && file.refusal.empty()) return read_without_file(texts, file, path, places);
  std::string note = file.refusal;
  if (file.text) {
    texts.push_back({path, std::move(*file.text), true, file.trusted, file.others_may_read});
    Parsed parsed = parse_settings(texts, places.store);
    auto* const settings = std::get_if<Settings>(&parsed);
    if (settings != nullptr) judge(*settings, file, path, places.user_state);
    if (settings != nullptr || file.trusted) return parsed;
    note = std::get<SettingsError>(parsed).text + "; this file is not trusted, and nothing of it counts";
    texts.pop_back();
  }
  if (!file.problem.empty()) note += "; which agents it had when it was trusted is not known: " + file.problem;
  Parsed parsed = read_without_project(std::move(texts), path, places);
  if (auto* const settings = std::get_if<Settings>(&parsed)) settings->note = note + settings->note;
  return parsed;
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
  places.user_state = user_state_path();
  std::string store = value_of("DUET_RPC_STORE");
  if (!store.empty()) places.store = std::move(store);
  return places;
}

std::string tls_folder(const SettingsPlaces& places) {
  const std::string& file = places.only.empty() ? places.user : places.only;
  return file.empty() ? file : (std::filesystem::path(file).parent_path() / "tls").string();
}

std::variant<TlsSettings, SettingsError> tls_settings(const SettingsPlaces& places) {
  const std::string& file = places.only.empty() ? places.user : places.only;
  std::vector<SettingsText> texts;
  if (auto error = file.empty() ? std::nullopt : add_file(texts, file)) return std::move(*error);
  auto parsed = parse_users_settings(texts);
  if (auto* const error = std::get_if<SettingsError>(&parsed)) return std::move(*error);
  return std::move(std::get<Settings>(parsed).tls);
}

StatePlace state_place(const SettingsPlaces& places) {
  const std::string& file = places.only.empty() ? places.user : places.only;
  if (file.empty()) return StatePlace::project;
  const auto read = read_settings_file(AT_FDCWD, file);
  const auto* const text = std::get_if<std::optional<std::string>>(&read);
  const bool says_it = text != nullptr && *text && (*text)->find("daemon") != std::string::npos;
  if (!says_it) return StatePlace::project;
  const auto parsed = parse_toml(**text);
  const auto* const top = std::get_if<Setting>(&parsed);
  const SettingsWords words = top == nullptr ? SettingsWords() : words_of(*top);
  const auto state = words.find("daemon.state");
  return state != words.end() && state->second == "\"user\"" ? StatePlace::user : StatePlace::project;
}

std::variant<Settings, SettingsError> check_project_settings(const SettingsText& own, const SettingsPlaces& places) {
  std::vector<SettingsText> texts;
  std::optional<SettingsError> error;
  if (!places.user.empty()) error = add_file(texts, places.user);
  if (error) return std::move(*error);
  texts.push_back(own);
  return parse_settings(texts, places.store);
}

std::variant<Settings, SettingsError> read_settings(const Project& project, const SettingsPlaces& places) {
  std::vector<SettingsText> texts;
  const bool only_one = !places.only.empty();
  const std::string& users = only_one ? places.only : places.user;
  std::optional<SettingsError> error;
  if (!users.empty()) error = add_file(texts, users);
  if (error) return std::move(*error);
  if (!only_one) return read_with_project(project, places, std::move(texts));
  if (texts.empty()) return SettingsError{users + ": there is no such file, but DUET_RPC_CONFIG names it"};
  return parse_settings(texts, places.store);
}

}  // namespace duet::app
