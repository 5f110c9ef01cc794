#pragma once

#include "app/settings/settings.h"

namespace duet::app {

/// Whether the user's own settings have commands start the daemon: `[daemon] autostart = true`. What a project's file
/// says does not count. A file that cannot be read says nothing here: the daemon that is started tells what is wrong.
bool autostart_wanted(const SettingsPlaces& places);

}  // namespace duet::app
