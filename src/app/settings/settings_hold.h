#pragma once

#include <string>

#include "app/settings/settings_section.h"
#include "app/settings/settings_tree.h"
#include "task/agent.h"

namespace duet::app {

/// What `[agents.NAME] hold` says. `prefix` is what stands before its names in messages.
task::UsageHold read_usage_hold(SettingFaults& faults, const Setting& setting, const std::string& prefix);

}  // namespace duet::app
