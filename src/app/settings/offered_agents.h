#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/settings/settings.h"

namespace duet::app {

/// The agents that the user offers to MCP clients: `[mcp] agents = ["claude", "shell"]` in the user's own settings.
/// What a project's file says does not count. None: the user does not say.
std::optional<std::vector<std::string>> agents_offered_by(const SettingsPlaces& places);

}  // namespace duet::app
