#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "app/settings/settings_tree.h"

namespace duet::app {

/// A settings file's text as the TOML library may be given it, or why not.
///
/// The library (3.3.0) has no answer for some letters beyond ASCII where it looks for blanks: outside of strings, where
/// TOML has none, and behind a line that ends with a backslash in a `"""` string. The first are a fault here; in such a
/// string all of them are written as escapes, which mean the same. Its stack has no bound for a.b.c.d, so dots have
/// one. Lines stay the same, columns do up to the first letter that was escaped. Pure.
std::variant<std::string, SettingFault> cautious_toml(std::string_view text);

}  // namespace duet::app
