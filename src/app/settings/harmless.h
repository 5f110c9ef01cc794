#pragma once

#include <span>
#include <string_view>

#include "app/settings/settings_tree.h"

namespace duet::app {

/// Which settings of a project's file count although its content is not trusted: those that can start nothing, change
/// no environment and choose no agent. All others do not, those that nobody has put on either list included. A name
/// stands for all that is below it.
std::span<const std::string_view> harmless_settings();
/// Those that need trust, so that a test can tell whether somebody has thought about every setting.
std::span<const std::string_view> harmful_settings();

/// Takes out of a file what needs trust; returns whether that was anything.
bool remove_harmful(Setting& top);

}  // namespace duet::app
