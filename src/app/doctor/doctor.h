#pragma once

#include <optional>
#include <string>
#include <vector>

#include <boost/json/object.hpp>

#include "app/project/project.h"
#include "app/project/state_folder.h"
#include "app/settings/settings.h"
#include "bridge/definition.h"
#include "process/launch.h"

namespace duet::app {

/// One thing that was looked at.
struct Finding {
  enum class Verdict : std::uint8_t {
    good,
    note,  ///< nothing is wrong, but one may want to know
    wrong,
    fixed,  ///< was wrong
  };
  std::string subject;
  Verdict verdict = Verdict::good;
  std::string text;
};

std::string_view name_of(Finding::Verdict verdict);

/// The settings as the files say them, and what is wrong with them.
Finding check_settings(const std::variant<Settings, SettingsError>& read);
/// Which agent a task gets, and which of them could not be started. `root` is the project's.
std::vector<Finding> check_agents(const task::TaskSettings& settings, const process::Environment& environment,
                                  const std::string& root);
/// The language servers of the settings: which of them could not be started.
std::vector<Finding> check_servers(const std::vector<bridge::Definition>& servers,
                                   const process::Environment& environment);
/// The files of the TLS door, if it is open by the settings or there are such files: certificate, key, authority, their
/// dates and modes, and whether the clock can be right.
std::vector<Finding> check_tls(const TlsSettings& settings, const std::string& folder);
/// What keeps a daemon from starting here: folders it may not write to or that are somebody else's, and things in the
/// place of its files. Nothing is made to find out.
std::vector<Finding> check_place(const Project& project, StatePlace place = StatePlace::project);
/// What keeps a daemon with a shared queue from starting: tasks of this machine that have not ended. For whoever holds
/// the lock.
std::optional<Finding> check_unfinished(const StateFolder& folder);
/// The store of a daemon that does not run. Nothing is changed.
Finding check_store(const StateFolder& folder);
/// What a daemon left behind that was killed; with `fix` it is cleared away. For whoever holds the lock.
std::vector<Finding> check_leftovers(const StateFolder& folder, bool fix);

}  // namespace duet::app
