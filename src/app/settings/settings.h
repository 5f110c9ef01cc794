#pragma once

#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "app/project/project.h"
#include "app/project/state_folder.h"
#include "app/settings/door_settings.h"
#include "app/settings/settings_words.h"
#include "automation/rule.h"
#include "bridge/definition.h"
#include "task/agent.h"
#include "task/cluster_settings.h"

namespace duet::app {

/// `[daemon]`: how the daemon itself is kept. Only files of the user say it, since clients go by it as well.
struct DaemonSettings {
  StatePlace state = StatePlace::project;
  bool autostart = false;  ///< commands start the daemon when none runs; they read it themselves (autostart.h)
};

/// What the settings files say. docs/settings.md has every name.
struct Settings {
  DaemonSettings daemon = {};
  HttpSettings http = {};
  TlsSettings tls = {};
  task::TaskSettings tasks = {};
  task::ClusterSettings cluster = {};
  automation::WatchSettings watch = {};
  std::vector<automation::Rule> rules = {};
  std::vector<bridge::Definition> servers = {};  ///< by name, without the well-known ones
  std::vector<std::string> files = {};           ///< that were read
  SettingsWords words = {};                      ///< the same as it is written, to be shown and compared
  SettingsWords withheld = {};                   ///< what the project's file says and does not count: it is not trusted
  std::string note = {};  ///< why the project's file, or a part of it, does not count, and the cure, on one line
};

/// `FILE:LINE:COLUMN: what is wrong: what would be right`, on one line.
struct SettingsError {
  std::string text;
};

/// Where settings are looked for beside the project's `.duet-rpc.toml`. Absolute, since a daemon reads them again.
struct SettingsPlaces {
  std::string only = {};        ///< the file of DUET_RPC_CONFIG, which stands for all others; empty: none
  std::string user = {};        ///< `config.toml` of the user; empty: none
  std::string user_state = {};  ///< the user's state folder, where it stands which files are trusted; empty: none
  std::optional<std::string> store = {};  ///< of DUET_RPC_STORE: goes over `store` of all files
};

/// From DUET_RPC_CONFIG, DUET_RPC_STORE, XDG_CONFIG_HOME, XDG_STATE_HOME and HOME, as they and the working directory
/// are now.
SettingsPlaces settings_places();

/// Where the files of `[tls]` are, and a client's identity: `tls` beside the user's settings file. Empty: there is no
/// place for that.
std::string tls_folder(const SettingsPlaces& places);

/// Reads the files, if they are there, and checks every word in them. The project's file goes over the user's: plain
/// values and lists replace each other, agents and language servers do so by name, rules by id. Any fault, or a file
/// that somebody else could have written, refuses all of it.
///
/// The project's file comes from whoever wrote the project. Unless the user has trusted its very content (see
/// TrustedFiles), only harmless settings of it count, and whatever is wrong with it is a note.
std::variant<Settings, SettingsError> read_settings(const Project& project, const SettingsPlaces& places);

/// What `[tls]` says, for commands, which do not read the rest: only the user's own files say it.
std::variant<TlsSettings, SettingsError> tls_settings(const SettingsPlaces& places);

/// What the user's own files say about `[daemon] state`, for clients, which do not read the rest. Faults are for the
/// daemon's start to tell.
StatePlace state_place(const SettingsPlaces& places);

/// The names that a file may have at its top, those of [watch] with it: what harmless.h tells apart.
std::vector<std::string> known_settings();

/// A settings file's text, with its name for error messages.
struct SettingsText {
  std::string file;
  std::string text;
  bool of_project = false;       ///< not the user's own
  bool trusted = true;           ///< else only what is harmless counts
  bool others_may_read = false;  ///< the file: a password in it is refused
};

/// What would be read if the content of a project's file were trusted, with the user's own file below it.
/// DUET_RPC_CONFIG does not count.
std::variant<Settings, SettingsError> check_project_settings(const SettingsText& own, const SettingsPlaces& places);

/// The later ones go over the earlier ones; the environment's store goes over all.
std::variant<Settings, SettingsError> parse_settings(std::span<const SettingsText> texts,
                                                     const std::optional<std::string>& store = {});

/// The same without the project's file, in which the rest of what a store needs may stand.
std::variant<Settings, SettingsError> parse_users_settings(std::span<const SettingsText> texts);

/// What one text says by itself, as far as it makes sense: whether it fits other files is not looked at.
Settings settings_in(const SettingsText& text);

}  // namespace duet::app
