#pragma once

#include <optional>
#include <string_view>

#include "app/settings/settings.h"
#include "app/settings/settings_tree.h"

namespace duet::app {

/// One setting of the user's own file, `[table] name = …`, for programs that need nothing else of it. What a project's
/// file says does not count. None: it is not there, or the file cannot be read, which the daemon's start tells.
std::optional<Setting> user_setting(const SettingsPlaces& places, std::string_view table, std::string_view name);

}  // namespace duet::app
