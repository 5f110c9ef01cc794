#pragma once

#include <optional>
#include <string>
#include <vector>

#include <boost/json/object.hpp>

#include "app/project/project.h"
#include "app/project/state_folder.h"
#include "app/settings/settings.h"
#include "duet/base/process.h"

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
/// Which agent a task gets, and which of them could not be started.
std::vector<Finding> check_agents(const task::TaskSettings& settings, const base::Environment& environment);
/// The store of a daemon that does not run. Nothing is changed.
Finding check_store(const StateFolder& folder);
/// What a daemon left behind that was killed; with `fix` it is cleared away. For whoever holds the lock.
std::vector<Finding> check_leftovers(const StateFolder& folder, bool fix);

}  // namespace duet::app
