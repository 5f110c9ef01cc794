#pragma once

#include <map>
#include <string>
#include <vector>

#include "app/settings/settings_tree.h"

namespace duet::app {

/// What settings files say, for people and to be compared, whatever the settings are: names that nobody here knows are
/// shown like all others.

/// The settings by full name, `agents.claude.command` or `rules.on-save.action.prompt`, and their values as one would
/// write them; a password of `store` is `***`. Each is on one line, and has no characters that a terminal would act
/// upon or not show.
using SettingsWords = std::map<std::string, std::string>;
SettingsWords words_of(const Setting& top);

/// Puts a file over others: a single value, or a list of [watch], replaces that of the same name; an agent, a rule, a
/// language server the one of the same name as a whole.
void put_over(SettingsWords& words, const SettingsWords& file);

/// What differs, by single value, agent, rule or language server: `max_running`, `agents.claude`, `rules.on-save`.
struct SettingsChange {
  std::vector<std::string> added;
  std::vector<std::string> removed;
  std::vector<std::string> changed;

  bool empty() const { return added.empty() && removed.empty() && changed.empty(); }
};
SettingsChange change_between(const SettingsWords& before, const SettingsWords& after);

}  // namespace duet::app
