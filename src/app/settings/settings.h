#pragma once

#include <span>
#include <string>
#include <variant>
#include <vector>

#include "app/project/project.h"
#include "automation/rule.h"
#include "bridge/definition.h"
#include "task/agent.h"

namespace duet::app {

/// What the settings files say. docs/settings.md has every name.
struct Settings {
  task::TaskSettings tasks = {};
  automation::WatchSettings watch = {};
  std::vector<automation::Rule> rules = {};
  std::vector<bridge::Definition> servers = {};  ///< without the well-known ones
  std::vector<std::string> files = {};           ///< that were read
};

/// `FILE:LINE:COLUMN: what is wrong: what would be right`, on one line.
struct SettingsError {
  std::string text;
};

/// Where settings are looked for beside the project's `.duet-rpc.toml`. Absolute, since a daemon reads them again.
struct SettingsPlaces {
  std::string only = {};  ///< the file of DUET_RPC_CONFIG, which stands for all others; empty: none
  std::string user = {};  ///< `config.toml` of the user; empty: none
};

/// From DUET_RPC_CONFIG, XDG_CONFIG_HOME and HOME, as they and the working directory are now.
SettingsPlaces settings_places();

/// Reads the files, if they are there, and checks every word in them. The project's file goes over the user's: plain
/// values and lists replace each other, agents and language servers do so by name, rules by id. Any fault, or a file
/// that somebody else could have written, refuses all of it.
std::variant<Settings, SettingsError> read_settings(const Project& project, const SettingsPlaces& places);

/// A settings file's text, with its name for error messages.
struct SettingsText {
  std::string file;
  std::string text;
};

/// The later ones go over the earlier ones.
std::variant<Settings, SettingsError> parse_settings(std::span<const SettingsText> texts);

}  // namespace duet::app
