#include "app/settings/offered_agents.h"

#include "app/settings/user_setting.h"

namespace duet::app {

std::optional<std::vector<std::string>> agents_offered_by(const SettingsPlaces& places) {
  const std::optional<Setting> agents = user_setting(places, "mcp", "agents");
  const auto* const list = agents ? agents->as<Setting::List>() : nullptr;
  if (list == nullptr) return std::nullopt;
  std::vector<std::string> names;
  for (const Setting& entry : *list) {
    if (const auto* const name = entry.as<std::string>()) names.push_back(*name);
  }
  return names;
}

}  // namespace duet::app
