#pragma once

#include "app/settings/settings_section.h"
#include "automation/rule.h"

namespace duet::app {

/// A rule of the settings, and where the words stand that can only be judged when all files have been read.
struct ReadRule {
  automation::Rule rule;
  SettingPlace id_place;
  SettingPlace agent_place;
  SettingPlace prompt_place;
};

/// Reads one table of `[[rules]]`. What is wrong with it is added to the faults.
ReadRule read_rule(SettingFaults& faults, const Setting& setting);

}  // namespace duet::app
