#include "app/settings/autostart.h"

#include <optional>

#include "app/settings/user_setting.h"

namespace duet::app {

bool autostart_wanted(const SettingsPlaces& places) {
  const std::optional<Setting> autostart = user_setting(places, "daemon", "autostart");
  const bool* const wanted = autostart ? autostart->as<bool>() : nullptr;
  return wanted != nullptr && *wanted;
}

}  // namespace duet::app
